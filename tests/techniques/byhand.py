"""Models so small that every number can be worked out on paper, and recorders of their extension points.

h_t = x_t,   s_t = first entry of x_t,   w = softmax(s),   z = Θ Σ_t w_t x_t          all in two dimensions
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from contract.tiny import assert_close, batch, classifier, split
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import LossContext, Technique
from steadygaze.training.training_run import TrainingRun
from training.toys import corpus, make_run, model_for

LN3 = math.log(3)
PEAKED = [(LN3, 4 * LN3), (0, 0)]
"""Two words: weights (¾, ¼), z = (0, 3 ln 3), p = (1/28, 27/28)."""
EVEN = [(0, 4 * LN3), (0, 0)]
"""Two words: weights (½, ½), z = (0, 2 ln 3), p = (1/10, 9/10)."""
NO_PULL = ((0.0, 0.0), (0.0, 1.0))
"""Θ by which the second entry of the context is the second logit, and the first logit is 0."""


class Identity(Encoder):
    """Word vectors are the hidden states."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.words = nn.Parameter(vectors)
        self.size = vectors.shape[1]

    @property
    def vectors(self) -> Tensor:
        return self.words

    def embed(self, ids: Tensor) -> Tensor:
        return self.words[ids]

    def forward(self, embedded: Tensor, present: Tensor, question: Any = None, question_present: Any = None) -> Encoded:
        return Encoded(embedded * present.unsqueeze(-1))


def by_hand(vectors: Sequence[Sequence[float]], theta: Sequence[Sequence[float]] = NO_PULL) -> Classifier:
    """Id 0 is padding; the vectors are those of the ids from 1 on."""
    table = torch.tensor([[0.0] * len(vectors[0]), *vectors], dtype=torch.float64)
    model = Classifier(Identity(table), Architecture(score="dot"), len(theta), pair=False).double()
    root = torch.tensor([2**0.5, 0.0], dtype=torch.float64)  # a scaled dot divides by √2 again
    with torch.no_grad():
        model.scorer.key.copy_(root)  # type: ignore[union-attr, operator]
        model.decoder.output.weight.copy_(torch.tensor(theta, dtype=torch.float64))  # type: ignore[union-attr, operator]
        model.decoder.output.bias.zero_()  # type: ignore[union-attr, operator]
    return model.eval()


def frozen(model: Classifier) -> Classifier:
    return copy.deepcopy(model).eval().requires_grad_(False)


def even(model: Classifier) -> Classifier:
    """The same model with a constant scorer."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.scorer.parameters():
            parameter.zero_()
    return other


def texts(*rows: Sequence[int], label: Sequence[int] = (), specials: Sequence[int] = ()) -> Batch:
    """Rows of ids, padded with 0; ids among `specials` are not words; label 1 by default."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    mask = ids > 0
    for special in specials:
        mask = mask & (ids != special)
    labels = torch.tensor([*label] or [1] * len(rows))
    return Batch(ids, ids > 0, mask, torch.arange(len(rows)), label=labels)


def handed(
    technique: Technique,
    model: Classifier,
    batch: Batch,
    models: Mapping[str, Classifier] | None = None,
    synonyms: Synonyms | None = None,
) -> LossContext:
    """What the loop would hand over."""
    models = models or {}
    with torch.no_grad():
        memory = technique.cache_targets(models, batch)
    tables = technique.on_epoch_start(model, synonyms)
    return LossContext(models, {}, RandomKey(3), cached_targets=memory, epoch_tables=tables, synonyms=synonyms)


def loss(technique: Technique, model: Classifier, batch: Batch, **inputs: Any) -> Terms:
    return technique.loss(model, batch, handed(technique, model, batch, **inputs))


def record_calls(model: Classifier, extension_point: str) -> list[tuple[Any, ...]]:
    """The arguments of every later call of an extension point."""
    calls: list[tuple[Any, ...]] = []
    real: Callable[..., Any] = getattr(model, extension_point)

    def listening(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    object.__setattr__(model, extension_point, listening)
    return calls


def real_model(encoder: str = "bilstm", **shape: str) -> tuple[Classifier, Batch]:
    """Three classes, texts with specials, texts of one word and of none."""
    return classifier(encoder, **shape), batch(split())


def task(model: Classifier, batch: Batch, *, shift: Tensor | None = None, moved: Tensor | None = None) -> Tensor:
    """ℓ(y, f), the scores shifted by a constant, or the embeddings moved by one.  (B,)"""
    embedded = model.embed(batch)
    encoded = model.encode(batch, embedded if moved is None else embedded + moved)
    scores = model.score(encoded)
    logits = model.decode(encoded, model.attend(scores if shift is None else scores + shift, batch.mask))
    return cross_entropy(logits, batch.gold, reduction="none")


def assert_gradient(model: Classifier, loss: Tensor, expected: Tensor) -> None:
    """That two losses pull at every parameter alike."""
    parameters = [value for value in model.parameters() if value.requires_grad]
    pulls = [torch.autograd.grad(value, parameters, allow_unused=True) for value in (loss, expected)]
    assert any(pull is not None and pull.abs().max() > 1e-6 for pull in pulls[1]), "or nothing is compared"
    for gradient, other in zip(*pulls, strict=True):
        assert_close(gradient, other)


def shift_of(technique: Technique, model: Classifier, batch: Batch) -> tuple[Tensor, Terms]:
    """r on the scores: the last scores attended to, less the model's own.  (B,T)"""
    own = model(batch).scores.detach()
    calls = record_calls(model, "attend")
    terms = loss(technique, model, batch)
    return calls[-1][0].detach() - own, terms


def move_of(technique: Technique, model: Classifier, batch: Batch) -> tuple[Tensor, Terms]:
    """r on the embeddings: the last that were encoded, less the model's own.  (B,T,E)"""
    own = model.embed(batch).detach()
    calls = record_calls(model, "encode")
    terms = loss(technique, model, batch)
    return calls[-1][1].detach() - own, terms


def selecting_model(technique: Technique, encoder: str = "bigru", **shape: Any) -> Any:
    """A rationalizer in double precision, without dropout."""
    torch.manual_seed(5)
    return model_for(technique, encoder, torch.float64, dropout=0.0, **shape).eval()


def selecting_run(technique: Technique, **options: Any) -> TrainingRun:
    """A run that learns whether word 1 is among a text's words."""
    make = partial(model_for, technique, "bigru", dropout=0.0)
    return make_run(technique, make, data=corpus(240), learning_rate=0.02, **options)


def without_padding(batch: Batch, row: int) -> Batch:
    """One text of a batch, at its own width."""
    width = int(batch.present[row].sum())
    names = ("ids", "present", "mask")
    alone = {name: getattr(batch, name)[row : row + 1, :width] for name in names}
    return replace(batch, **alone, index=batch.index[row : row + 1], label=batch.gold[row : row + 1])
