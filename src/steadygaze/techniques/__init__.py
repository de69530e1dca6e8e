"""Training techniques: one file each, one line each here."""

from steadygaze.techniques.a2r import A2R
from steadygaze.techniques.adversary import Adversary
from steadygaze.techniques.anchored import Anchored
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.attention_iat import AttentionIAT
from steadygaze.techniques.attention_rp import AttentionRP
from steadygaze.techniques.consensus import Consensus
from steadygaze.techniques.fresh import Fresh
from steadygaze.techniques.hardkuma import HardKuma
from steadygaze.techniques.mask_neutral import MaskNeutral
from steadygaze.techniques.random_pretraining import RandomPretraining
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.seat import Seat
from steadygaze.techniques.synonym_augmentation import SynonymAugmentation
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.three_player import ThreePlayer
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.techniques.word_at import WordAT
from steadygaze.techniques.word_iat import WordIAT

TECHNIQUES: dict[str, type[Technique]] = {
    "vanilla": Vanilla,
    "synonym-augmentation": SynonymAugmentation,
    "word-at": WordAT,
    "word-iat": WordIAT,
    "attention-rp": AttentionRP,
    "attention-at": AttentionAT,
    "attention-iat": AttentionIAT,
    "seat": Seat,
    "anchored": Anchored,
    "consensus": Consensus,
    "random-pretraining": RandomPretraining,
    "mask-neutral": MaskNeutral,
    "adversary": Adversary,
    "rnp": Rnp,
    "three-player": ThreePlayer,
    "hardkuma": HardKuma,
    "a2r": A2R,
    "fresh": Fresh,
}
