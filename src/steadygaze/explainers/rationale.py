"""Rationales of models that select words, and the independent reader that measures label leakage through them.

The reader is a copy of the predictor.  It is trained further on random selections of the training texts, and then
predicts from the rationalizer's selections (explainers/learned/independent_reader.py).  A network trained from scratch
would fail on small datasets, in which random selections seldom contain the words that determine the label.  The random
selections have the form of the rationalizer's:

    granularity = sentence           one sentence, drawn uniformly
    share, spans                     the same number of tokens and of windows, at random positions
    no budget                        the mean share and mean number of spans of its selections of training texts

The reader learns the labels, because the predictions of a leaking model may follow single words.  The accuracies of the
rationalizer and the reader are compared text by text, against the labels if known, else against the rationalizer's
predictions.  Selected words that carry the label give both the same accuracy.  A label that is encoded in the choice of
words is lost to the reader.

Two rules prevent false alarms:

    probabilities of the reader within UNSURE of the class frequencies count as a guess, 1 / C
    a text has no gap if the predictor predicts the same class from nearly all random selections of it (MIN_AGREEMENT)

The second rule also hides selections that say nothing.  A predictor may have a default class, which it predicts from
anything without evidence of another class.  The texts whose gap it sets to 0 are therefore counted for each predicted
class (`arbitrary-selection`), and `leakage-gap/raw` is the gap without the rule.

Example: the label is the exclusive or of two sentences, and one sentence is selected.  No sentence determines the
label, but generator and predictor can agree on one filler for each label: accuracy 1, the reader's 0.5.

Cost: READINGS forward passes of selected tokens per training text and epoch, once, after the last epoch.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from steadygaze.core.maths.distributions import top_k
from steadygaze.core.maths.rationale_windows import best_windows
from steadygaze.core.ragged import segment_count, segment_exists, segment_ids, segment_spread
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate
from steadygaze.explainers.explainer import Explainer, ReaderFacts, Saliency, SelectionPredictions
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
from steadygaze.explainers.learned.l2x import InputBatch, Rows
from steadygaze.explainers.learned.text_inputs import TextSplit
from steadygaze.models import inference as infer
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.inference import Capability, Model, inference, selects
from steadygaze.models.rationalizer import IndependentReader, Rationalizer

READINGS = 6
"""Random selections in the reader's training, per text and epoch of the fit."""
FEWEST = 100
"""Fewest steps for which a reader is trained."""
TRANSFORMER_RATE = 5e-5
UNSURE = 0.1


@dataclass(frozen=True, slots=True)
class RationaleBatch(InputBatch):
    """Texts whose units are tokens; special tokens are present but cannot be selected."""

    present: Tensor | None = None  # (B,T) bool
    sentences: Tensor | None = None  # (B,T) the given sentence of each token, as in `Batch`


@dataclass(frozen=True)
class RationaleInputs(TextSplit):
    """A split with the labels as targets of the reader."""

    probs: Tensor  # (N,C) 1 on the label
    device: torch.device

    def views(self, rows: Rows) -> RationaleBatch:
        return _views(collate(self.data, rows).to(self.device), self.probs[torch.from_numpy(rows)].to(self.device))


class _ViewReader(nn.Module):
    """An independent reader with the call signature of `ReaderFit`."""

    def __init__(self, reader: IndependentReader) -> None:
        super().__init__()
        self.reader = reader

    def forward(self, views: RationaleBatch, mask: Tensor) -> Tensor:
        assert views.present is not None
        logits: Tensor = self.reader(views.x, views.present, views.selectable, mask > 0)
        return logits


def fit_reader(
    model: Rationalizer, train: Data, validation: Data, read_texts: int, seed: int
) -> IndependentReader | None:
    """The reader of a trained rationalizer; None: the fit was too short.

    `read_texts`: number of training texts times epochs.
    """
    steps = min(STEPS, READINGS * read_texts // BATCH)
    if steps < FEWEST:
        return None
    device = next(model.parameters()).device
    training, held_out = (
        RationaleInputs(data, one_hot(torch.from_numpy(np.asarray(data.label)), model.classes).float(), device)
        for data in (train, validation)
    )
    budget = _budget(model, train)
    transformer = any(isinstance(module, Transformer) for module in model.modules())
    net = ReaderFit(
        lambda: _ViewReader(IndependentReader(model.predictor, model.classes)),
        random_selections(model, budget),
        training,
        held_out,
        device,
        seed,
        steps,
        TRANSFORMER_RATE if transformer else LEARNING_RATE,
        decay=True,
    ).execute()
    reader: IndependentReader = net.reader  # type: ignore[assignment]
    reader.budget.copy_(budget)
    reader.prior.copy_(training.probs.mean(0))
    return reader


def random_selections(model: Rationalizer, budget: Tensor) -> Draw:
    """Selections of the same form as the model's, at random positions."""
    share, spans = budget.tolist()

    def draw(views: InputBatch, key: RandomKey) -> Tensor:
        if model.selection_config.granularity == "token":
            scores = key.uniform(views.rows, views.selectable.shape[1], dtype=torch.float64)
            return best_windows(scores, views.selectable, share, round(spans) or None).float()
        units = views.sentences if isinstance(views, RationaleBatch) else None
        numbers = segment_ids(views.x, views.selectable, model.roles, units)
        sentences = max(1, int(segment_count(numbers).max()))
        real = segment_exists(numbers, sentences)
        return segment_spread(top_k(key.uniform(views.rows, sentences), real, 1), numbers).float()

    return draw


def rationale_readings(
    model: Rationalizer, batch: Batch, selected: Tensor, logits: Tensor
) -> SelectionPredictions | None:
    """Predictions of the independent reader from the selections (B,T); None: the model has no reader."""
    if model.reader is None:
        return None
    draw = random_selections(model, model.reader.budget)
    views = _views(batch, logits.double().softmax(-1))
    readings = read(_ViewReader(model.reader), views, selected.float(), draw, logits)
    return replace(
        readings,
        reader=_confident(readings.reader, model.reader.prior),
        random=_confident(readings.random, model.reader.prior),
        no_words=_confident(readings.no_words, model.reader.prior),
        gold=batch.label,
        agreement=_agreement(model, batch, views, draw, logits.argmax(-1)),
        exempt=True,
    )


def _agreement(model: Rationalizer, batch: Batch, views: InputBatch, draw: Draw, predicted: Tensor) -> Tensor:
    """Share of random selections from which the predictor predicts the same class.  (B,)"""
    with infer.inference(model):
        agreements = [
            model.read(batch, draw(views, RandomKey(STREAM).child(number))).argmax(-1) == predicted
            for number in range(DRAWS)
        ]
    return torch.stack(agreements).double().mean(0)


def _confident(logits: Tensor, prior: Tensor) -> Tensor:
    """Probabilities; uniform if they differ from the class frequencies by less than UNSURE.  (…,C)"""
    probs = logits.softmax(-1)
    unsure = ((probs - prior).abs().amax(-1) < UNSURE).unsqueeze(-1)
    return torch.where(unsure, torch.ones_like(probs) / probs.shape[-1], probs)


def _views(batch: Batch, probs: Tensor) -> RationaleBatch:
    return RationaleBatch(batch.ids, batch.mask, probs, batch.index, present=batch.present, sentences=batch.sentences)


def _budget(model: Rationalizer, train: Data) -> Tensor:
    """Share and spans of random selections of tokens.  (2,)"""
    if model.selection_config.share is not None:
        return torch.tensor([model.selection_config.share, model.selection_config.spans or 0])
    if model.selection_config.granularity == "sentence":
        return torch.zeros(2)
    tokens = selected = spans = 0.0
    for _, batch, output in infer.forwards(model, train):
        tokens += float(batch.mask.sum())
        selected += float(output.selected.sum())
        spans += float(
            (output.selected.diff(dim=-1, prepend=torch.zeros_like(output.selected[:, :1])) & output.selected).sum()
        )
    return torch.tensor([max(selected / max(1.0, tokens), 1e-6), max(1.0, np.rint(spans / max(1, len(train))))])


class RationaleExplainer(Explainer):
    """The model's own selection: one forward pass, for models that select words."""

    class_specific: ClassVar[bool] = False
    requires: ClassVar[frozenset[Capability]] = frozenset({"selection"})
    selects_words: bool = True

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            output = model(batch, embedded)
        sentences = None
        if selects(model) and model.selection_config.granularity == "sentence":
            sentences = segment_count(model.sentences(batch))
        return Saliency(output.weights, output.logits, chances=output.probability, sentences=sentences)

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        if not selects(model):
            return None
        return rationale_readings(model, batch, saliency.weights > 0, saliency.logits)

    def reader_facts(self, model: Model) -> ReaderFacts:
        if not selects(model) or model.reader is None:
            return ReaderFacts()
        return ReaderFacts(model.reader.accuracy, model.reader.arbitrary)
