"""Some words exchanged for their closest synonym."""

from dataclasses import replace

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
