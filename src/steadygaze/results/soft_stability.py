"""SoftStabilities: per text, how often the label of the top words stays when other words are added.

Does not import torch.
"""

import heapq
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from steadygaze.core.errors import one_line, printable
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.audit_config import SoftStabilityConfig
from steadygaze.results.explanation import LABEL
from steadygaze.results.text_results import LEAST, TextResults, count_share

SCOPE = "random sets of added words, not the worst set, and not words that the text does not have"


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
class SoftStabilities(TextResults[SoftStability]):
    """One SoftStability per text, in the order of the texts."""

    config: SoftStabilityConfig
    """The settings."""
    scope = SCOPE
    title = "Soft stability:"

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

    def _settings(self) -> dict[str, Any]:
        return {"settings": asdict(self.config)}

    def _row_values(self) -> list[dict[str, Any]]:
        return [{**asdict(row), "vacuous": row.is_vacuous} for row in self.rows]

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
                ("texts whose rate is exact: all sets were evaluated", count_share(summary["exact"], others)),
            ]
        lines.append(
            ("texts whose top words alone get another label than the text", count_share(summary["other_label"], total))
        )
        if summary["vacuous"]:
            lines.append(("vacuous: texts without another word to add", count_share(summary["vacuous"], total)))
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

    def _notes(self) -> list[str]:
        return [self.confidence_note()]

    def _least(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        rows = [(percent(row.rate, 1), percent(row.low, 1), row.label, row.text) for row in self.least_stable()]
        return ("rate", "at least", "label", "least stable texts"), rows
