"""Some words exchanged for their closest synonym, or all of them for each other."""

from dataclasses import replace

import torch

from steadygaze.audit.probe.look import Moved
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import text_key
from steadygaze.perturb.words import Synonyms, swap_some
from steadygaze.types import Batch


def exchanged(batch: Batch, synonyms: Synonyms, number: int, chance: Chance) -> Moved:
    """`number` words of each text, drawn at random; fewer where fewer can be."""
    synonyms = synonyms.to(batch.ids.device)
    ids = swap_some(batch.ids, batch.mask, synonyms, chance, text_key(batch), number=number)
    return Moved(replace(batch, ids=ids), None, (ids != batch.ids).sum(-1))


def shuffled(batch: Batch, chance: Chance) -> Batch:
    """The words of each text in a random order; special tokens and padding stay where they are."""
    outside = ~batch.mask
    reading = outside.to(torch.uint8).argsort(dim=-1, stable=True)  # the words in their order, then the rest
    lot = chance.uniform(text_key(batch), batch.ids.shape[1], dtype=torch.float64).masked_fill(outside, 2.0)
    drawn = lot.argsort(dim=-1, stable=True)  # the words in a random order, then the rest in theirs
    return replace(batch, ids=batch.ids.scatter(-1, reading, batch.ids.gather(-1, drawn)))
