"""Fitted: a selector as an explainer, one forward pass beside the black box's own.

Learned: a method, what it learnt, and the words it knows.  Fitting it to a model's answers, and how well it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.maths import masked
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.text_tokenizer import Kind
from steadygaze.explainers.explainer import PREDICTED, Explainer, Saliency, SelectionPredictions, class_balanced
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import Watch, silent
from steadygaze.explainers.learned.cxplain import (
    CXPlain,
    EffectTargets,
    Ensemble,
    FittedCXPlain,
    members,
    text_effects,
    text_member,
)
from steadygaze.explainers.learned.fit_config import method_name
from steadygaze.explainers.learned.independent_reader import read, uniform_subsets
from steadygaze.explainers.learned.removal_effects import Removal, predict_selected, remainder_agreement
from steadygaze.explainers.learned.selector import InputBatch, SelectorConfig
from steadygaze.explainers.learned.selector_training import SelectorFit
from steadygaze.explainers.learned.text_inputs import (
    Following,
    Known,
    Seeing,
    TextInputs,
    Vocabulary,
    text_nets,
    vocabulary,
)
from steadygaze.models import k_subset
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Model
from steadygaze.training.progress import Watcher


class FittedSelector(Explainer):
    """A fitted selector: the k words it takes, each with the chance of being drawn first; no other word has any."""

    class_specific: ClassVar[bool] = False
    selects_words = True

    def __init__(
        self, name: str, how: SelectorConfig, nets: nn.ModuleDict, table: Seeing, accuracy: float | None = None
    ) -> None:
        """`accuracy`: of the independent reader on held-out texts, where it is known."""
        self.name, self.how, self.nets, self.table, self.accuracy = name, how, nets, table, accuracy

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views, scores = self._scores(batch, logits)
        floor = torch.finfo(torch.float64).tiny  # selected is selected, however sure the selector is of another
        shares = masked.softmax(scores.double(), views.able).clamp_min(floor)
        return Saliency(
            views.dealt(shares * k_subset.top_k_subset(scores, views.able, self.how.k)) * batch.mask, logits
        )

    def own(self, batch: Batch, saliency: Saliency) -> Tensor:
        """What the approximator predicts from the selected words.  (B,C)"""
        views, chosen = self._selected(batch, saliency)
        with inference(self.nets):
            found: Tensor = self.nets["approximator"](views, chosen)
        return found

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        if "reader" not in self.nets:  # a folder of version 0.1.0
            return None
        draw = uniform_subsets(self.how.k)
        return read(self.nets["reader"], *self._selected(batch, saliency), draw, self.own(batch, saliency))

    def reader_accuracy(self, model: Model) -> float | None:
        return self.accuracy

    def prediction_input(self, batch: Batch, saliency: Saliency) -> Tensor:
        """log P(y|m): what the mask alone tells of each class.  (B,C)"""
        with inference(self.nets):
            found: Tensor = self.nets["judge"](self._selected(batch, saliency)[1])
        return found

    def _selected(self, batch: Batch, saliency: Saliency) -> tuple[InputBatch, Tensor]:
        """What the networks see, and 1.0 on the units that are selected, padding among them if it can be.  (B,D)"""
        views, scores = self._scores(batch, saliency.logits)
        return views, k_subset.top_k_subset(scores, views.able, self.how.k)

    def _scores(self, batch: Batch, logits: Tensor) -> tuple[InputBatch, Tensor]:
        """What the selector gives each unit.  (B,D)"""
        views = self.views(batch, logits)
        with inference(self.nets):
            scores: Tensor = self.nets["selector"](views, views.probs if self.how.query else None)
        return views, scores

    def views(self, batch: Batch, logits: Tensor) -> InputBatch:
        """A batch of the black box's, as the networks see it."""
        return self.table.views(batch, logits.double().softmax(-1).float())


@dataclass(frozen=True)
class QueriedTexts:
    """Texts, and what the black box says of them."""

    data: Data
    probs: Tensor  # (N,C)
    kept: AnswerCache = field(default_factory=AnswerCache)
    """Where more answers are kept as they come."""

    def effects(self, how: CXPlain) -> AnswerCache:
        """Where those to texts that lack a word are."""
        return self.kept.part("effects", removal=how.removal, max_units=how.max_units)


@dataclass(frozen=True)
class FittedExplainer:
    config: SelectorConfig | CXPlain
    vocabulary: Vocabulary
    networks: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    def explainer(
        self, tokens: Known, device: torch.device, accuracy: float | None = None
    ) -> FittedSelector | FittedCXPlain:
        """For a black box that reads these tokens; `accuracy`: of the independent reader, where it is known."""
        nets = self.networks.to(device)
        if isinstance(self.config, CXPlain):
            return FittedCXPlain(self.config, nets, Following(self.vocabulary, tokens))
        return FittedSelector(
            method_name(self.config), self.config, nets, Following(self.vocabulary, tokens, self.config), accuracy
        )


@dataclass(frozen=True)
class FitContext:
    """How an explainer is fitted, whichever it is."""

    tokens: Sequence[str]
    """The token of each of the black box's ids."""
    kind: Kind
    watcher: Watcher
    device: torch.device
    seed: int = 0
    watch: Watch = silent

    def learn(
        self, how: SelectorConfig | CXPlain, model: Model, train: QueriedTexts, validation: QueriedTexts
    ) -> FittedExplainer:
        """From what the black box says of texts."""
        known = vocabulary(train.data, self.tokens, self.kind)
        table = known.table(self.tokens, None if isinstance(how, CXPlain) else how).to(self.device)
        here, there = (TextInputs(part.data, part.probs, table, self.device) for part in (train, validation))
        run = self.watcher, self.device, self.seed
        fit: Ensemble | SelectorFit
        if isinstance(how, CXPlain):
            worth = text_effects(how, model, here, train.effects(how), self.watch)
            other = text_effects(how, model, there, validation.effects(how), self.watch)
            make = partial(text_member, how, len(known.words))
            fit = Ensemble(how, make, EffectTargets(here, worth), EffectTargets(there, other), *run)
        else:
            fit = SelectorFit(how, partial(text_nets, how, len(known.words), train.probs.shape[1]), here, there, *run)
        return FittedExplainer(how, known, fit.execute(), fit.history)


def untrained_networks(how: SelectorConfig | CXPlain, words: int, classes: int) -> nn.ModuleDict:
    """Networks that nothing has been taught."""
    if isinstance(how, CXPlain):
        return members(how, partial(text_member, how, words))
    return text_nets(how, words, classes)


def measure_selection(
    model: Model, fitted: FittedSelector | FittedCXPlain, data: Data, removal: Removal = "delete", batch_size: int = 256
) -> dict[str, Tensor]:
    """Of each text, whether the black box says the same of what is selected, and of the rest, if there is any (else
    nan); whether the approximator guesses it; what the judge loses, in nats; whether the independent reader gives the
    predicted class; and that class.  (N,) each
    """
    if isinstance(fitted, FittedCXPlain):  # selected are the k heaviest, whatever is shown
        fitted = FittedCXPlain(replace(fitted.how, top_words="heaviest"), fitted.nets, fitted.table)
    places, parts = [], []
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(model.device)
        saliency = fitted.explain(model, batch)
        said, kept = saliency.logits.argmax(-1), saliency.weights > 0
        alone = predict_selected(model, batch, kept, removal)
        found = {
            "post-hoc-accuracy": alone.argmax(-1) == said,
            "post-hoc-accuracy/unselected": remainder_agreement(model, batch, batch.mask & ~kept, said, removal),
            **(_guessed(fitted, model, batch, saliency, alone) if isinstance(fitted, FittedSelector) else {}),
            PREDICTED: said,
        }
        places.append(rows)
        parts.append({name: values.double().cpu() for name, values in found.items()})
    order = torch.from_numpy(np.argsort(np.concatenate(places), kind="stable"))
    return class_balanced({name: torch.cat([part[name] for part in parts])[order] for name in parts[0]})


def _guessed(
    fitted: FittedSelector, model: Model, batch: Batch, saliency: Saliency, alone: Tensor
) -> dict[str, Tensor]:
    """What only a selector has: an approximator, a classifier of masks, and an independent reader.  (B,) each

    `alone`: what the black box predicts from the selected words.  (B,C)
    """
    said, readings = saliency.logits.argmax(-1), fitted.readings(model, batch, saliency)
    told = fitted.prediction_input(batch, saliency).gather(-1, said.unsqueeze(-1)).squeeze(-1)
    found = {"fidelity": fitted.own(batch, saliency).argmax(-1) == said, "probe-loss": -told}
    return found if readings is None else {**found, **readings.measures(saliency.logits, alone)}
