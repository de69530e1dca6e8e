"""Training techniques: one file each, one line each here."""

from steadygaze.objective.a2r import A2R
from steadygaze.objective.adversary import Adversary
from steadygaze.objective.anchored import Anchored
from steadygaze.objective.attention_at import AttentionAT
from steadygaze.objective.attention_iat import AttentionIAT
from steadygaze.objective.attention_rp import AttentionRP
from steadygaze.objective.consensus import Consensus
from steadygaze.objective.hardkuma import HardKuma
from steadygaze.objective.mask_neutral import MaskNeutral
from steadygaze.objective.random_pretraining import RandomPretraining
from steadygaze.objective.rnp import Rnp
from steadygaze.objective.seat import Seat
from steadygaze.objective.synonym_augmentation import SynonymAugmentation
from steadygaze.objective.technique import Technique
from steadygaze.objective.three_player import ThreePlayer
from steadygaze.objective.vanilla import Vanilla
from steadygaze.objective.word_at import WordAT
from steadygaze.objective.word_iat import WordIAT

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
}
