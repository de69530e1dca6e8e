"""What a user must know before a selection is trusted: whether the label leaks through it, or nothing was explained.

Three networks read the same selection: the one that was trained on such selections (an explainer's approximator, a
rationalizer's predictor), the independent reader, and the black box itself.  If only the first recovers the predicted
class, the choice of words carries the label and the words do not.

Rows of a fitted explainer: one number per text becomes a mean with its interval; some also by predicted class.
"""

import math
from collections.abc import Mapping, Sequence

from steadygaze.core.types import Label
from steadygaze.results.row import Row, mean_row

POST_HOC, FIDELITY = "post-hoc-accuracy", "fidelity"
READER, GAP = "independent-reader-accuracy", "leakage-gap"
RANDOM_WORDS, NO_WORDS, BY_CLASS = (f"{READER}/{probe}" for probe in ("random-words", "no-words", "by-class"))
BLACK_BOX_GAP = f"{GAP}/black-box"
MARGIN = 0.05
"""Leakage gap that is tolerated: a warning needs the whole 95 % interval above it, paired over texts and with each
predicted class counting alike."""
FAR = 0.1
"""The same for the black box alone."""
MITIGATION = "random-pretraining"
LEAKAGE = "Label leakage"
PREDICTOR = "the model's own predictor"
"""Of a rationalizer."""
UNLIKE = "The black box does not predict the same from the selected words"
UNTESTED = "No independent reader was trained with this explainer"
UNREAD = "Label leakage was not tested: training was too short for an independent reader.  Train for more epochs."
"""Of a rationalizer."""
ONE_LABEL = "The black box gives the same label to all that this was measured on: the numbers say nothing"
"""Also the note of the rows of which it is so."""


def leakage_warnings(rows: Sequence[Row]) -> list[str]:
    """Warnings about a fitted explainer, by its rows."""
    if any(row.note == ONE_LABEL for row in rows):
        return [f"{ONE_LABEL}; any other selection would do as well."]
    found = by_measure(rows)
    if FIDELITY in found and READER not in found:
        return [f"{UNTESTED}: fit it again to test for label leakage."]
    if has_leakage(found):
        return [leakage_sentence(found, "the explainer's own approximator", _advice(found[READER]))]
    if POST_HOC in found and FIDELITY in found and _low(found, BLACK_BOX_GAP) > FAR:
        return [_unlike(found)]
    return []


def by_measure(rows: Sequence[Row]) -> dict[str, Row]:
    """One row of each measure; not the rows of single classes."""
    return {row.measure: row for row in rows if row.measure != BY_CLASS}


def has_leakage(found: Mapping[str, Row]) -> bool:
    """Whether only the network trained on the selections recovers the predicted class from them.

    Both gaps must exceed MARGIN with their whole intervals: to the independent reader and, where it was asked, to the
    black box.  The black box counts because a reader trained on few texts may not know rare words.
    """
    gaps = [name for name in (GAP, BLACK_BOX_GAP) if name in found]
    return READER in found and GAP in gaps and all(_low(found, name) > MARGIN for name in gaps)


def leakage_sentence(
    found: Mapping[str, Row], partner: str, advice: str = "", target: str = "the predicted class"
) -> str:
    """The warning.  `partner`: the network that was trained on the selections; `target`: what both predict."""
    random = f", {found[RANDOM_WORDS].value:.0%} from random words" if RANDOM_WORDS in found else ""
    box = f" and {found[BLACK_BOX_GAP].value:.0%} more often than the black box" if BLACK_BOX_GAP in found else ""
    return (
        f"{LEAKAGE}: from the selected words {partner} recovers {target} {found[GAP].value:.0%} more often "
        f"than an independent reader{box}, each class counting alike (accuracy of the reader: "
        f"{found[READER].value:.0%}{random}).  The choice of words carries the label, not their meaning: do not read "
        f"them as reasons.{advice}"
    )


def read_sentence(rows: Sequence[Row]) -> str:
    """One line about the independent reader; '' where there was none."""
    found = by_measure(rows)
    if READER not in found:
        return ""
    each = [f"{row.settings.get('class')} {row.value:.0%}" for row in rows if row.measure == BY_CLASS]
    others = {RANDOM_WORDS: "random words", NO_WORDS: "no words"}
    base = [f"{name} {found[key].value:.0%}" for key, name in others.items() if key in found]
    return (
        f"An independent reader recovers the predicted class from the selected words in {found[READER].value:.0%} of "
        f"{found[READER].n:,} held-out texts ({'; '.join([', '.join(each), ', '.join(base)])})."
    )


def _advice(row: Row) -> str:
    """What to do about it, where something is left to do."""
    if row.settings.get("technique") == MITIGATION or row.settings.get("explainer") == "ail":
        return ""
    return f"  Fit again with --technique {MITIGATION}."


def _unlike(found: Mapping[str, Row]) -> str:
    return (
        f"{UNLIKE}: it gives the predicted class in {found[POST_HOC].value:.0%} of the texts, the explainer's "
        f"approximator in {found[FIDELITY].value:.0%}.  The words persuade the approximator, not the black box."
    )


def _low(found: Mapping[str, Row], name: str) -> float:
    row = found.get(name)
    return float("-inf") if row is None else row.interval[0] if row.interval else row.value


def selection_rows(
    values: Mapping[str, Sequence[float]],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """A row for each measure, NaN left out; for the independent reader also one for each predicted class.

    `predicted`: the class of each text, as its position in `classes`.
    """
    rows = []
    for name, numbers in values.items():
        if known := [value for value in numbers if not math.isnan(value)]:
            rows.append(mean_row(name, known, settings))
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
        own = [value for value, code in zip(numbers, predicted, strict=True) if code == index and not math.isnan(value)]
        if own:
            rows.append(mean_row(BY_CLASS, own, {**settings, "class": str(label)}))
    return rows
