"""What a model selected, and with what chance: the only words its predictor read, whatever class it is.

Does the label leak through a rationale?  The independent reader of a rationalizer.

A copy of the predictor is trained further on random selections of the training texts, and then reads the rationalizer's
selections (explainers/learned/independent_reader.py).  It starts from the predictor's weights, so that it can read from
the first step on: a fresh network would fail on few texts, where random selections seldom hold what tells the label.
What random selections contradict, it unlearns.  They resemble the rationalizer's in all but the choice:

    granularity = sentence           one sentence, drawn uniformly
    share, spans                     as many tokens in as many windows of equal width, placed at random
    as many tokens as it likes       the mean share and the mean number of spans of its selections of training texts

The reader learns the labels, not the rationalizer's predictions: those of a model that leaks may follow single words.
The rationalizer's accuracy and the reader's are compared text by text, against the labels where these are known, else
against the rationalizer's predictions.  Selected words that carry the label give both the same accuracy.  A label that
is carried by the choice of the words is lost to the reader.

Two rules keep honest rationalizers from being reported:

    a reading whose probabilities lie within UNSURE of the class frequencies counts as a guess, 1 / C: what is left of
    an agreement that was nearly unlearned is not a reading
    a text has no gap where the predictor gives the same class from nearly all random selections of it (SAME): a choice
    that changes nothing carries nothing.  A text without a toxic sentence is such a text: all its sentences look alike
    to the reader, because texts with a toxic sentence have them too

Example: the label is the exclusive or of two sentences, and one sentence is selected.  No sentence tells the label, but
generator and predictor can agree on one filler for each label: accuracy 1, the reader's 0.5.

Cost: READINGS readings of selected tokens for each reading of a text in training, once, after the last epoch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from steadygaze.core.maths import segments
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.maths.windows import best_windows
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate, shuffled
from steadygaze.explainers.explainer import Explainer, Saliency, SelectionPredictions
from steadygaze.explainers.learned.independent_reader import (
    BATCH,
    DRAWS,
    LEARNING_RATE,
    STEPS,
    STREAM,
    Draw,
    ReaderFit,
    read,
)
from steadygaze.explainers.learned.selector import InputBatch, Rows
from steadygaze.models import inference as infer
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Capability, Model
from steadygaze.models.rationalizer import IndependentReader, Rationalizer

READINGS = 6
"""Random selections that the reader learns from, for each text of each epoch of the fit."""
FEWEST = 100
"""Steps below which no reader is trained: it would learn too little to be compared."""
TRANSFORMER_RATE = 5e-5
UNSURE = 0.1
SAME = 7 / 8
"""Share of random selections."""


@dataclass(frozen=True, slots=True)
class RationaleBatch(InputBatch):
    """Texts whose units are tokens; special tokens are present, and cannot be selected."""

    present: Tensor | None = None  # (B,T) bool


@dataclass(frozen=True)
class RationaleInputs:
    """A split, with the label of each text as what its random selections are to tell."""

    data: Data
    probs: Tensor  # (N,C) 1 on the label
    device: torch.device

    def __len__(self) -> int:
        return len(self.data)

    def shuffled(self, size: int, seed: tuple[int, ...]) -> Sequence[Rows]:
        return shuffled(self.data, size, seed)

    def once(self, size: int) -> Sequence[Rows]:
        return list(by_length(self.data, size))

    def views(self, rows: Rows) -> RationaleBatch:
        return _views(collate(self.data, rows).to(self.device), self.probs[torch.from_numpy(rows)].to(self.device))


class _OfViews(nn.Module):
    """An independent reader, called as `ReaderFit` calls it."""

    def __init__(self, reader: IndependentReader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, views: RationaleBatch, mask: Tensor) -> Tensor:
        assert views.present is not None
        logits: Tensor = self.reader(views.x, views.present, views.able, mask > 0)
        return logits


def fit_reader(
    model: Rationalizer, train: Data, validation: Data, read_texts: int, seed: int
) -> IndependentReader | None:
    """The reader of a trained rationalizer; None: the fit was too short for one.

    `read_texts`: how many texts the fit read, over all epochs.
    """
    steps = min(STEPS, READINGS * read_texts // BATCH)
    if steps < FEWEST:
        return None
    device = next(model.parameters()).device
    known, held_out = (RationaleInputs(data, _labels(data, model.classes), device) for data in (train, validation))
    budget = _budget(model, train)
    transformer = any(isinstance(one, Transformer) for one in model.modules())
    net = ReaderFit(
        lambda: _OfViews(IndependentReader(model.predictor, model.classes)),
        random_selections(model, budget),
        known,
        held_out,
        device,
        seed,
        steps,
        TRANSFORMER_RATE if transformer else LEARNING_RATE,
        decay=True,
    ).execute()
    reader: IndependentReader = net.reader  # type: ignore[assignment]
    reader.budget.copy_(budget)
    reader.prior.copy_(known.probs.mean(0))
    return reader


def random_selections(model: Rationalizer, budget: Tensor) -> Draw:
    """Selections of the same form as the model's, placed at random."""
    share, spans = budget.tolist()

    def draw(views: InputBatch, chance: RandomKey) -> Tensor:
        if model.selection_config.granularity == "token":
            scores = chance.uniform(views.rows, views.able.shape[1], dtype=torch.float64)
            return best_windows(scores, views.able, share, round(spans) or None).float()
        numbers = segments.segment_ids(views.x, views.able, model.ends)
        sentences = max(1, int(segments.count(numbers).max()))
        real = segments.exists(numbers, sentences)
        return segments.spread(top_k(chance.uniform(views.rows, sentences), real, 1), numbers).float()

    return draw


def rationale_readings(
    model: Rationalizer, batch: Batch, selected: Tensor, logits: Tensor
) -> SelectionPredictions | None:
    """What the independent reader of a rationalizer makes of its selections (B,T); None: it has none."""
    if model.reader is None:
        return None
    draw = random_selections(model, model.reader.budget)
    views = _views(batch, logits.double().softmax(-1))
    found = read(_OfViews(model.reader), views, selected.float(), draw, logits)
    return replace(
        found,
        reader=_sure(found.reader, model.reader.prior),
        gold=batch.label,
        any_selection=_any_selection(model, batch, views, draw, logits.argmax(-1)),
    )


def _any_selection(model: Rationalizer, batch: Batch, views: InputBatch, draw: Draw, predicted: Tensor) -> Tensor:
    """Where the predictor gives the predicted class from random selections too.  (B,)"""
    with infer.inference(model):
        same = [
            model.read(batch, draw(views, RandomKey(STREAM).child(number))).argmax(-1) == predicted
            for number in range(DRAWS)
        ]
    return torch.stack(same).double().mean(0) >= SAME


def _sure(logits: Tensor, prior: Tensor) -> Tensor:
    """Probabilities; all equal where a reading differs from the class frequencies by less than UNSURE.  (B,C)"""
    read = logits.softmax(-1)
    unsure = ((read - prior).abs().amax(-1) < UNSURE).unsqueeze(-1)
    return torch.where(unsure, torch.ones_like(read) / read.shape[-1], read)


def _labels(data: Data, classes: int) -> Tensor:
    """(N,C)"""
    return one_hot(torch.from_numpy(np.asarray(data.label)), classes).float()


def _views(batch: Batch, probs: Tensor) -> RationaleBatch:
    return RationaleBatch(batch.ids, batch.mask, probs, batch.index, present=batch.present)


def _budget(model: Rationalizer, train: Data) -> Tensor:
    """Share and spans of random selections of tokens.  (2,)"""
    if model.selection_config.share is not None:
        return torch.tensor([model.selection_config.share, model.selection_config.spans or 0])
    if model.selection_config.granularity == "sentence":
        return torch.zeros(2)
    tokens = chosen = pieces = 0.0
    for _, batch, said in infer.forwards(model, train):
        tokens += float(batch.mask.sum())
        chosen += float(said.selected.sum())
        pieces += float(
            (said.selected.diff(dim=-1, prepend=torch.zeros_like(said.selected[:, :1])) & said.selected).sum()
        )
    return torch.tensor([max(chosen / max(1.0, tokens), 1e-6), max(1.0, np.rint(pieces / max(1, len(train))))])


class RationaleExplainer(Explainer):
    """What the model selected and read: one forward pass, of models that select."""

    class_specific: ClassVar[bool] = False
    requires: ClassVar[frozenset[Capability]] = frozenset({"selection"})
    selects_words: bool = True

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            said = model(batch, embedded)
        return Saliency(said.weights, said.logits, chances=said.probability)

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        if not isinstance(model, Rationalizer):
            return None
        return rationale_readings(model, batch, saliency.weights > 0, saliency.logits)

    def reader_accuracy(self, model: Model) -> float | None:
        return model.reader.accuracy if isinstance(model, Rationalizer) and model.reader is not None else None
