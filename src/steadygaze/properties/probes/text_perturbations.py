"""Probes that perturb the embeddings or substitute the words of a text, and the observation of a model.

noise          x + r,  r uniform in ‖r‖∞ ≤ ρ
fgm-label      x + r,  r one sign step of length ρ that lowers the probability of the predicted class        (FGM)
pgd-attention  x + r,  r ten projected sign steps inside ‖r‖∞ ≤ ρ that raise JSD(w(x), w(x + r))             (PGD)
               from a random point of the ball; the best of all points and of that of fgm-label, for each text

A hard selection has no gradient: for a rationalizer, w is the normalized selection probability of each word.

ρ = `radius` × σ, the standard deviation of all entries of the embedding table.  A tensor `radius` is ρ itself.  Only
words of the text are perturbed, not padding, special tokens or the question.

`observe` returns attention and prediction in evaluation mode, `gradient` the input × gradient saliency:

    g_t = | Σ_d ∂p_c/∂x_td · x_td |           c: the predicted class

`detach_attention` excludes the gradient through the attention weights, as in Jain & Wallace 2019 (arXiv:1902.10186).
It needs a model with extension points.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from steadygaze.core.maths.distributions import jensen_shannon, normalize
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch
from steadygaze.models.classifier import has_extension_points
from steadygaze.models.inference import Capability, Model, inference, with_gradients
from steadygaze.perturbations.gradient_ascent import ascend, embedding_std
from steadygaze.perturbations.word_removal import row_chunks, take_rows
from steadygaze.perturbations.word_substitution import Synonyms, substitute_some_words
from steadygaze.results.audit_config import ProbeConfig


@dataclass(frozen=True, slots=True)
class PerturbedBatch:
    """An input after a probe."""

    batch: Batch
    embedded: Tensor | None  # (B,T,E) replaces the batch's embeddings
    touched: Tensor  # (B,) number of changed words


@dataclass(frozen=True, slots=True)
class Observation:
    """The outputs for one batch, in double precision: some differences are below single precision."""

    probs: Tensor  # (B,C)
    shown: Tensor | None  # (B,T), 0 outside the mask; None: the model has no attention
    special_token_share: Tensor | None = None  # (B,) share of the attention on special tokens, if known

    @property
    def weights(self) -> Tensor:
        if self.shown is None:
            raise ValueError("this model shows no attention")
        return self.shown


def observe(model: Model, batch: Batch, embedded: Tensor | None = None) -> Observation:
    """Run the model on a batch, or on these embeddings (B,T,E) of it."""
    with inference(model):
        forward = model(batch, embedded)
    weights = None if forward.weights is None else forward.weights.double()
    return Observation(forward.logits.double().softmax(-1), weights, getattr(forward, "special_token_share", None))


def gradient(model: Model, batch: Batch, *, detach_attention: bool = True) -> Tensor:
    """(B,T), 0 outside the mask"""
    with with_gradients(model):
        embedded = model.embed(batch).detach().requires_grad_()
        logits: Tensor = (
            _constant_attention_logits(model, batch, embedded) if detach_attention else model(batch, embedded).logits
        )
        # Single precision rounds a confident prediction to 1, with gradient 0.  `amax` averages the gradients of ties.
        best = logits.double().softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
        (slope,) = torch.autograd.grad(best.sum(), embedded)
    return (slope * embedded.detach()).sum(-1).abs().masked_fill(~batch.mask, 0.0).double()


def _constant_attention_logits(model: Model, batch: Batch, embedded: Tensor) -> Tensor:
    """(B,C)"""
    if not has_extension_points(model):
        raise ValueError("detach_attention=True needs a model with extension points; pass detach_attention=False")
    encoded = model.encode(batch, embedded)
    return model.decode(encoded, model.attend(model.score(encoded), batch.mask).detach())


def perturbation_radius(model: Model, radius: float | Tensor) -> Tensor:
    """ρ.  -> ()"""
    return radius if isinstance(radius, Tensor) else radius * embedding_std(model.vectors)


def embedding_noise(model: Model, batch: Batch, radius: float | Tensor, key: RandomKey) -> PerturbedBatch:
    embedded = _embed(model, batch)
    return _perturbed(batch, embedded + _uniform_noise(batch, embedded, perturbation_radius(model, radius), key))


def fgm_on_label(model: Model, batch: Batch, radius: float | Tensor) -> PerturbedBatch:
    embedded = _embed(model, batch)
    return _perturbed(batch, embedded + _fgm_step(model, batch, embedded, perturbation_radius(model, radius)))


def _fgm_step(model: Model, batch: Batch, embedded: Tensor, size: Tensor) -> Tensor:
    """(B,T,E)"""

    def loss(vectors: Tensor) -> Tensor:  # −ln p(predicted); one step from 0 evaluates it at the text itself
        logits: Tensor = model(batch, vectors).logits
        predicted = logits.argmax(-1)
        # In single precision a confident prediction has no gradient for its own class.
        return nll_loss(logits.double().log_softmax(-1), predicted, reduction="none")

    start = embedded.new_zeros(embedded.shape)
    with with_gradients(model):
        return ascend(loss, start, center=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)


def pgd_on_attention(
    model: Model, batch: Batch, radius: float | Tensor, key: RandomKey, steps: int = 10
) -> PerturbedBatch:
    embedded, size = _embed(model, batch), perturbation_radius(model, radius)

    def attention(vectors: Tensor) -> Tensor:
        forward = model(batch, vectors)
        weights: Tensor = forward.weights
        return (normalize(forward.probability, batch.mask) if "selection" in model.capabilities else weights).double()

    with inference(model):
        clean = attention(embedded)

    def divergence(vectors: Tensor) -> Tensor:
        return jensen_shannon(clean, attention(vectors), batch.mask)

    start, fgm = _uniform_noise(batch, embedded, size, key), _fgm_step(model, batch, embedded, size)
    with with_gradients(model):
        r = ascend(
            divergence,
            start,
            center=embedded,
            radius=size,
            norm="linf",
            steps=steps,
            keep=batch.mask,
            best=True,
            candidates=[fgm],
        )
    return _perturbed(batch, embedded + r)


def _perturbed(batch: Batch, embedded: Tensor) -> PerturbedBatch:
    return PerturbedBatch(batch, embedded, batch.mask.sum(-1))


def _embed(model: Model, batch: Batch) -> Tensor:
    """(B,T,E), without dropout"""
    with inference(model):
        return model.embed(batch)


def _uniform_noise(batch: Batch, embedded: Tensor, size: Tensor, key: RandomKey) -> Tensor:
    """A random point of the ball for every text, independent of its batch.  (B,T,E)"""
    noise = 2 * key.uniform(text_key(batch), *embedded.shape[1:], dtype=embedded.dtype) - 1
    return (size * noise).masked_fill(~batch.mask.unsqueeze(-1), 0.0)


def substitute_synonyms(batch: Batch, synonyms: Synonyms, number: int, key: RandomKey) -> PerturbedBatch:
    """Substitute `number` random words of each text, or all that have a synonym if there are fewer."""
    synonyms = synonyms.to(batch.ids.device)
    ids = substitute_some_words(batch.ids, batch.mask, synonyms, key, text_key(batch), number=number)
    # A synonym of the same group has the id of the word: it is a substitution all the same.
    touched = synonyms.swappable(batch.ids, batch.mask).sum(-1).clamp(max=number)
    return PerturbedBatch(replace(batch, ids=ids), None, touched)


def shuffle_words(batch: Batch, key: RandomKey) -> Batch:
    """Shuffle the words of each text; special tokens and padding keep their positions."""
    outside = ~batch.mask
    original = outside.to(torch.uint8).argsort(dim=-1, stable=True)  # the words in their order, then the rest
    sort_key = key.uniform(text_key(batch), batch.ids.shape[1], dtype=torch.float64).masked_fill(outside, 2.0)
    shuffled = sort_key.argsort(dim=-1, stable=True)  # the words in a random order, then the rest in theirs
    return replace(batch, ids=batch.ids.scatter(-1, original, batch.ids.gather(-1, shuffled)))


MODEL_EXPLAINERS = ("rationale", "attention")
"""Explanations that are part of the model's forward pass."""
GRADIENT_TOKENS = 1 << 13
"""Tokens in one backward pass."""


@dataclass(frozen=True)
class Probe:
    """A perturbation of a batch, and the model capabilities it needs."""

    move: Callable[[Model, Batch], PerturbedBatch]
    requires: frozenset[Capability] = frozenset()
    vectors: bool = True
    """True if the probe perturbs embeddings rather than words."""
    of: tuple[str, ...] = ()
    """The explanations it applies to; empty: all."""
    words: int = 1
    """Number of words that must change for the text to count."""
    origin: str = ""
    """Source of the synonyms, or the digest of their table."""
    expensive: bool = False
    """True if the probe runs on a sample of the texts only."""


def probes(config: ProbeConfig, substitutions: Mapping[str, tuple[Synonyms, int]]) -> dict[str, Probe]:
    key = RandomKey(config.seed)
    radius_of = cache(lambda model: perturbation_radius(model, config.radius))  # once, not for every batch
    named_probes = {
        "noise": Probe(lambda m, b: embedding_noise(m, b, radius_of(m), key.child(1)), frozenset({"embeddings"})),
        "fgm-label": Probe(_in_chunks(lambda m, b: fgm_on_label(m, b, radius_of(m))), frozenset({"embeddings"})),
        "pgd-attention": Probe(
            _in_chunks(lambda m, b: pgd_on_attention(m, b, radius_of(m), key.child(2))),
            frozenset({"embeddings", "attention"}),
            of=MODEL_EXPLAINERS,
            expensive=True,
        ),
    }
    if duplicates := named_probes.keys() & substitutions.keys():
        raise ValueError(f"a probe named {min(duplicates)} already exists: rename the synonym table")
    for name, (table, number) in substitutions.items():
        substitution = _substitution(table, number, key.child(3))
        named_probes[name] = Probe(substitution, vectors=False, words=number, origin=table_origin(table))
    return named_probes


def table_origin(synonyms: Synonyms) -> str:
    """`none`, or whether the table is verified, with the digest of its content.

    >>> table, count = torch.tensor([[0, 0], [2, 0], [1, 0]]), torch.tensor([0, 1, 1])
    >>> table_origin(Synonyms(table, count, torch.zeros(3, dtype=torch.bool)))[:6]
    'table-'
    >>> table_origin(Synonyms(table, count, torch.zeros(3, dtype=torch.bool), origin="none"))
    'none'
    """
    if synonyms.origin not in ("table", "verified"):
        return synonyms.origin
    table, count = synonyms.table.cpu(), synonyms.count.cpu()
    content = table.masked_fill(torch.arange(table.shape[1]) >= count.unsqueeze(-1), -1)
    return f"{synonyms.origin}-{hashlib.sha256(content.contiguous().numpy().tobytes()).hexdigest()[:12]}"


def _in_chunks(move: Callable[[Model, Batch], PerturbedBatch]) -> Callable[[Model, Batch], PerturbedBatch]:
    """Perturb a few texts at a time: a backward pass stores the activations."""

    def whole(model: Model, batch: Batch) -> PerturbedBatch:
        parts = [
            move(model, take_rows(batch, rows))
            for rows in row_chunks(batch, max(1, GRADIENT_TOKENS // batch.ids.shape[1]))
        ]
        vectors = torch.cat([part.embedded for part in parts if part.embedded is not None])
        return PerturbedBatch(batch, vectors, torch.cat([part.touched for part in parts]))

    return whole


def _substitution(table: Synonyms, number: int, key: RandomKey) -> Callable[[Model, Batch], PerturbedBatch]:
    return lambda _, batch: substitute_synonyms(batch, table, number, key)
