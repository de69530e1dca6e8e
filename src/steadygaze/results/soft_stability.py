"""SoftStabilities: per text, how often the label of the top words stays when other words are added.

Does not import torch.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from steadygaze.core.errors import one_line, printable
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.audit_config import SoftStabilityConfig
from steadygaze.results.data_frame import data_frame
from steadygaze.results.explanation import LABEL
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.row import JsonResult

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group

SCOPE = "random sets of added words, not the worst set, and not words that the text does not have"
LEAST = 5
"""Texts of the summary with the lowest bound."""


@dataclass(frozen=True, slots=True)
class SoftStability:
    """The soft stability rate of one text."""

    text: str
    label: Label
    """The label predicted from the selected words alone."""
    model_label: Label
    """The label of the whole text."""
    rate: float
    """Share of the sets of added words that leave `label` unchanged: of all sets, or of samples."""
    low: float
    """The true rate is between `low` and `high`, with the confidence of the settings."""
    high: float
    exact: bool
    """True if all sets were evaluated: the rate is the true one."""
    evaluated: int
    """Number of sets that were evaluated, with repetitions."""
    words: int
    """Words of the text that the model reads."""
    selected: tuple[str, ...]
    """The selected words, in the order of the text."""
    question: str | None = None

    @property
    def is_vacuous(self) -> bool:
        """True if no word can be added: the rate is 1 for any model."""
        return self.words <= len(self.selected)

    def line(self) -> str:
        """Rate, lower bound, label and text, separated by tabs."""
        bound = "exact" if self.exact else f"at least {percent(self.low, 1)}"
        label = one_line(self.label, LABEL)
        if self.label != self.model_label:
            label += f" (whole text: {one_line(self.model_label, LABEL)})"
        return f"{percent(self.rate, 1)}\t{bound}\t{label}\t{printable(' '.join(self.text.split()))}"


@dataclass(frozen=True, repr=False)
class SoftStabilities(JsonResult, Sequence[SoftStability]):
    """One SoftStability per text, in the order of the texts."""

    rows: tuple[SoftStability, ...]
    """The rates and their bounds."""
    config: SoftStabilityConfig
    """The settings."""
    health: Health = HEALTHY
    """Known-bad states of the model."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return replace(self, rows=self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __iter__(self) -> Iterator[SoftStability]:
        return iter(self.rows)

    @property
    def mean_rate(self) -> float | None:
        """Mean rate of the texts to which a word can be added; None: there are none."""
        return self._mean("rate")

    def summary(self) -> dict[str, Any]:
        """Counts and means over all texts.

        A rate is vacuous if no word can be added.  Means are over the other texts.

        Returns
        -------
        dict
            Name -> number; None: not defined.
        """
        return {
            "texts": len(self),
            "vacuous": sum(row.is_vacuous for row in self.rows),
            "exact": sum(row.exact for row in self._others),
            "other_label": sum(row.label != row.model_label for row in self.rows),
            "mean_rate": self.mean_rate,
            "mean_low": self._mean("low"),
            "mean_high": self._mean("high"),
        }

    def least_stable(self, count: int = LEAST) -> list[SoftStability]:
        """The texts with the lowest bound.

        Parameters
        ----------
        count : int, default=5
            Number of texts.

        Returns
        -------
        list of SoftStability
            In ascending order of `low`, without vacuous rates.
        """
        return heapq.nsmallest(count, self._others, key=lambda row: row.low)

    @property
    def _others(self) -> list[SoftStability]:
        return [row for row in self.rows if not row.is_vacuous]

    def _mean(self, name: str) -> float | None:
        values = [float(getattr(row, name)) for row in self._others]
        return fmean(values) if values else None

    def to_dict(self) -> dict[str, Any]:
        """The rates as values for JSON.

        Returns
        -------
        dict
            The scope, the settings, the summary and every row.
        """
        return {
            **GENERATOR,
            "health": self.health.to_list(),
            "sentence": SCOPE,
            "settings": asdict(self.config),
            "summary": self.summary(),
            "rows": [{**asdict(row), "vacuous": row.is_vacuous} for row in self.rows],
        }

    def to_pandas(self) -> "DataFrame":
        """The rates as a table.

        Returns
        -------
        pandas.DataFrame
            One row per text.
        """
        return data_frame([asdict(row) for row in self.rows])

    def lines(self) -> list[tuple[str, str]]:
        """The summary for a terminal.

        Returns
        -------
        list of (str, str)
            Description and value.
        """
        summary, total, config = self.summary(), len(self), self.config
        if not total:
            return [("texts", "0")]
        others = total - summary["vacuous"]
        lines = []
        if others:
            words = f"top {config.top_words} ({config.explainer}), with at most {config.added:,} added"
            rate, low = summary["mean_rate"], summary["mean_low"]
            lines = [
                (f"mean soft stability rate of the {words}", percent(rate, 1)),
                ("mean lower bound", percent(low, 1)),
                ("texts whose rate is exact: all sets were evaluated", _share(summary["exact"], others)),
            ]
        lines.append(
            ("texts whose top words alone get another label than the text", _share(summary["other_label"], total))
        )
        if summary["vacuous"]:
            lines.append(("vacuous: texts without another word to add", _share(summary["vacuous"], total)))
        return lines

    def confidence_note(self) -> str:
        """The meaning of the confidence level.

        Returns
        -------
        str
            One sentence.
        """
        level, samples = percent(self.config.confidence, 1), f"{self.config.samples:,}"
        return f"Each bound holds for its text with a confidence of {level} ({samples} samples); exact rates always."

    def __str__(self) -> str:
        numbers = [f"{description}: {value}" for description, value in self.lines()]
        return "\n".join([*map(str, self.health.lines), f"Soft stability: {SCOPE}.", *numbers, self.confidence_note()])

    __repr__ = __str__

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, show_header=False)
        for description, value in self.lines():
            table.add_row(Text(description), Text(value))
        least = Table("rate", "at least", "label", "least stable texts", box=None, pad_edge=False, header_style="bold")
        for row in self.least_stable() if len(self) > 1 else []:
            words = Text(one_line(row.text), no_wrap=True, overflow="ellipsis")
            least.add_row(percent(row.rate, 1), percent(row.low, 1), Text(one_line(row.label, 24)), words)
        notes = [Text(note, style="dim") for note in (f"This is about {SCOPE}.", self.confidence_note())]
        body = (table, Text(), least, Text()) if least.row_count else (table,)
        return Group(*self.health.lines, *body, *notes)


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,} ({percent(count / total, 1)})"
