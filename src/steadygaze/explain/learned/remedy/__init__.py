"""How the label is kept from travelling in the mask: one file each, one line each here."""

from steadygaze.explain.learned.remedy.mask_neutral import MaskNeutral
from steadygaze.explain.learned.remedy.plain import Plain
from steadygaze.explain.learned.remedy.random_pretraining import RandomPretraining
from steadygaze.explain.learned.remedy.random_query import RandomQuery
from steadygaze.explain.learned.remedy.remedy import Remedy

REMEDIES: dict[str, Remedy] = {
    "plain": Plain(),
    "random-pretraining": RandomPretraining(),
    "mask-neutral": MaskNeutral(),
    "random-query": RandomQuery(),
}
