"""Word vectors moved a little, at random or to the worst.

noise     x + r,  r uniform in ‖r‖∞ ≤ ρ
label     x + r,  r one sign step of length ρ that lowers the probability of the predicted class        (FGM)
attention x + r,  r ten projected sign steps inside ‖r‖∞ ≤ ρ that raise JSD(w(x), w(x + r))             (PGD)

What a model selects moves by leaps, and has no slope: there w is the chance of each word to be selected, as shares.

ρ = `radius` × σ, the standard deviation of all entries of the model's word vectors: a number; or ρ itself, a tensor
that `reach` gave, for whoever moves many batches.  Only words move: never padding or special tokens; of a pair, the
text alone.

Some words exchanged for their closest synonym, or all of them for each other.

The probes that move a text or its vectors, by name, and what a model must have for each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.audit.audit_config import Plan
from steadygaze.audit.probes.observation import Moved, look
from steadygaze.core.maths.divergence import jensen_shannon
from steadygaze.core.maths.masked import shares
from steadygaze.core.random_key import Chance
from steadygaze.core.types import Batch
from steadygaze.models.inference import inference, slopes
from steadygaze.models.model_protocol import LACKING as LACKING
from steadygaze.models.model_protocol import Ability, Reader
from steadygaze.techniques.perturbations.gradient_ascent import ascend, sigma
from steadygaze.techniques.perturbations.word_removal import parts, taken, text_key
from steadygaze.techniques.perturbations.word_substitution import Synonyms, swap_some


def reach(model: Reader, radius: float | Tensor) -> Tensor:
    """ρ.  -> ()"""
    return radius if isinstance(radius, Tensor) else radius * sigma(model.vectors)


def noise(model: Reader, batch: Batch, radius: float | Tensor, chance: Chance) -> Moved:
    embedded = _clean(model, batch)
    return _moved(batch, embedded + _inside(batch, embedded, reach(model, radius), chance))


def worst_for_label(model: Reader, batch: Batch, radius: float | Tensor) -> Moved:
    embedded, size = _clean(model, batch), reach(model, radius)
    predicted = look(model, batch).probs.argmax(-1)

    def surprise(vectors: Tensor) -> Tensor:  # −ln p(predicted)
        logits: Tensor = model(batch, vectors).logits
        # Doubles: of a sure prediction, singles keep the slope of every class but its own.
        return nll_loss(logits.double().log_softmax(-1), predicted, reduction="none")

    still = embedded.new_zeros(embedded.shape)
    with slopes(model):
        r = ascend(surprise, still, centre=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)
    return _moved(batch, embedded + r)


def worst_for_attention(model: Reader, batch: Batch, radius: float | Tensor, chance: Chance, steps: int = 10) -> Moved:
    embedded, size = _clean(model, batch), reach(model, radius)

    def shown(vectors: Tensor) -> Tensor:
        said = model(batch, vectors)
        weights: Tensor = said.weights
        return (shares(said.probability, batch.mask) if "selection" in model.abilities else weights).double()

    with inference(model):
        clean = shown(embedded)

    def moved(vectors: Tensor) -> Tensor:
        return jensen_shannon(clean, shown(vectors), batch.mask)

    start = _inside(batch, embedded, size, chance)
    with slopes(model):
        r = ascend(moved, start, centre=embedded, radius=size, norm="linf", steps=steps, keep=batch.mask, best=True)
    return _moved(batch, embedded + r)


def _moved(batch: Batch, embedded: Tensor) -> Moved:
    return Moved(batch, embedded, batch.mask.sum(-1))


def _clean(model: Reader, batch: Batch) -> Tensor:
    """(B,T,E), without dropout"""
    with inference(model):
        return model.embed(batch)


def _inside(batch: Batch, embedded: Tensor, size: Tensor, chance: Chance) -> Tensor:
    """A random point of the ball for every text, the same whatever batch it is in.  (B,T,E)"""
    drawn = 2 * chance.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1
    return (size * drawn).masked_fill(~batch.mask.unsqueeze(-1), 0.0)


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
    far = cache(lambda model: reach(model, plan.radius))  # as long as these probes live: not of every batch
    found = {
        "noise": Probe(lambda m, b: noise(m, b, far(m), chance.child(1)), frozenset({"vectors"})),
        "worst-label": Probe(_by_parts(lambda m, b: worst_for_label(m, b, far(m))), frozenset({"vectors"})),
        "worst-attention": Probe(
            _by_parts(lambda m, b: worst_for_attention(m, b, far(m), chance.child(2))),
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
