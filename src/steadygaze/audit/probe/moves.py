"""The probes that move a text or its vectors, by name, and what a model must have for each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from steadygaze.audit.plan import Plan
from steadygaze.audit.probe import embeddings
from steadygaze.audit.probe.look import Moved
from steadygaze.audit.probe.words import exchanged
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import parts, taken
from steadygaze.perturb.words import Synonyms
from steadygaze.reader import LACKING as LACKING
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch

OWN = ("rationale", "attention")
"""Explanations that are what a model shows of itself."""
SLOPED = 1 << 13
"""Tokens moved uphill at once."""


@dataclass(frozen=True)
class Probe:
    """What is done to a batch, and what a model must have for it."""

    move: Callable[[Reader, Batch], Moved]
    needs: frozenset[Ability] = frozenset()
    vectors: bool = True
    """Whether vectors are moved, not words."""
    of: tuple[str, ...] = ()
    """The explanations it was made to move; none: any."""
    words: int = 1
    """How many words must have been touched for a move to count."""
    origin: str = ""
    """Where synonyms are from."""
    expensive: bool = False
    """Whether a sample of the texts must do."""


def probes(plan: Plan) -> dict[str, Probe]:
    chance = Chance(plan.seed)
    far = cache(lambda model: embeddings.reach(model, plan.radius))  # as long as these probes live: not of every batch
    found = {
        "noise": Probe(lambda m, b: embeddings.noise(m, b, far(m), chance.child(1)), frozenset({"vectors"})),
        "worst-label": Probe(_by_parts(lambda m, b: embeddings.worst_for_label(m, b, far(m))), frozenset({"vectors"})),
        "worst-attention": Probe(
            _by_parts(lambda m, b: embeddings.worst_for_attention(m, b, far(m), chance.child(2))),
            frozenset({"vectors", "weights"}),
            of=OWN,
            expensive=True,
        ),
    }
    if taken := found.keys() & plan.synonyms.keys():
        raise ValueError(f"a probe is called {min(taken)} already: call the table of synonyms something else")
    for name, (table, number) in plan.synonyms.items():
        swaps = _swaps(table, number, chance.child(3))
        found[name] = Probe(swaps, vectors=False, words=number, origin=table.origin)
    return found


def _by_parts(move: Callable[[Reader, Batch], Moved]) -> Callable[[Reader, Batch], Moved]:
    """The same a few texts at a time: slopes keep all that was on the way to them."""

    def whole(model: Reader, batch: Batch) -> Moved:
        some = [move(model, taken(batch, rows)) for rows in parts(batch, max(1, SLOPED // batch.ids.shape[1]))]
        vectors = torch.cat([moved.embedded for moved in some if moved.embedded is not None])
        return Moved(batch, vectors, torch.cat([moved.touched for moved in some]))

    return whole


def _swaps(table: Synonyms, number: int, chance: Chance) -> Callable[[Reader, Batch], Moved]:
    return lambda _, batch: exchanged(batch, table, number, chance)
