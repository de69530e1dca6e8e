"""Case: one model, one split and the explanations asked about, with what every protocol needs of them.

Clean predictions and saliencies are made once, whatever is asked afterwards.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.measure.stability import jensen_shannon
from steadygaze.audit.probe.erase import Removal
from steadygaze.audit.probe.look import look
from steadygaze.batch import Data, by_length, collate
from steadygaze.errors import UserError
from steadygaze.explain.explainer import Explainer
from steadygaze.perturb.words import Synonyms
from steadygaze.reader import Reader
from steadygaze.types import Batch

EXPENSIVE = 30
"""Passes over a text from which on an explainer is asked about a sample of the texts."""
Rows = NDArray[np.int64]


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Plan:
    """What is done to the texts, and how thoroughly."""

    radius: float = 0.1
    """How far entries of word vectors move, in standard deviations of all of them."""
    synonyms: Mapping[str, tuple[Synonyms, int]] = field(default_factory=dict)
    """Name of a probe -> a table, and how many words are exchanged."""
    removal: Removal = "delete"
    """How words are erased."""
    k: int = 7
    """How many of the heaviest words are compared."""
    sample: int = 100
    """Texts that expensive explainers and probes are asked about."""
    thorough: bool = False
    """Whether what reads a text hundreds of times is asked too."""
    seed: int = 0
    batch_size: int = 256
    most_tokens: int = 1 << 13
    """Read at once where words are erased: this bounds the memory."""

    def __post_init__(self) -> None:
        for name in ("k", "sample", "batch_size", "most_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, found {getattr(self, name)}")
        if not self.radius >= 0:
            raise UserError(f"radius must be 0 or more, found {self.radius}")


@dataclass(frozen=True)
class Case:
    model: Reader
    data: Data
    explainers: Mapping[str, Explainer]
    plan: Plan = field(default_factory=Plan)
    evidence: Tensor | None = None  # (N,T) bool: what a person marked; no word of a text nobody was asked about
    first: Tensor | None = None  # (N,T) bool: the first sentence
    blank: Tensor | None = None  # (N,T) bool: tokens without a letter or a digit
    others: tuple["Case", ...] = ()
    """The same texts put to models that were trained alike, with other seeds."""
    watch: Callable[[str, int, int], None] = silent
    """Told what is being done, how many texts are done and of how many."""

    def __len__(self) -> int:
        return len(self.data)

    @property
    def width(self) -> int:
        return int(self.data.text.lengths.max(initial=1))

    @cached_property
    def everything(self) -> Rows:
        return np.arange(len(self))

    @cached_property
    def sample(self) -> Rows:
        """Texts for what is expensive: the same for everything, drawn by the plan's seed."""
        drawn = np.random.default_rng(self.plan.seed).permutation(len(self))[: self.plan.sample]
        return np.sort(drawn)

    def rows(self, name: str) -> Rows:
        """Of which texts this explainer is asked."""
        return self.sample if self.explainers[name].passes >= EXPENSIVE else self.everything

    def batches(self, rows: Rows | None = None) -> Iterator[tuple[Rows, Batch]]:
        """Until every row has been read once, shortest texts first; on the model's device."""
        chosen = self.everything if rows is None else rows
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
        chosen = self.everything if rows is None else rows
        places: list[Rows] = []
        parts: list[dict[str, Tensor]] = []
        done = 0
        for some, batch in self.batches(chosen):
            parts.append({name: value.double().cpu() for name, value in work(some, batch).items()})
            places.append(some)
            done += len(some)
            self.watch(what, done, len(chosen))
        found = {}
        for name in parts[0] if parts else ():
            laid = torch.cat([part[name] for part in parts])
            whole = laid.new_full((len(self), *laid.shape[1:]), torch.nan)
            whole[torch.from_numpy(np.concatenate(places))] = laid
            found[name] = whole
        return found

    @cached_property
    def probs(self) -> Tensor:
        """(N,C) what the model predicts of the texts as they are."""
        return self.gather("reading", lambda _, batch: {"probs": look(self.model, batch).probs})["probs"]

    @cached_property
    def mask(self) -> Tensor:
        """(N,T) words, on the CPU."""
        return collate(self.data, self.everything).mask

    @cached_property
    def _saliency(self) -> dict[str, Tensor]:
        return {}

    def saliency(self, name: str) -> Tensor:
        """(N,T) what an explainer says of the clean texts; NaN in texts it was not asked about."""
        if name not in self._saliency:
            explainer = self.explainers[name]

            def work(_: Rows, batch: Batch) -> dict[str, Tensor]:
                weights = explainer.explain(self.model, batch).weights
                return {"weights": pad(weights, (0, self.width - weights.shape[1]))}

            self._saliency[name] = self.gather(name, work, self.rows(name))["weights"]
        return self._saliency[name]

    def of(self, whole: Tensor, rows: Rows, batch: Batch) -> Tensor:
        """These rows of something (N,T), as wide as the batch and where it is."""
        return whole[torch.from_numpy(rows)][:, : batch.ids.shape[1]].to(batch.ids.device)


def apart(one: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """How far two saliencies are from each other: Jensen-Shannon, in nats, of their shares.  (…,T), (…,T) -> (…,)

    What speaks for the class and what speaks against it are counted apart: w and −w are as far as can be.
    """
    twice = torch.cat([mask, mask], -1)
    both = [shares(torch.cat([w.clamp_min(0), (-w).clamp_min(0)], -1), twice) for w in (one, other)]
    return jensen_shannon(both[0], both[1], twice)


def shares(weights: Tensor, mask: Tensor) -> Tensor:
    """|w| / Σ|w|: a saliency as a distribution over the words; even where no word has any weight.  (…,T) -> (…,T)"""
    size = weights.abs().masked_fill(~mask, 0.0)
    total = size.sum(-1, keepdim=True)
    even = mask / mask.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(total > 0, size / total.clamp_min(torch.finfo(size.dtype).tiny), even.to(size.dtype))
