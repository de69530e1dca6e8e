"""Fitted explainers: fit a method to a model's predictions, explain with it, and measure its selections."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.maths import distributions, k_subset
from steadygaze.core.types import Batch, OnProgress, Removal, no_progress
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.text_tokenizer import Kind
from steadygaze.explainers.explainer import (
    PREDICTED,
    Explainer,
    ReaderFacts,
    Saliency,
    SelectionPredictions,
    class_balanced,
)
from steadygaze.explainers.learned.answer_cache import AnswerCache
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
from steadygaze.explainers.learned.l2x import InputBatch, InputSplit, SelectorConfig
from steadygaze.explainers.learned.removal_effects import RemovalEffects, predict_selected, remainder_agreement
from steadygaze.explainers.learned.selector_training import SelectorFit
from steadygaze.explainers.learned.text_inputs import (
    GrowingTable,
    GrowingTokenizer,
    TextInputs,
    TokenTable,
    Vocabulary,
    text_nets,
    vocabulary,
)
from steadygaze.models.inference import Model, inference
from steadygaze.training.progress import Watcher


class FittedSelector(Explainer):
    """A fitted selector: k words, each with its selection probability as weight; all other words have weight 0."""

    class_specific: ClassVar[bool] = False
    selects_words = True

    def __init__(
        self, name: str, config: SelectorConfig, nets: nn.ModuleDict, table: TokenTable, facts: ReaderFacts
    ) -> None:
        self.name, self.config, self.nets, self.table, self.facts = name, config, nets, table, facts

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views, scores = self._scores(batch, logits)
        weights = selection_weights(scores, views.selectable, self.config.k)
        return Saliency(views.token_weights(weights) * batch.mask, logits)

    def own(self, batch: Batch, saliency: Saliency) -> Tensor:
        """Prediction of the approximator from the selected words.  (B,C)"""
        views, mask = self.selected(batch, saliency)
        with inference(self.nets):
            logits: Tensor = self.nets["approximator"](views, mask)
        return logits

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        if "reader" not in self.nets:
            return None
        draw, own = uniform_subsets(self.config.k), self.own(batch, saliency)
        return read(self.nets["reader"], *self.selected(batch, saliency), draw, own, self.nets["approximator"])

    def reader_facts(self, model: Model) -> ReaderFacts:
        return self.facts

    def selected(self, batch: Batch, saliency: Saliency) -> tuple[InputBatch, Tensor]:
        """Inputs of the networks, and the mask of selected units.  (B,D)"""
        views, scores = self._scores(batch, saliency.logits)
        return views, k_subset.top_k_subset(scores, views.selectable, self.config.k)

    def _scores(self, batch: Batch, logits: Tensor) -> tuple[InputBatch, Tensor]:
        """Inputs of the networks, and the selector's scores.  (B,D)"""
        views = self.table.views(batch, logits.double().softmax(-1).float())
        with inference(self.nets):
            scores: Tensor = self.nets["selector"](views, views.probs if self.config.conditioned else None)
        return views, scores


@dataclass(frozen=True)
class QueriedTexts:
    data: Data
    probs: Tensor  # (N,C)
    cache: AnswerCache = field(default_factory=AnswerCache)
    """Cache of further answers."""

    def effects(self, config: CXPlain) -> AnswerCache:
        """Cache of the answers to texts with a removed word."""
        return self.cache.part("effects", removal=config.removal, max_units=config.max_units)


@dataclass(frozen=True)
class FittedExplainer:
    config: SelectorConfig | CXPlain
    vocabulary: Vocabulary
    networks: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    def explainer(
        self, tokens: GrowingTokenizer, device: torch.device, facts: ReaderFacts | None = None
    ) -> FittedSelector | FittedCXPlain:
        """For a black box with these tokens."""
        nets = self.networks.to(device)
        table = GrowingTable(self.vocabulary, tokens, self.config.padded_length)
        if isinstance(self.config, CXPlain):
            return FittedCXPlain(self.config, nets, table)
        return FittedSelector(method_name(self.config), self.config, nets, table, facts or ReaderFacts())


@dataclass(frozen=True)
class FitContext:
    """Settings of a fit that do not depend on the method."""

    tokens: Sequence[str]
    """The token of each of the black box's ids."""
    kind: Kind
    watcher: Watcher
    device: torch.device
    seed: int = 0
    on_progress: OnProgress = no_progress

    def learn(
        self, config: SelectorConfig | CXPlain, model: Model, train: QueriedTexts, validation: QueriedTexts
    ) -> FittedExplainer:
        """Fit the method to the black box's predictions."""
        words = vocabulary(train.data, self.tokens, self.kind)
        table = words.table(self.tokens, config.padded_length).to(self.device)
        parts = (train, validation)
        inputs = [TextInputs(part.data, part.probs, table, self.device) for part in parts]

        def effects(config: CXPlain, split: int) -> RemovalEffects:
            return text_effects(config, model, inputs[split], parts[split].effects(config), self.on_progress)

        make = partial(untrained_networks, config, len(words.words), train.probs.shape[1])
        return FittedExplainer(
            config, words, *fit_networks(config, make, inputs, effects, self.watcher, self.device, self.seed)
        )


def fit_networks(
    config: SelectorConfig | CXPlain,
    make: Callable[[], nn.ModuleDict],
    inputs: Sequence[InputSplit],
    effects: Callable[[CXPlain, int], RemovalEffects],
    *run: Any,
) -> tuple[nn.ModuleDict, list[dict[str, Any]]]:
    """Fitted networks and the history of the fit.

    `inputs`: training and validation split; `effects`: effects of removing the units of split 0 or 1, for
    CXPlain.  `run`: watcher, device and seed.
    """
    fit: Ensemble | SelectorFit
    if isinstance(config, CXPlain):
        targets = [EffectTargets(split, effects(config, number)) for number, split in enumerate(inputs)]
        fit = Ensemble(config, make, targets[0], targets[1], *run)
    else:
        fit = SelectorFit(config, make, inputs[0], inputs[1], *run)
    return fit.execute(), fit.history


def selection_weights(scores: Tensor, selectable: Tensor, k: int) -> Tensor:
    """Selection probabilities of the k selected units; every one is above 0.  (B,D) -> (B,D) doubles"""
    shares = distributions.softmax(scores.double(), selectable).clamp_min(torch.finfo(torch.float64).tiny)
    return shares * k_subset.top_k_subset(scores, selectable, k)


def untrained_networks(config: SelectorConfig | CXPlain, words: int, classes: int) -> nn.ModuleDict:
    if isinstance(config, CXPlain):
        return members(config, partial(text_member, config, words))
    return text_nets(config, words, classes)


def measure_selection(
    model: Model, fitted: FittedSelector | FittedCXPlain, data: Data, removal: Removal = "delete", batch_size: int = 256
) -> dict[str, Tensor]:
    """Measures of the selection, by name: (N,) each.

    Agreement of the black box on the selected words, and on the unselected words (NaN without such words).  Fidelity of
    the approximator.  Loss of the mask probe in nats.  Accuracy of the independent reader.  The predicted class.
    """
    if isinstance(fitted, FittedCXPlain):  # the k top-weighted words are measured
        fitted = FittedCXPlain(replace(fitted.config, top_words="top-k"), fitted.nets, fitted.table)
    row_parts, parts = [], []
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(model.device)
        saliency = fitted.explain(model, batch)
        predicted, selected = saliency.logits.argmax(-1), saliency.weights > 0
        selected_logits = predict_selected(model, batch, selected, removal)
        values = {
            "post-hoc-accuracy": selected_logits.argmax(-1) == predicted,
            "post-hoc-accuracy/unselected": remainder_agreement(model, batch, ~selected, predicted, removal),
            PREDICTED: predicted,
        }
        if isinstance(fitted, FittedSelector):
            units = fitted.selected(batch, saliency)
            values |= selector_measures(fitted.config, fitted.nets, *units, saliency.logits, selected_logits)
        row_parts.append(rows)
        parts.append({name: values.double().cpu() for name, values in values.items()})
    order = torch.from_numpy(np.argsort(np.concatenate(row_parts), kind="stable"))
    return class_balanced({name: torch.cat([part[name] for part in parts])[order] for name in parts[0]})


def selector_measures(
    config: SelectorConfig,
    nets: nn.ModuleDict,
    views: InputBatch,
    mask: Tensor,
    predictions: Tensor,
    selected_predictions: Tensor | None = None,
) -> dict[str, Tensor]:
    """Measures of the approximator, the mask probe and the independent reader.  (B,) each

    `mask`: the selected units (B,D).  `predictions`: of the black box (B,C).  `selected_predictions`: from the selected
    units alone.
    """
    predicted = predictions.argmax(-1)
    with inference(nets):
        logits = nets["approximator"](views, mask)
        log_probability = nets["probe"](mask).gather(-1, predicted.unsqueeze(-1)).squeeze(-1)
    measures = {"fidelity": logits.argmax(-1) == predicted, "probe-loss": -log_probability}
    if "reader" in nets:
        readings = read(nets["reader"], views, mask, uniform_subsets(config.k), logits, nets["approximator"])
        measures |= readings.measures(predictions, selected_predictions)
    return measures
