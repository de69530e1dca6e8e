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

from steadygaze.audit.audit_config import ProbeConfig
from steadygaze.audit.probes.observation import PerturbedBatch, observe
from steadygaze.core.maths.divergence import jensen_shannon
from steadygaze.core.maths.masked import normalize
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.models.inference import inference, with_gradients
from steadygaze.models.model_protocol import MISSING_CAPABILITY as MISSING_CAPABILITY
from steadygaze.models.model_protocol import Capability, Model
from steadygaze.techniques.perturbations.gradient_ascent import ascend, embedding_std
from steadygaze.techniques.perturbations.word_removal import row_chunks, take_rows, text_key
from steadygaze.techniques.perturbations.word_substitution import Synonyms, substitute_some_words


def perturbation_radius(model: Model, radius: float | Tensor) -> Tensor:
    """ρ.  -> ()"""
    return radius if isinstance(radius, Tensor) else radius * embedding_std(model.vectors)


def embedding_noise(model: Model, batch: Batch, radius: float | Tensor, chance: RandomKey) -> PerturbedBatch:
    embedded = _clean(model, batch)
    return _moved(batch, embedded + _inside(batch, embedded, perturbation_radius(model, radius), chance))


def fgm_on_label(model: Model, batch: Batch, radius: float | Tensor) -> PerturbedBatch:
    embedded, size = _clean(model, batch), perturbation_radius(model, radius)
    predicted = observe(model, batch).probs.argmax(-1)

    def surprise(vectors: Tensor) -> Tensor:  # −ln p(predicted)
        logits: Tensor = model(batch, vectors).logits
        # Doubles: of a sure prediction, singles keep the slope of every class but its own.
        return nll_loss(logits.double().log_softmax(-1), predicted, reduction="none")

    still = embedded.new_zeros(embedded.shape)
    with with_gradients(model):
        r = ascend(surprise, still, centre=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)
    return _moved(batch, embedded + r)


def pgd_on_attention(
    model: Model, batch: Batch, radius: float | Tensor, chance: RandomKey, steps: int = 10
) -> PerturbedBatch:
    embedded, size = _clean(model, batch), perturbation_radius(model, radius)

    def shown(vectors: Tensor) -> Tensor:
        said = model(batch, vectors)
        weights: Tensor = said.weights
        return (normalize(said.probability, batch.mask) if "selection" in model.capabilities else weights).double()

    with inference(model):
        clean = shown(embedded)

    def moved(vectors: Tensor) -> Tensor:
        return jensen_shannon(clean, shown(vectors), batch.mask)

    start = _inside(batch, embedded, size, chance)
    with with_gradients(model):
        r = ascend(moved, start, centre=embedded, radius=size, norm="linf", steps=steps, keep=batch.mask, best=True)
    return _moved(batch, embedded + r)


def _moved(batch: Batch, embedded: Tensor) -> PerturbedBatch:
    return PerturbedBatch(batch, embedded, batch.mask.sum(-1))


def _clean(model: Model, batch: Batch) -> Tensor:
    """(B,T,E), without dropout"""
    with inference(model):
        return model.embed(batch)


def _inside(batch: Batch, embedded: Tensor, size: Tensor, chance: RandomKey) -> Tensor:
    """A random point of the ball for every text, the same whatever batch it is in.  (B,T,E)"""
    drawn = 2 * chance.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1
    return (size * drawn).masked_fill(~batch.mask.unsqueeze(-1), 0.0)


def substitute_synonyms(batch: Batch, synonyms: Synonyms, number: int, chance: RandomKey) -> PerturbedBatch:
    """`number` words of each text, drawn at random; fewer where fewer can be."""
    synonyms = synonyms.to(batch.ids.device)
    ids = substitute_some_words(batch.ids, batch.mask, synonyms, chance, text_key(batch), number=number)
    return PerturbedBatch(replace(batch, ids=ids), None, (ids != batch.ids).sum(-1))


def shuffle_words(batch: Batch, chance: RandomKey) -> Batch:
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

    move: Callable[[Model, Batch], PerturbedBatch]
    requires: frozenset[Capability] = frozenset()
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


def probes(plan: ProbeConfig) -> dict[str, Probe]:
    chance = RandomKey(plan.seed)
    far = cache(
        lambda model: perturbation_radius(model, plan.radius)
    )  # as long as these probes live: not of every batch
    found = {
        "noise": Probe(lambda m, b: embedding_noise(m, b, far(m), chance.child(1)), frozenset({"embeddings"})),
        "fgm-label": Probe(_by_parts(lambda m, b: fgm_on_label(m, b, far(m))), frozenset({"embeddings"})),
        "pgd-attention": Probe(
            _by_parts(lambda m, b: pgd_on_attention(m, b, far(m), chance.child(2))),
            frozenset({"embeddings", "attention"}),
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


def _by_parts(move: Callable[[Model, Batch], PerturbedBatch]) -> Callable[[Model, Batch], PerturbedBatch]:
    """The same a few texts at a time: slopes keep all that was on the way to them."""

    def whole(model: Model, batch: Batch) -> PerturbedBatch:
        some = [move(model, take_rows(batch, rows)) for rows in row_chunks(batch, max(1, SLOPED // batch.ids.shape[1]))]
        vectors = torch.cat([moved.embedded for moved in some if moved.embedded is not None])
        return PerturbedBatch(batch, vectors, torch.cat([moved.touched for moved in some]))

    return whole


def _swaps(table: Synonyms, number: int, chance: RandomKey) -> Callable[[Model, Batch], PerturbedBatch]:
    return lambda _, batch: substitute_synonyms(batch, table, number, chance)
