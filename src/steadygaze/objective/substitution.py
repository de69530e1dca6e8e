"""Synonym substitution in training texts, shared by the techniques that train on it.

    x′   the text with each word that has a synonym replaced, with probability `share`, by one of its synonyms

Without a table of synonyms there is no x′: neighbors of a word vector are not synonyms.
"""

from dataclasses import replace

from steadygaze.maths.chance import Chance
from steadygaze.objective.technique import Given
from steadygaze.perturb.words import swap
from steadygaze.types import Batch


def substituted(batch: Batch, given: Given, chance: Chance, share: float) -> Batch | None:
    """The batch with synonyms in it; None where no table was given."""
    known = given.synonyms
    if known is None or known.origin == "none":
        return None
    return replace(batch, ids=swap(batch.ids, batch.mask, known, chance, batch.index, share=share))
