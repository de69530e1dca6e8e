"""Some words exchanged for their closest synonym: what does the model show then?"""

from dataclasses import replace

from torch import Tensor

from steadygaze.audit.probe.look import Seen, look, text_key
from steadygaze.maths.chance import Chance
from steadygaze.model import Classifier
from steadygaze.perturb.words import Synonyms, swap_some
from steadygaze.types import Batch


def exchanged(model: Classifier, batch: Batch, synonyms: Synonyms, number: int, chance: Chance) -> tuple[Seen, Tensor]:
    """`number` words of each text, drawn at random; and how many were exchanged, fewer where fewer can be.  (B,)"""
    synonyms = synonyms.to(batch.ids.device)
    ids = swap_some(batch.ids, batch.mask, synonyms, chance, text_key(batch), number=number)
    return look(model, replace(batch, ids=ids)), (ids != batch.ids).sum(-1)
