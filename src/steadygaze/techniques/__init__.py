"""Training techniques: one file each, one line each here."""

from typing import TYPE_CHECKING

from steadygaze.core.types import Registry

if TYPE_CHECKING:
    from steadygaze.techniques.technique import Technique

TECHNIQUES: "Registry[type[Technique]]" = Registry.of(
    {
        "vanilla": "steadygaze.techniques.vanilla:Vanilla",
        "synonym-augmentation": "steadygaze.techniques.synonym_augmentation:SynonymAugmentation",
        "word-at": "steadygaze.techniques.word_at:WordAT",
        "word-iat": "steadygaze.techniques.word_iat:WordIAT",
        "attention-rp": "steadygaze.techniques.attention_rp:AttentionRP",
        "attention-at": "steadygaze.techniques.attention_at:AttentionAT",
        "attention-iat": "steadygaze.techniques.attention_iat:AttentionIAT",
        "seat": "steadygaze.techniques.seat:Seat",
        "anchored": "steadygaze.techniques.anchored:Anchored",
        "consensus": "steadygaze.techniques.consensus:Consensus",
        "random-pretraining": "steadygaze.techniques.random_pretraining:RandomPretraining",
        "mask-neutral": "steadygaze.techniques.mask_neutral:MaskNeutral",
        "adversary": "steadygaze.techniques.adversary:Adversary",
        "rnp": "steadygaze.techniques.rnp:Rnp",
        "three-player": "steadygaze.techniques.three_player:ThreePlayer",
        "hardkuma": "steadygaze.techniques.hardkuma:HardKuma",
        "a2r": "steadygaze.techniques.a2r:A2R",
        "fresh": "steadygaze.techniques.fresh:Fresh",
    }
)
