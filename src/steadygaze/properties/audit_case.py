"""The input and the output of a protocol.

AuditCase: one model, one split and its explainers, with cached predictions and saliencies.  Token values of
all texts are concatenated without padding, M tokens in all, like the ids of the split.

Finding: one number per text, or the reason why it is missing.  Texts with an empty selection have no top-weighted
words.  The findings leave them out and note their number; protocols/selection.py includes them.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.random_key import RandomKey, pair_key, text_key
from steadygaze.core.types import Batch, Label
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.splits import sample_rows
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.explainer import Explainer, Saliency, finite_weights
from steadygaze.models.inference import Capability, Model, selects
from steadygaze.perturbations.word_removal import units_of
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.properties.probes.best_orders import GOOD_ORDERS, good_orders
from steadygaze.properties.probes.erasure import Erasure
from steadygaze.properties.probes.other_words import words_of_other_texts
from steadygaze.properties.probes.subset_predictions import FEWEST_WORDS, THOROUGH_WORDS, WORDS, subset_predictions
from steadygaze.properties.probes.text_perturbations import MODEL_EXPLAINERS, Probe, gradient, observe, probes
from steadygaze.results.audit_config import ProbeConfig, Runtime
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.query_noise import QueryNoise
from steadygaze.results.row import Caveat, MeasureKey


class TrainingTask(StrEnum):
    """The tasks of an audit that train a model: their progress counts steps, not texts."""

    ADVERSARIAL = "adversarial attention: training"
    BIASED = "biased training"
    DEFAULT_TOKENS = "default tokens: training"
    SKEWED = "skewed training"
    UNIFORM = "uniform attention: training"


READING = "reading"
"""The task that predicts the original texts."""
ORDERING = "best orders of words"
"""The task that finds the best orders of the words."""
ENUMERATING = "every subset of words"
"""The task that predicts short texts with every subset of their words."""
EXPENSIVE = 30
"""Forward passes per text from which an explainer runs on a sample of the texts."""
Rows = NDArray[np.int64]
Key = TypeVar("Key", bound=Hashable)
"""The key of an array of values."""


@dataclass(frozen=True, slots=True)
class PerturbedSaliency:
    """The saliency and the predictions of perturbed texts; NaN in texts outside the probe's rows."""

    weights: Tensor  # (M,)
    probs: Tensor  # (N,C)


@dataclass(frozen=True)
class AuditCase:
    """The audited model with its texts, explainers and settings."""

    model: Model
    data: Data
    explainers: Mapping[str, Explainer]
    config: ProbeConfig = field(default_factory=ProbeConfig)
    rationales: Tensor | None = None  # (M,) bool: the human rationales; False in texts without one
    first: Tensor | None = None  # (M,) bool: the first sentence
    blank: Tensor | None = None  # (M,) bool: tokens without a letter or a digit
    others: tuple["AuditCase", ...] = ()
    """The same texts with models trained with other seeds."""
    classes: tuple[Label, ...] = ()
    """Class names, in the order of the probabilities; empty: class indices."""
    substitutions: Mapping[str, tuple[Synonyms, int]] = field(default_factory=dict)
    """Name of a probe -> a synonym table and the number of substituted words."""
    runtime: Runtime = field(default_factory=Runtime)
    grades: Tensor | None = None  # (M,) float: the graded marks; None: no rationale is graded
    filled: tuple[str, Tensor] | None = None
    """The name of a masked language model, and its words (M,) in place of those of the texts; −1: none."""
    noise: QueryNoise | None = None
    """How much the answers of a black box differ; None: not a black box."""
    chosen_probes: frozenset[str] | None = None
    """Names of the probes that run; None: all."""

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def all_rows(self) -> Rows:
        return np.arange(len(self))

    @cached_property
    def sample(self) -> Rows:
        """The texts for expensive explainers and probes, drawn with the seed."""
        return sample_rows(len(self), self.sample_size, self.config.seed)

    @property
    def sample_size(self) -> int:
        """The most texts that an expensive explainer or probe runs on."""
        return self.model.sample_size if self.config.sample is None else self.config.sample

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """The probes, by name."""
        named = probes(self.config, self.substitutions)
        return {
            name: probe for name, probe in named.items() if self.chosen_probes is None or name in self.chosen_probes
        }

    def rows(self, name: str) -> Rows:
        """The texts that this explainer runs on."""
        return self.sample if self.is_expensive(name) else self.all_rows

    def is_expensive(self, name: str) -> bool:
        return self.explainers[name].forward_passes >= EXPENSIVE

    def is_sampled(self, name: str, measure: str) -> bool:
        """True if a measure that decides a verdict is computed for a sample of the texts."""
        probe = self.probes.get(MeasureKey.parse(measure).probe)
        return self.is_expensive(name) or (probe is not None and probe.expensive)

    def batches(self, rows: Rows | None = None) -> Iterator[tuple[Rows, Batch]]:
        """Batches of all rows, shortest texts first, on the model's device."""
        selected_rows = self.all_rows if rows is None else rows
        part = Data(
            self.data.text.select(selected_rows),
            None if self.data.question is None else self.data.question.select(selected_rows),
        )
        for indices in by_length(part, self.runtime.batch_size, self.model.tokens_per_pass):
            yield selected_rows[indices], collate(self.data, selected_rows[indices]).to(self.model.device)

    def gather(
        self, task: str, work: Callable[[Rows, Batch], dict[Key, Tensor]], rows: Rows | None = None
    ) -> dict[Key, Tensor]:
        """The results of `work` for each batch, (B,…) by key, in the order of the split: (N,…), CPU, float64.

        NaN for texts outside `rows`.
        """
        row_parts: list[Rows] = []
        parts: list[dict[Key, Tensor]] = []
        for batch_rows, batch in self._with_progress(task, self.all_rows if rows is None else rows):
            parts.append({key: value.double().cpu() for key, value in work(batch_rows, batch).items()})
            row_parts.append(batch_rows)
        columns = {}
        for key in parts[0] if parts else ():
            values = torch.cat([part[key] for part in parts])
            column = values.new_full((len(self), *values.shape[1:]), torch.nan)
            column[torch.from_numpy(np.concatenate(row_parts))] = values
            columns[key] = column
        return columns

    def _with_progress(self, task: str, rows: Rows) -> Iterator[tuple[Rows, Batch]]:
        done = 0
        for batch_rows, batch in self.batches(rows):
            yield batch_rows, batch
            done += len(batch_rows)
            self.runtime.on_progress(task, done, len(rows))

    @cached_property
    def _observations(self) -> dict[str, Tensor]:
        attention = [name for name, explainer in self.explainers.items() if type(explainer) is Attention]
        self._saliency.update({name: self._empty_saliency() for name in attention})

        def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
            output = observe(self.model, batch)
            for name in attention:  # the same forward pass
                self.scatter_rows(self._saliency[name], rows, batch, output.weights)
            share = output.special_token_share
            return {"probs": output.probs} | ({} if share is None else {"special_token_share": share})

        return self.gather(READING, work)

    @property
    def probs(self) -> Tensor:
        """(N,C) the predictions on the original texts."""
        return self._observations["probs"]

    @property
    def special_token_share(self) -> Tensor | None:
        """(N,) the share of the attention on special tokens; None if unknown."""
        return self._observations.get("special_token_share")

    @cached_property
    def words(self) -> Tensor:
        """(N,) the number of words; the subword tokens of a word count as one."""
        starts = self.data.text.words if self.data.word_starts is None else self.data.word_starts
        return torch.from_numpy(self.data.text.counts(starts))

    @cached_property
    def token_counts(self) -> Tensor:
        """(N,) the number of tokens without special tokens."""
        return torch.from_numpy(self.data.text.counts(self.data.text.words))

    @cached_property
    def _saliency(self) -> dict[str, Tensor]:
        return {}

    def saliency(self, name: str) -> Tensor:
        """(M,) the saliency of the original texts; NaN in texts outside `rows(name)`."""
        if type(self.explainers[name]) is Attention:
            _ = self._observations  # computes the attention, too
        if name not in self._saliency:
            self._saliency[name] = self.explain_class(name)
        return self._saliency[name]

    def _empty_saliency(self) -> Tensor:
        """(M,) NaN"""
        return torch.full((len(self.data.text.ids),), torch.nan, dtype=torch.float64)

    @cached_property
    def perturbed(self) -> dict[tuple[str, str], "PerturbedSaliency"]:
        """Probe of embeddings and explainer -> the outputs of the perturbed texts."""
        return {}

    def keep_perturbed(self, probe: str, name: str, rows: Rows, batch: Batch, saliency: Saliency) -> None:
        probs = saliency.logits.double().softmax(-1).cpu()
        if (probe, name) not in self.perturbed:
            empty = probs.new_full((len(self), probs.shape[1]), torch.nan)
            self.perturbed[probe, name] = PerturbedSaliency(self._empty_saliency(), empty)
        kept = self.perturbed[probe, name]
        self.scatter_rows(kept.weights, rows, batch, saliency.weights.double())
        kept.probs[torch.from_numpy(rows)] = probs

    def explain_class(self, name: str, label: Tensor | None = None) -> Tensor:
        """(M,) the saliency for these classes (N,) instead of the predicted ones."""
        explainer, weights = self.explainers[name], self._empty_saliency()
        for rows, batch in self._with_progress(name, self.rows(name)):
            target = None if label is None else label[torch.from_numpy(rows)].to(batch.ids.device)
            saliency = explainer.explain(self.model, batch, target if explainer.class_specific else None)
            self.scatter_rows(weights, rows, batch, finite_weights(saliency, batch))
        return weights

    @cached_property
    def keys(self) -> Tensor:
        """(N,) a key for each text, or for each pair of text and question."""
        keys = torch.empty(len(self), dtype=torch.int64)
        for rows, batch in self.batches():
            keys[torch.from_numpy(rows)] = pair_key(batch).cpu()
        return keys

    @cached_property
    def unaccounted(self) -> dict[str, Tensor]:
        """Explainer -> (N,) how far the shown words do not account for the label; filled by content_leakage."""
        return {}

    @cached_property
    def erased(self) -> dict[str, Tensor]:
        """Explainer -> (N,2) the drop without its top words, and the probability of these alone; filled by erasure."""
        return {}

    def other_words(self, draw: int) -> Tensor:
        """(M,) a word of another text in place of each word; the order of the texts does not matter."""
        text, order = self.data.text, np.argsort(self.keys.numpy(), kind="stable")
        tokens, lengths = text.indices(order), np.asarray(text.lengths)[order]
        seed = RandomKey(self.config.seed).child(15, draw).key % (1 << 63)
        words = text.ids.copy()
        words[tokens] = words_of_other_texts(text.ids[tokens], text.words[tokens], lengths, seed)
        return torch.from_numpy(words)

    @property
    def fillers(self) -> Tensor:
        """(M,) the words that replace erased ones: of a masked language model, or else of other texts."""
        others = self.other_words(0)
        if self.filled is None:
            return others
        return torch.where(self.filled[1] < 0, others, self.filled[1].to(others.dtype))

    @cached_property
    def best_orders(self) -> tuple[Tensor, ...]:
        """(M,) the orders of the words of `good_orders`, for the sample; NaN in other texts."""
        orders = tuple(self._empty_saliency() for _ in range(GOOD_ORDERS))
        for rows, batch in self._with_progress(ORDERING, self.sample):
            full = self.probs[torch.from_numpy(rows)].to(batch.ids.device)
            for values, order in zip(orders, good_orders(self.model, batch, full), strict=True):
                self.scatter_rows(values, rows, batch, order)
        return orders

    @property
    def most_enumerated(self) -> int:
        """Words of the longest text of which every subset of the words is predicted."""
        return THOROUGH_WORDS if self.config.thorough else WORDS

    @cached_property
    def subset_probabilities(self) -> Tensor:
        """(N,2^most_enumerated) see `subset_predictions`, for the short texts of the sample."""
        words, most = self.words[torch.from_numpy(self.sample)].numpy(), self.most_enumerated
        erasure = Erasure(removal=self.config.removal, max_tokens=self.runtime.max_tokens)

        def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
            predicted = self.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device)
            return {ENUMERATING: subset_predictions(self.model, batch, predicted, erasure, most)}

        short = self.sample[(words >= FEWEST_WORDS) & (words <= most)]
        if not len(short):
            return torch.full((len(self), 1 << most), torch.nan, dtype=torch.float64)
        return self.gather(ENUMERATING, work, short)[ENUMERATING]

    @cached_property
    def _gradients(self) -> dict[bool, tuple[Tensor, NDArray[np.bool_]]]:
        """The gradients, and the texts that have been computed."""
        return {}

    def gradient(self, detach_attention: bool, rows: Rows) -> Tensor:
        """(M,) input × gradient of these texts at least, see `gradient`; each is computed once."""
        empty = self._empty_saliency(), np.zeros(len(self), np.bool_)
        values, computed = self._gradients.setdefault(detach_attention, empty)
        for batch_rows, batch in self._with_progress("gradient", rows[~computed[rows]]):
            slope = gradient(self.model, batch, detach_attention=detach_attention)
            self.scatter_rows(values, batch_rows, batch, slope)
            computed[batch_rows] = True
        return values

    def scatter_rows(self, all_values: Tensor, rows: Rows, batch: Batch, values: Tensor) -> None:
        """Write the values of a batch's tokens (B,T) to their positions in `all_values` (M,)."""
        all_values[self.data.text.indices(rows)] = values[batch.present].cpu()

    def gather_rows(self, all_values: Tensor, rows: Rows, batch: Batch) -> Tensor:
        """The values of a batch's tokens from `all_values` (M,), on its device; 0 for padding.  (B,T)"""
        values = all_values.new_zeros(batch.ids.shape)
        values[batch.present.cpu()] = all_values[self.data.text.indices(rows)]
        return values.to(batch.ids.device)


RANDOM = "random"
"""The explainer that serves as the baseline."""


def other_explainers(case: AuditCase) -> list[str]:
    """The explainers without the random baseline."""
    return [name for name in case.explainers if name != RANDOM]


def random_weights(case: AuditCase, name: str, rows: Rows, batch: Batch) -> Tensor:
    """The weights of an explainer, or random weights for the baseline.  (B,T)"""
    if name in case.explainers:
        return case.gather_rows(case.saliency(name), rows, batch)
    units = units_of(batch, question=False)
    weights = RandomKey(case.config.seed).child(7).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
    return units.on_first(weights)


@dataclass(frozen=True)
class Finding:
    """The values of a measure, with notes."""

    measure: str
    """A measure, or a measure and a probe: jensen-shannon/noise."""
    values: Tensor | None = None
    """(N,) in the order of the texts; NaN where undefined."""
    explainer: str | None = None
    """None: the finding is about the prediction."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """Other settings that the finding depends on."""
    notes: tuple[Note, ...] = ()
    """Remarks about the number."""
    absent: Note | None = None
    """Why the number is missing."""
    value: float | None = None
    """A number that is not a mean over texts."""
    interval: tuple[float, float] | None = None
    n: int = 0
    """The number of texts behind `value`."""
    chance: Tensor | None = None
    """The expected values of a random explanation: (N,), or () beside `value`."""
    of_models: Tensor | None = None
    """(S,N) the contribution of each model to the mean of `values`: the interval covers other models, too."""
    caveat: Caveat | None = None
    exact: int = 0
    """The number of texts whose `floor` and `best` are those of all orders of the words."""
    floor: Tensor | None = None
    """(N,) the values of shuffled weights.  With `best`, the score is the sum of the values between both."""
    best: Tensor | None = None
    """(N,) the best known values."""

    @property
    def key(self) -> MeasureKey:
        return MeasureKey.parse(self.measure)

    def __eq__(self, other: object) -> bool:
        """True if all fields are equal; tensors by their values, and NaN counts as equal to NaN."""
        if not isinstance(other, Finding):
            return NotImplemented
        return all(_is_same(getattr(self, item.name), getattr(other, item.name)) for item in fields(self))

    def __post_init__(self) -> None:
        if sum(item is not None for item in (self.values, self.value, self.absent)) != 1:
            raise ValueError(f"{self.measure}: pass exactly one of values, value and absent")


def _is_same(first: Any, second: Any) -> bool:
    if not isinstance(first, Tensor) or not isinstance(second, Tensor):
        return bool(first is second or first == second)
    return first.shape == second.shape and torch.allclose(first, second, rtol=0, atol=0, equal_nan=True)


NO_LABELS, ONLY_RANDOM = Note(NoteCode.NO_LABELS), Note(NoteCode.ONLY_RANDOM_EXPLAINER)


def missing_findings(names: Iterable[str], reason: Note) -> Iterator[Finding]:
    return (Finding(name, absent=reason) for name in names)


def explainer_or_none(case: AuditCase) -> str:
    """The audited explanation that is part of the forward pass; '' if there is none."""
    return next((name for name in MODEL_EXPLAINERS if name in case.explainers), "")


def lacks(capability: Capability) -> Note:
    """The reason for a number that needs another model."""
    return note(NoteCode.LACKS_CAPABILITY, capability=capability)


def missing_capability_reason(case: AuditCase) -> Note | None:
    """Why the attention is not audited; None if it is."""
    if explainer_or_none(case):
        return None
    return Note(NoteCode.ATTENTION_NOT_AUDITED) if "attention" in case.model.capabilities else lacks("attention")


NONE = Note(NoteCode.EMPTY_SELECTIONS)


def selecting_explainers(case: AuditCase) -> list[str]:
    """The explainers that select words."""
    return [name for name, explainer in case.explainers.items() if explainer.selects_words]


def texts_without_selection(case: AuditCase, name: str) -> Tensor:
    """(N,) bool: texts with words and an empty selection; all False for explainers that do not select words."""
    if name not in selecting_explainers(case):
        return torch.zeros(len(case), dtype=torch.bool)
    text = case.data.text
    selected = (case.saliency(name) != 0).numpy() & text.words  # NaN outside the sample counts
    return torch.from_numpy(text.counts(selected) == 0) & (case.words > 0)


def drop_texts(case: AuditCase, finding: Finding, dropped: Tensor) -> Finding:
    """The finding without the texts with an empty selection, `dropped` (N,)."""
    count = int(dropped.sum())
    if not count or finding.explainer is None:
        return finding
    words = case.words[torch.from_numpy(case.rows(finding.explainer))]
    if count == int((words > 0).sum()):
        return Finding(finding.measure, explainer=finding.explainer, settings=finding.settings, absent=NONE)
    if finding.absent:
        return finding
    values = None if finding.values is None else finding.values.masked_fill(dropped, torch.nan)
    left_out = note(NoteCode.LEFT_OUT_EMPTY, left=count, texts=len(words))
    return replace(finding, values=values, notes=(*finding.notes, left_out))


def interlocking_not_applicable(model: Model) -> Note | None:
    """Why the protocol does not apply; None if it does."""
    if not selects(model):
        return Note(NoteCode.NOT_A_RATIONALIZER)
    return None if model.selection_config.granularity == "sentence" else Note(NoteCode.SELECTS_WORDS)
