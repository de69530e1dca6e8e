"""Evaluation: scores of predictions against labels, per class, with the confusion matrix.  Does not import torch.

    Reliability diagram (Guo et al. 2017, arXiv:1706.04599, §2), over bins B_m of the confidence c, M = 10:

    B_m         texts with c in ((m − 1)/M, m/M]; c = 0 belongs to B_1
    confidence  mean of c over B_m
    accuracy    share of correct predictions in B_m, with Wilson's interval

c is the probability of the predicted class.  Bins without texts are omitted.  The expected calibration error has bins
of its own, as in the paper's tables (properties/measures/correctness_measures.py).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import Console, one_line, unknown
from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of_resamples
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.types import Label
from steadygaze.results.data_frame import data_frame
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import interval, number
from steadygaze.results.health import HEALTHY, Health, without_health
from steadygaze.results.intervals import Interval, bootstrap_statistic, wilson_interval
from steadygaze.results.row import JsonResult, Row, json_values, plain

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group
    from rich.table import Table

OVERLAP = (
    "{} of {} texts were training texts: the scores are optimistic.  Use other texts; "
    "steadygaze train --test-share 0.2 --test-out held-out.csv writes some"
)
RELIABILITY_BINS = 10
"""M."""
TABLES = ("classes", "reliability")
"""Tables of `Evaluation.to_pandas`."""
PRINTED_CLASSES = 30
"""Most classes in a printed confusion matrix."""
LABEL = 24
"""Longest class name in a table, in characters."""


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Scores of one class."""

    label: Label
    precision: float
    """Share of the texts predicted as this class that belong to it; NaN: none was predicted."""
    recall: float
    """Share of its texts that are predicted as this class; NaN: it has no texts."""
    f1: float
    n: int
    """Texts of this class."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Texts whose confidence lies above `low`, and at most at `high`."""

    low: float
    high: float
    n: int
    """Texts in this bin."""
    confidence: float
    """Mean probability of the predicted class."""
    accuracy: float
    """Share of correct predictions."""
    interval: tuple[float, float]
    """Wilson's 95 % interval of the accuracy."""

    def columns(self) -> dict[str, Any]:
        """The values by column, as in `Row.columns`: `accuracy_low` and `accuracy_high` are the interval."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "interval"}
        return {**values, "accuracy_low": self.interval[0], "accuracy_high": self.interval[1]}


@dataclass(frozen=True, slots=True)
class WrongPrediction:
    row: int
    """Position of the text in the data, from 0."""
    text: str
    label: Label
    predicted: Label
    probability: float
    """Probability of the predicted class."""
    explanation: Explanation | None = None
    """The explanation of the prediction, in an audit."""

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return values if self.explanation is None else {**values, "explanation": self.explanation.to_dict()}


@dataclass(frozen=True, repr=False)
class Evaluation(JsonResult):
    """Predictions of a model against labels, as returned by `steadygaze.evaluate`."""

    model: str
    """Name of the model."""
    classes: tuple[Label, ...]
    """The classes, in the order of the probabilities; empty for a regression model."""
    rows: tuple[Row, ...]
    """Accuracy, macro-F1 and expected calibration error; MAE, R² and correlation of a regression model."""
    confusion: tuple[tuple[int, ...], ...]
    """Number of texts by label (row) and predicted class (column)."""
    errors: tuple[WrongPrediction, ...]
    """Wrong predictions, the most confident first; `evaluate` lists at most 100 of all `wrong`."""
    training_texts: int | None = None
    """Number of training texts among the texts; None: unknown."""
    reliability: tuple[ReliabilityBin, ...] = ()
    """The reliability diagram: bins of confidence that have texts, in ascending order.

    For one output of a multi-label model, the predicted class is whether the label applies.  A regression model
    predicts no class and has no bins."""
    health: Health = HEALTHY
    """Known-bad states of the model."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, measure: str) -> float:
        """The value of a measure."""
        values = {row.measure: row.value for row in self.rows}
        if measure not in values:
            raise unknown("measure", measure, values)
        return values[measure]

    @property
    def wrong(self) -> int:
        """Number of wrong predictions."""
        return sum(map(sum, self.confusion)) - sum(line[i] for i, line in enumerate(self.confusion))

    @property
    def printed_classes(self) -> tuple[int, ...]:
        """Positions of the classes in a printed confusion matrix: all, or of many those with most texts."""
        if len(self.classes) <= PRINTED_CLASSES:
            return tuple(range(len(self.classes)))
        counts = np.array(self.confusion)
        texts = counts.sum(0) + counts.sum(1)
        most = np.argsort(-texts, kind="stable")[:PRINTED_CLASSES]
        return tuple(np.sort(most[texts[most] > 0]).tolist())

    @property
    def overlap_warning(self) -> str | None:
        """A sentence about training texts among the texts; None: there are none, or it is unknown."""
        return overlap_sentence(self.training_texts, max((row.n for row in self.rows), default=0))

    @property
    def per_class(self) -> tuple[ClassScores, ...]:
        """Precision, recall, F1 and number of texts of each class."""
        counts = np.array(self.confusion, dtype=np.float64).reshape(len(self.classes), len(self.classes))
        hits, labeled, predicted = np.diag(counts), counts.sum(1), counts.sum(0)
        with np.errstate(invalid="ignore"):  # NaN for a class without texts or predictions
            columns = hits / predicted, hits / labeled, 2 * hits / (labeled + predicted)
        scores = zip(self.classes, *(column.tolist() for column in columns), labeled.astype(int).tolist(), strict=True)
        return tuple(ClassScores(*values) for values in scores)

    def to_dict(self) -> dict[str, Any]:
        return {
            **GENERATOR,
            "health": self.health.to_list(),
            "model": self.model,
            "classes": list(self.classes),
            "rows": [row.to_dict() for row in self.rows],
            "per_class": [{name: plain(getattr(item, name)) for name in item.__slots__} for item in self.per_class],
            "confusion": list(map(list, self.confusion)),
            "errors": [error.to_dict() for error in self.errors],
            "training_texts": self.training_texts,
            "reliability": [json_values(asdict(item)) for item in self.reliability],
        }

    def to_pandas(self, table: Literal["classes", "reliability"] = "classes") -> "DataFrame":
        """The scores of the classes, or the reliability diagram, as a table.

        Parameters
        ----------
        table : str, default="classes"
            "classes" or "reliability".

        Returns
        -------
        pandas.DataFrame
            One row per class: label, precision, recall, f1 and n.  One row per bin of the reliability diagram: low,
            high, n, confidence, accuracy, accuracy_low and accuracy_high.  A regression model has no classes: one row
            per score.
        """
        if table not in TABLES:
            raise unknown("table", table, TABLES)
        if table == "reliability":
            return data_frame([item.columns() for item in self.reliability])
        if not self.classes:
            return data_frame([row.columns() for row in self.rows])
        return data_frame([{name: getattr(item, name) for name in item.__slots__} for item in self.per_class])

    def __repr__(self) -> str:
        return f"<Evaluation of {self.model}: {', '.join(f'{row.measure} {number(row.value)}' for row in self.rows)}>"

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        names = [one_line(name, LABEL) for name in self.classes]
        scores = Table("measure", "value", "95 % interval", "n", box=None)
        for row in self.rows:
            scores.add_row(row.measure, number(row.value), interval(row), f"{row.n:,}")
        heading = [*self.health.lines, Text(f"Evaluation of {one_line(self.model)}", "bold")]
        if self.overlap_warning is not None:
            heading.append(Text(f"{self.overlap_warning}.", "yellow"))
        if not self.classes:
            return Group(*heading, scores)
        classes = Table("class", "precision", "recall", "F1", "n", box=None)
        for name, item in zip(names, self.per_class, strict=True):
            classes.add_row(name, *(number(value) for value in (item.precision, item.recall, item.f1)), f"{item.n:,}")
        printed = self.printed_classes
        counts = Table("label \\ predicted", *(names[i] for i in printed), box=None)
        for i in printed:
            counts.add_row(names[i], *(f"{self.confusion[i][j]:,}" for j in printed))
        return Group(*heading, scores, Text(), classes, Text(self.printed_note), counts)

    @property
    def printed_note(self) -> str:
        """Which classes a printed confusion matrix has; empty: all."""
        if len(self.printed_classes) == len(self.classes):
            return ""
        return f"the {len(self.printed_classes)} of {len(self.classes):,} classes with most labels and predictions"

    @property
    def reliability_table(self) -> "Table":
        """The bins of the reliability diagram, for the terminal."""
        from rich.table import Table

        table = Table("confidence", "mean confidence", "accuracy", "95 % interval", "n", box=None)
        for item in self.reliability:
            low, high = map(number, item.interval)
            bounds = f"{item.low:.1f} to {item.high:.1f}"
            table.add_row(bounds, number(item.confidence), number(item.accuracy), f"{low} to {high}", f"{item.n:,}")
        return table

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return f"{self.health.banner}<pre>{escape(str(without_health(self)))}</pre>"


def accuracy_below_baseline(confusion: Any) -> tuple[float, float] | None:
    """Accuracy and the share of the most frequent label, if the accuracy is significantly lower; else None."""
    counts = np.asarray(confusion)
    total = counts.sum()
    if not total:
        return None
    accuracy, baseline = float(np.trace(counts) / total), float(counts.sum(1).max() / total)
    is_below = accuracy < baseline - 1.96 * (baseline * (1 - baseline) / total) ** 0.5
    return (accuracy, baseline) if is_below else None


def written_labels(labels: Sequence[Any], codes: Sequence[int], classes: Sequence[Label]) -> list[str]:
    """The label of each class as the data write it: labels 0 and 1 may stand for the classes by position.

    >>> written_labels([1, 0, 1], [1, 0, 1], ["negative", "positive"])
    ['0', '1']
    """
    by_code = {code: str(label) for label, code in zip(labels, codes, strict=True)}
    return [by_code.get(code, str(name)) for code, name in enumerate(classes)]


def is_at_chance(confusion: Any, accuracy: Interval | None, macro_f1: Interval | None) -> bool:
    """True if neither interval lies above its chance level: the share of the most frequent label, and 1 / classes.

    Labels that are drawn at random, with the frequencies of the classes, have a macro-F1 of 1 / classes.

    >>> is_at_chance([[10, 0], [9, 1]], (0.3, 0.7), (0.2, 0.6)), is_at_chance([[9, 1], [1, 9]], (0.7, 0.97), (0.7, 1.0))
    (True, False)
    """
    counts = np.asarray(confusion)
    chance = float(counts.sum(1).max() / counts.sum()), 1 / len(counts)
    bounds = [(interval, level) for interval, level in zip((accuracy, macro_f1), chance, strict=True) if interval]
    return bool(bounds) and all(interval[0] <= level for interval, level in bounds)


def exchanged_classes(confusion: Any, classes: Sequence[str]) -> tuple[tuple[str, ...], float] | None:
    """The order of the class names with the highest accuracy; None unless the given order is worse than a constant.

    The accuracy with the new order must reach the share of the most frequent label, but for chance.

    >>> exchanged_classes([[1, 9], [8, 2]], ["happy", "upset"])
    (('upset', 'happy'), 0.85)
    >>> exchanged_classes([[9, 1], [2, 8]], ["happy", "upset"]) is None
    True
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    if (below := accuracy_below_baseline(confusion)) is None:
        return None
    counts = np.asarray(confusion)
    outputs, labels = linear_sum_assignment(-counts.T)
    accuracy, baseline, total = float(counts.T[outputs, labels].sum() / counts.sum()), below[1], counts.sum()
    if accuracy < baseline - 1.96 * (baseline * (1 - baseline) / total) ** 0.5:
        return None
    return tuple(classes[int(i)] for i in labels), accuracy


def overlap_sentence(training_texts: int | None, n: int) -> str | None:
    """A sentence about training texts among n texts, without a period; None: there are none, or it is unknown."""
    return OVERLAP.format(f"{training_texts:,}", f"{n:,}") if training_texts else None


def macro_f1_row(
    label: NDArray[np.int64],
    predicted: NDArray[np.int64],
    classes: int,
    settings: Mapping[str, str | int | float] | None = None,
    *,
    seed: int = 0,
) -> Row:
    """Macro-F1 of class indices; no interval of a single example or if all predictions are right.  (N,), (N,)"""
    n = len(label)

    def score(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        return macro_f1_of_resamples(draws, label, predicted, classes)

    varied = n > 1 and bool((label != predicted).any())  # without errors, all resamples have the same score
    interval = bootstrap_statistic(score, n, seed=seed) if varied else None
    return Row("macro-f1", float(score(np.arange(n)[None])[0]), n, interval, settings or {})


def tabulate(
    model: str,
    classes: Sequence[Label],
    rows: Sequence[Row],
    texts: Sequence[str],
    codes: NDArray[np.int64],
    probabilities: NDArray[np.floating[Any]],
    limit: int,
) -> Evaluation:
    """The confusion matrix and the `limit` most confident wrong predictions.

    codes (N,): the label of each text as an index; probabilities (N,C)
    """
    predicted, confidence = probabilities.argmax(-1), probabilities.max(-1)
    counts = confusion_counts(codes, predicted, len(classes))
    wrong = np.flatnonzero(predicted != codes)
    errors = [
        WrongPrediction(row, texts[row], classes[codes[row]], classes[predicted[row]], float(confidence[row]))
        for row in wrong[np.argsort(-confidence[wrong], kind="stable")][:limit].tolist()
    ]
    confusion = tuple(map(tuple, counts.tolist()))
    bins = reliability(confidence, predicted == codes)
    return Evaluation(model, tuple(classes), tuple(rows), confusion, tuple(errors), reliability=bins)


def reliability(confidence: NDArray[np.floating[Any]], correct: NDArray[np.bool_]) -> tuple[ReliabilityBin, ...]:
    """The bins that have texts.  (N,), (N,)

    >>> [(item.high, item.n, item.accuracy) for item in reliability(np.array([1.0, 0.95, 0.9]), np.array([1, 0, 1]))]
    [(0.9, 1, 1.0), (1.0, 2, 0.5)]
    """
    edges = np.arange(RELIABILITY_BINS + 1) / RELIABILITY_BINS
    numbers = np.searchsorted(edges[1:-1], confidence.astype(np.float64))
    return tuple(
        _reliability_bin(edges[number : number + 2].tolist(), confidence[numbers == number], correct[numbers == number])
        for number in np.unique(numbers).tolist()
    )


def _reliability_bin(
    edges: Sequence[float], confidence: NDArray[np.floating[Any]], correct: NDArray[np.bool_]
) -> ReliabilityBin:
    n, right = len(correct), int(correct.sum())
    mean = math.fsum(confidence.tolist()) / n  # exact: the order of the texts does not matter
    return ReliabilityBin(edges[0], edges[1], n, mean, right / n, wilson_interval(right, n))


def render_text(result: Any) -> str:
    """A result with `__rich__` as plain text of 100 columns."""
    console = Console(width=100, no_color=True)
    with console.capture() as captured:
        console.print(result)
    return captured.get()
