"""Case: one model, one split and the explanations asked about, with what every protocol needs of them.

Clean predictions and saliencies are made once, whatever is asked afterwards.  What is known of every token is kept end
to end, as the split's ids are, M tokens in all: one long text among short ones costs what it is long.

Random words: what every other explanation of a text is held against.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.audit_config import ProbeConfig as ProbeConfig
from steadygaze.audit.probes.observation import observe
from steadygaze.audit.probes.text_perturbations import Probe, probes
from steadygaze.core.maths.divergence import jensen_shannon
from steadygaze.core.maths.masked import normalize
from steadygaze.core.maths.ranking import top_k_overlap
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Label
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers.explainer import Explainer, finite_weights
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import text_key, units_of

EXPENSIVE = 30
"""Passes over a text from which on an explainer is asked about a sample of the texts."""
Rows = NDArray[np.int64]


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class AuditCase:
    model: Model
    data: Data
    explainers: Mapping[str, Explainer]
    plan: ProbeConfig = field(default_factory=ProbeConfig)
    rationales: Tensor | None = None  # (M,) bool: what a person marked; no word of a text nobody was asked about
    first: Tensor | None = None  # (M,) bool: the first sentence
    blank: Tensor | None = None  # (M,) bool: tokens without a letter or a digit
    others: tuple["AuditCase", ...] = ()
    """The same texts put to models that were trained alike, with other seeds."""
    watch: Callable[[str, int, int], None] = silent
    """Told what is being done, how many texts are done and of how many."""
    classes: tuple[Label, ...] = ()
    """Names of the classes, in the order of the probabilities; empty: they have numbers."""

    def __len__(self) -> int:
        return len(self.data)

    @cached_property
    def all_rows(self) -> Rows:
        return np.arange(len(self))

    @cached_property
    def sample(self) -> Rows:
        """Texts for what is expensive: the same for everything, drawn by the plan's seed."""
        drawn = np.random.default_rng(self.plan.seed).permutation(len(self))[: self.plan.sample]
        return np.sort(drawn)

    @cached_property
    def probes(self) -> dict[str, Probe]:
        """What moves texts or their vectors, by name."""
        return probes(self.plan)

    def rows(self, name: str) -> Rows:
        """Of which texts this explainer is asked."""
        return self.sample if self.explainers[name].forward_passes >= EXPENSIVE else self.all_rows

    def batches(self, rows: Rows | None = None) -> Iterator[tuple[Rows, Batch]]:
        """Until every row has been read once, shortest texts first; on the model's device."""
        chosen = self.all_rows if rows is None else rows
        part = Data(
            self.data.text.select(chosen), None if self.data.question is None else self.data.question.select(chosen)
        )
        for places in by_length(part, self.plan.batch_size):
            yield chosen[places], collate(self.data, chosen[places]).to(self.model.device)

    def gather(
        self, what: str, work: Callable[[Rows, Batch], dict[str, Tensor]], rows: Rows | None = None
    ) -> dict[str, Tensor]:
        """What `work` says of each batch, (B,…) by name, put together in the order of the split: (N,…), CPU, doubles.

        Texts that were not asked about are NaN.
        """
        places: list[Rows] = []
        parts: list[dict[str, Tensor]] = []
        for some, batch in self._watched(what, self.all_rows if rows is None else rows):
            parts.append({name: value.double().cpu() for name, value in work(some, batch).items()})
            places.append(some)
        found = {}
        for name in parts[0] if parts else ():
            laid = torch.cat([part[name] for part in parts])
            whole = laid.new_full((len(self), *laid.shape[1:]), torch.nan)
            whole[torch.from_numpy(np.concatenate(places))] = laid
            found[name] = whole
        return found

    def _watched(self, what: str, rows: Rows) -> Iterator[tuple[Rows, Batch]]:
        done = 0
        for some, batch in self.batches(rows):
            yield some, batch
            done += len(some)
            self.watch(what, done, len(rows))

    @cached_property
    def _read(self) -> dict[str, Tensor]:
        def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
            seen = observe(self.model, batch)
            return {"probs": seen.probs} | (
                {} if seen.special_token_share is None else {"special_token_share": seen.special_token_share}
            )

        return self.gather("reading", work)

    @property
    def probs(self) -> Tensor:
        """(N,C) what the model predicts of the texts as they are."""
        return self._read["probs"]

    @property
    def special_token_share(self) -> Tensor | None:
        """(N,) how much of its look lies on special tokens; None of a model that does not say."""
        return self._read.get("special_token_share")

    @cached_property
    def words(self) -> Tensor:
        """(N,) how many each text has: all pieces of a word count as one."""
        begins = self.data.text.words if self.data.word_starts is None else self.data.word_starts
        before = pad(torch.from_numpy(begins).cumsum(0), (1, 0))
        return before[torch.from_numpy(self.data.text.starts)].diff()

    @cached_property
    def token_counts(self) -> Tensor:
        """(N,) how many tokens each text has, special tokens aside."""
        before = pad(torch.from_numpy(self.data.text.words).cumsum(0), (1, 0))
        return before[torch.from_numpy(self.data.text.starts)].diff()

    @cached_property
    def _saliency(self) -> dict[str, Tensor]:
        return {}

    def saliency(self, name: str) -> Tensor:
        """(M,) what an explainer says of the clean texts; NaN in texts it was not asked about."""
        if name not in self._saliency:
            self._saliency[name] = self.explain_class(name)
        return self._saliency[name]

    def explain_class(self, name: str, label: Tensor | None = None) -> Tensor:
        """The same, asked about these classes (N,) in place of the predicted ones."""
        explainer = self.explainers[name]
        found = torch.full((len(self.data.text.ids),), torch.nan, dtype=torch.float64)
        for rows, batch in self._watched(name, self.rows(name)):
            aim = None if label is None else label[torch.from_numpy(rows)].to(batch.ids.device)
            said = explainer.explain(self.model, batch, aim if explainer.class_specific else None)
            self.scatter_rows(found, rows, batch, finite_weights(said, batch))
        return found

    def scatter_rows(self, whole: Tensor, rows: Rows, batch: Batch, values: Tensor) -> None:
        """What a batch says of its tokens (B,T) in its place among all, (M,)."""
        whole[self._tokens(rows, batch)] = values[batch.present].cpu()

    def gather_rows(self, whole: Tensor, rows: Rows, batch: Batch) -> Tensor:
        """These rows of something (M,): (B,T), as wide as the batch and where it is; 0 where there is no token."""
        found = whole.new_zeros(batch.ids.shape)
        found[batch.present.cpu()] = whole[self._tokens(rows, batch)]
        return found.to(batch.ids.device)

    def _tokens(self, rows: Rows, batch: Batch) -> Tensor:
        """Where the tokens of these texts stand among all."""
        starts = torch.from_numpy(self.data.text.starts[rows]).unsqueeze(-1)
        return (starts + torch.arange(batch.ids.shape[1]))[batch.present.cpu()]


def saliency_divergence(one: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """How far two saliencies are from each other: Jensen-Shannon, in nats, of their shares.  (…,T), (…,T) -> (…,)

    What speaks for the class and what speaks against it are counted apart: w and −w are as far as can be, and so are
    some weight and none at all.
    """
    nowhere = [~has_weight(w, mask).unsqueeze(-1) for w in (one, other)]
    places = torch.cat([mask, mask, torch.ones_like(nowhere[0])], -1)
    laid = zip((one, other), nowhere, strict=True)
    both = [normalize(torch.cat([w.clamp_min(0), (-w).clamp_min(0), none.to(w.dtype)], -1), places) for w, none in laid]
    return jensen_shannon(both[0], both[1], places)


def shared_top_k(one: Tensor, other: Tensor, mask: Tensor, k: int) -> Tensor:
    """Which part of the k heaviest words they share; 0 where one alone has no weight.  (B,T), (B,T) -> (B,)"""
    return top_k_overlap(one, other, mask, k).masked_fill(has_weight(one, mask) != has_weight(other, mask), 0.0)


def has_weight(weights: Tensor, mask: Tensor) -> Tensor:
    """Whether any word has weight.  (…,T), (…,T) -> (…,) bool"""
    return ((weights != 0) & mask).any(-1)


RANDOM = "random"
"""The explainer that is the yardstick of the others, asked for or not."""


def other_explainers(case: AuditCase) -> list[str]:
    """The explainers that are held against it."""
    return [name for name in case.explainers if name != RANDOM]


def random_weights(case: AuditCase, name: str, rows: Rows, batch: Batch) -> Tensor:
    """What an explainer says of these texts; of random words, where they were not asked for, as they are drawn."""
    if name in case.explainers:
        return case.gather_rows(case.saliency(name), rows, batch)
    units = units_of(batch, question=False)
    drawn = RandomKey(case.plan.seed).child(7).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
    return units.on_first(drawn)
