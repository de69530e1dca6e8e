"""Synonym substitution in training texts, shared by the techniques that train on it.

    x′   the text with each word that has a synonym replaced, with probability `share`, by one of its synonyms

Without a table of synonyms, the nearest of the model's own word vectors stand in for them.
"""

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from steadygaze.maths.chance import Chance
from steadygaze.model import Classifier
from steadygaze.objective.technique import Given
from steadygaze.perturb.words import Synonyms, by_vectors, swap
from steadygaze.types import Batch


def nearest_tables(model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
    """Nearest words by the model's own vectors, where no table is given; else nothing."""
    if synonyms is None or synonyms.origin != "none":
        return {}
    own = by_vectors(model.encoder.vectors[: len(synonyms.count)], synonyms)  # a network may have vectors to spare
    return {"table": own.table, "count": own.count}


def substituted(batch: Batch, given: Given, chance: Chance, share: float) -> Batch | None:
    """The batch with synonyms in it; None where no synonyms are known."""
    known = given.synonyms
    if known is None:
        return None
    if "table" in given.tables:
        known = replace(known, table=given.tables["table"], count=given.tables["count"])
    return replace(batch, ids=swap(batch.ids, batch.mask, known, chance, batch.index, share=share))
