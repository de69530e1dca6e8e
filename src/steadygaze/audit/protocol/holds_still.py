"""Does the attention hold still, and does it still say something?  One number per text and question.

A probe moves the text or its vectors; three things are asked of what the model shows before and after:

    jensen-shannon/<probe>       how far the attention moved
    prediction-change/<probe>    ½ Σ |Δp|: how far the prediction moved
    flipped/<probe>              whether the label changed

and of the attention itself: evenness, distance to uniform, comprehensiveness, sufficiency, Pearson correlation with the
gradient, held fixed or moving with it.  NaN where a question makes no sense for a text: a correlation over two words,
or a move when no word had a synonym to be exchanged for.  `exchanged/<probe>` is how many had.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from steadygaze.audit.measure import agreement, erasure, sparsity, stability
from steadygaze.audit.probe import embeddings
from steadygaze.audit.probe.erase import without
from steadygaze.audit.probe.gradient import gradient
from steadygaze.audit.probe.look import Seen, look
from steadygaze.audit.probe.words import exchanged
from steadygaze.batch import Data, by_length, collate
from steadygaze.infer import in_order
from steadygaze.maths.chance import Chance
from steadygaze.model import Classifier
from steadygaze.perturb.words import Synonyms
from steadygaze.types import Batch

BATCH = 256
Probe = Callable[[Classifier, Batch], tuple[Seen, Tensor]]
"""What the model shows then, and how many words of each text were touched, (B,)."""


@dataclass(frozen=True)
class Plan:
    """What is done to the texts."""

    radius: float = 0.1
    """How far entries of word vectors move, in standard deviations of all of them."""
    synonyms: Mapping[str, tuple[Synonyms, int]] = field(default_factory=dict)
    """Name of a probe -> a table, and how many words are exchanged."""
    seed: int = 0

    def probes(self) -> dict[str, Probe]:
        chance = Chance(self.seed)
        found: dict[str, Probe] = {
            "noise": _every_word(lambda m, b: embeddings.noise(m, b, self.radius, chance.child(1))),
            "worst-label": _every_word(lambda m, b: embeddings.worst_for_label(m, b, self.radius)),
            "worst-attention": _every_word(
                lambda m, b: embeddings.worst_for_attention(m, b, self.radius, chance.child(2))
            ),
        }
        if taken := found.keys() & self.synonyms.keys():
            raise ValueError(f"a probe is called {min(taken)} already: call the table of synonyms something else")
        for name, (table, number) in self.synonyms.items():
            found[name] = _swaps(table, number, chance.child(3))
        return found


def holds_still(model: Classifier, data: Data, plan: Plan) -> dict[str, Tensor]:
    """Question -> (N,), in the order of the split."""
    parts: list[dict[str, Tensor]] = []
    places: list[np.ndarray] = []
    for rows, batch in _batches(model, data):
        parts.append({name: value.double().cpu() for name, value in _asked(model, batch, plan)})
        places.append(rows)
    order = in_order(places)
    return {name: torch.cat([part[name] for part in parts])[order] for name in parts[0]}


def _asked(model: Classifier, batch: Batch, plan: Plan) -> Iterator[tuple[str, Tensor]]:
    clean = look(model, batch)
    for name, probe in plan.probes().items():
        moved, touched = probe(model, batch)
        for measure, value in (
            ("jensen-shannon", stability.jensen_shannon(clean.weights, moved.weights, batch.mask)),
            ("prediction-change", stability.prediction_change(clean.probs, moved.probs)),
            ("flipped", stability.flipped(clean.probs, moved.probs)),
        ):
            yield f"{measure}/{name}", value.masked_fill(touched == 0, torch.nan)
        if name in plan.synonyms:
            yield f"exchanged/{name}", touched
    yield "evenness", sparsity.evenness(clean.weights, batch.mask)
    yield "distance-to-uniform", sparsity.from_uniform(clean.weights, batch.mask)
    yield "comprehensiveness", erasure.comprehensiveness(clean.probs, without(model, batch, clean.weights))
    yield "sufficiency", erasure.sufficiency(clean.probs, without(model, batch, clean.weights, keep=True))
    yield "pearson/gradient", agreement.pearson(clean.weights, gradient(model, batch), batch.mask)
    through = gradient(model, batch, detach_attention=False)
    yield "pearson/gradient-through-attention", agreement.pearson(clean.weights, through, batch.mask)


def _swaps(table: Synonyms, number: int, chance: Chance) -> Probe:
    return lambda model, batch: exchanged(model, batch, table, number, chance)


def _every_word(probe: Callable[[Classifier, Batch], Seen]) -> Probe:
    return lambda model, batch: (probe(model, batch), batch.mask.sum(-1))


def _batches(model: Classifier, data: Data) -> Iterator[tuple[np.ndarray, Batch]]:
    device = next(model.parameters()).device
    for rows in by_length(data, BATCH):
        yield rows, collate(data, rows).to(device)
