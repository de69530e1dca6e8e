"""Random words: what every other explanation of a text is held against."""

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import text_key
from steadygaze.perturb.units import units_of
from steadygaze.types import Batch

RANDOM = "random"
"""The explainer that is the yardstick of the others, asked for or not."""


def others(case: Case) -> list[str]:
    """The explainers that are held against it."""
    return [name for name in case.explainers if name != RANDOM]


def weights(case: Case, name: str, rows: Rows, batch: Batch) -> Tensor:
    """What an explainer says of these texts; of random words, where they were not asked for, as they are drawn."""
    if name in case.explainers:
        return case.of(case.saliency(name), rows, batch)
    units = units_of(batch, question=False)
    drawn = Chance(case.plan.seed).child(7).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
    return units.on_first(drawn)
