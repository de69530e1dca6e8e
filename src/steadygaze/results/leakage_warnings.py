"""Warnings about selections: label leakage, or a black box that always predicts the same label.

Three networks read the same selection: the one that was trained on such selections (an explainer's approximator, a
rationalizer's predictor), the independent reader, and the black box itself.  If only the first recovers the predicted
class, the selection leaks the label.
"""

import math
from collections.abc import Mapping, Sequence

from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.row import MeasureKey, Row, mean_row

POST_HOC, FIDELITY = "post-hoc-accuracy", "fidelity"
READER, GAP = "independent-reader-accuracy", "leakage-gap"
RANDOM_WORDS, NO_WORDS, BY_CLASS = (
    str(MeasureKey(READER, probe)) for probe in ("random-words", "no-words", "by-class")
)
BLACK_BOX_GAP = str(MeasureKey(GAP, "black-box"))
MARGIN = 0.05
"""Tolerated leakage gap: a warning needs the whole 95 % interval above it.  The gap is paired over texts, and the
predicted classes have equal weight."""
LARGE_GAP = 0.1
"""The same for the black box alone."""
MITIGATION = "random-pretraining"
PREDICTOR = "the model's own predictor"
"""Of a rationalizer."""
UNREAD = "Label leakage was not tested: training was too short for an independent reader.  Train for more epochs."
"""Of a rationalizer."""
ONE_LABEL = "The black box predicts the same label for all evaluation texts: the scores are not informative"
"""Also the note of the affected rows."""
CONSTANT = "The black box predicts the same label for all texts: the scores are not informative"
"""Note of the rows of an explainer whose health says so."""


def leakage_warnings(rows: Sequence[Row]) -> list[str]:
    """Warnings about a fitted explainer, from its rows."""
    if any(row.note == CONSTANT for row in rows):
        return []
    if any(row.note == ONE_LABEL for row in rows):
        return [f"{ONE_LABEL}; any selection scores the same."]
    by_name = by_measure(rows)
    if FIDELITY in by_name and READER not in by_name:
        return ["No independent reader was trained with this explainer: fit it again to test for label leakage."]
    if has_leakage(by_name):
        return [leakage_sentence(by_name, "the explainer's own approximator", _advice(by_name[READER]))]
    if POST_HOC in by_name and FIDELITY in by_name and _low(by_name, BLACK_BOX_GAP) > LARGE_GAP:
        return [_black_box_warning(by_name)]
    return []


FEWEST = 20
"""Fewest held-out texts for a judgment of the fidelity: its standard error is above 0.1 with fewer."""


def explainer_health(rows: Sequence[Row], name: str) -> Health:
    """Known-bad states of a fitted explainer.

    Its approximator must beat a constant class, and a reader must learn more from the selected words than from random
    ones, or the selection carries no information.
    """
    subject, by_name = f"The explainer {name}", by_measure(rows)
    if any(row.note == CONSTANT for row in rows):
        return Health((HealthProblem(ProblemKind.ONE_LABEL, subject),))
    problems = []
    for kind, measure, baseline in (
        (ProblemKind.LOW_FIDELITY, FIDELITY, NO_WORDS),
        (ProblemKind.RANDOM_SELECTION, READER, RANDOM_WORDS),
    ):
        measured, least = by_name.get(measure), by_name.get(baseline)
        if measured and least and measured.n >= FEWEST and measured.value <= least.value:
            problems.append(HealthProblem(kind, subject, value=measured.value, limit=least.value))
    return Health(tuple(problems))


def by_measure(rows: Sequence[Row]) -> dict[str, Row]:
    """One row of each measure; not the rows of single classes."""
    return {row.measure: row for row in rows if row.measure != BY_CLASS}


def has_leakage(by_name: Mapping[str, Row]) -> bool:
    """Return whether only the network trained on the selections recovers the predicted class from them.

    The gaps to the independent reader and, if measured, to the black box must exceed MARGIN with their whole
    intervals.  The black box counts because a reader trained on few texts may not know rare words.
    """
    gaps = [name for name in (GAP, BLACK_BOX_GAP) if name in by_name]
    return READER in by_name and GAP in gaps and all(_low(by_name, name) > MARGIN for name in gaps)


def leakage_sentence(
    by_name: Mapping[str, Row], partner: str, advice: str = "", target: str = "the predicted class"
) -> str:
    """The warning.  `partner`: the network that was trained on the selections; `target`: what both predict."""
    random = f", {percent(by_name[RANDOM_WORDS].value)} from random words" if RANDOM_WORDS in by_name else ""
    box = (
        f" and {percent(by_name[BLACK_BOX_GAP].value)} more often than the black box"
        if BLACK_BOX_GAP in by_name
        else ""
    )
    return (
        f"Label leakage: from the selected words {partner} recovers {target} {percent(by_name[GAP].value)} more often "
        f"than an independent reader{box}, with equal class weights (accuracy of the reader: "
        f"{percent(by_name[READER].value)}{random}).  The choice of words carries the label, not their meaning: do not "
        f"read them as reasons.{advice}"
    )


def read_sentence(rows: Sequence[Row]) -> str:
    """One line about the independent reader; empty if there was none."""
    by_name = by_measure(rows)
    if READER not in by_name:
        return ""
    class_shares = [f"{row.settings.get('class')} {percent(row.value)}" for row in rows if row.measure == BY_CLASS]
    baselines = {RANDOM_WORDS: "random words", NO_WORDS: "no words"}
    base = [f"{name} {percent(by_name[key].value)}" for key, name in baselines.items() if key in by_name]
    return (
        "An independent reader recovers the predicted class from the selected words in "
        f"{percent(by_name[READER].value)} of {by_name[READER].n:,} held-out texts "
        f"({'; '.join([', '.join(class_shares), ', '.join(base)])})."
    )


def _advice(row: Row) -> str:
    """The mitigation, unless it was used already."""
    if row.settings.get("mitigation") == MITIGATION or row.settings.get("explainer") == "ail":
        return ""
    return f"  Fit again with --mitigation {MITIGATION}."


def _black_box_warning(by_name: Mapping[str, Row]) -> str:
    return (
        "The black box does not predict the same from the selected words: it predicts the same class in "
        f"{percent(by_name[POST_HOC].value)} of the texts, the explainer's approximator in "
        f"{percent(by_name[FIDELITY].value)}.  The words suffice for the approximator, not the black box."
    )


def _low(by_name: Mapping[str, Row], name: str) -> float:
    row = by_name.get(name)
    return float("-inf") if row is None else row.interval[0] if row.interval else row.value


def selection_rows(
    values: Mapping[str, Sequence[float]],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """One row per measure, without NaN; for the independent reader also one per predicted class.

    `predicted`: the class of each text, as its position in `classes`.
    """
    rows = []
    for name, numbers in values.items():
        if finite := [value for value in numbers if not math.isnan(value)]:
            rows.append(mean_row(name, finite, settings))
        if name == READER:
            rows += by_class(numbers, predicted, classes, settings)
    return rows


def by_class(
    numbers: Sequence[float],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """The independent reader's accuracy for each predicted class that occurs."""
    rows = []
    for index, label in enumerate(classes):
        class_values = [
            value for value, code in zip(numbers, predicted, strict=True) if code == index and not math.isnan(value)
        ]
        if class_values:
            rows.append(mean_row(BY_CLASS, class_values, {**settings, "class": str(label)}))
    return rows
