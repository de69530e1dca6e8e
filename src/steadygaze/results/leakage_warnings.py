"""Warnings about selections: label leakage, arbitrary or uninformative selections, or a single predicted label.

Three networks read the same selection: the one that was trained on such selections (an explainer's approximator, a
rationalizer's predictor), the independent reader, and the black box itself.  If only the first recovers the predicted
class, the selection leaks the label.  If it also recovers the class from random selections, and the reader does not
recover it from the selected words, the selection is arbitrary.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import MeasureKey, Row, mean_row

POST_HOC, FIDELITY = "post-hoc-accuracy", "fidelity"
READER, GAP = "independent-reader-accuracy", "leakage-gap"
RANDOM_WORDS, NO_WORDS, BY_CLASS = (
    str(MeasureKey(READER, probe)) for probe in ("random-words", "no-words", "by-class")
)
BLACK_BOX_GAP = str(MeasureKey(GAP, "black-box"))
RAW_GAP = str(MeasureKey(GAP, "raw"))
UNSELECTED = str(MeasureKey(POST_HOC, "unselected"))
ARBITRARY = "arbitrary-selection"
CLASS_PROBE = "by-class"
ARBITRARY_BY_CLASS = str(MeasureKey(ARBITRARY, CLASS_PROBE))
MIN_TEXTS = 30
"""Fewest texts for a warning about arbitrary or uninformative selections."""
MARGIN = 0.05
"""Tolerated leakage gap: a warning needs the whole 95 % interval above it.  The gap is paired over texts, and the
predicted classes have equal weight."""
LARGE_GAP = 0.1
"""The same for the black box alone."""
MITIGATION = "random-pretraining"
ONE_LABEL = Note(NoteCode.ONE_LABEL_BLACK_BOX)
"""Note of the rows of an explainer whose black box predicts one label for all evaluation texts."""
CONSTANT = Note(NoteCode.CONSTANT_BLACK_BOX)
"""Note of the rows of an explainer whose health says so."""


def leakage_warnings(rows: Sequence[Row]) -> list[Note]:
    """Warnings about a fitted explainer, from its rows."""
    if any(CONSTANT in row.notes for row in rows):
        return []
    if any(ONE_LABEL in row.notes for row in rows):
        return [Note(NoteCode.ONE_LABEL)]
    by_name = by_measure(rows)
    if FIDELITY in by_name and READER not in by_name and "patch" not in by_name[FIDELITY].settings:
        return [Note(NoteCode.READER_NOT_TRAINED)]
    return [
        *_network_warnings(by_name),
        *_unselected_warning(by_name),
        *_arbitrary_warning(arbitrary_classes(rows), APPROXIMATOR),
    ]


def selection_warnings(rows: Sequence[Row], explainer: str | None = None) -> list[Note]:
    """Warnings about the selections of a rationalizer, or of an audited explainer with this name."""
    by_name = by_measure(rows)
    network = PREDICTOR if explainer is None else {**APPROXIMATOR, "explainer": explainer}
    leakage = [_leakage(by_name, network)] if has_leakage(by_name) else []
    random = _random_warning(by_name) if explainer is None else []  # `explainer_health` has that of others
    return [*leakage, *random, *_arbitrary_warning(arbitrary_classes(rows), network)]


def _network_warnings(by_name: Mapping[str, Row]) -> list[Note]:
    """Leakage, or else a black box that predicts another class from the selected words."""
    if has_leakage(by_name):
        reader = by_name[READER].settings
        is_mitigated = reader.get("mitigation") == MITIGATION or reader.get("explainer") == "ail"
        return [_leakage(by_name, APPROXIMATOR if is_mitigated else {**APPROXIMATOR, "mitigation": MITIGATION})]
    if POST_HOC in by_name and FIDELITY in by_name and _low(by_name, BLACK_BOX_GAP) > LARGE_GAP:
        shares = {"post_hoc": by_name[POST_HOC].value, "fidelity": by_name[FIDELITY].value}
        return [note(NoteCode.BLACK_BOX_DISAGREES, **shares)]
    return []


FEWEST = 20
"""Fewest held-out texts for a judgment of the fidelity: its standard error is above 0.1 with fewer."""


def explainer_health(rows: Sequence[Row], name: str) -> Health:
    """Known-bad states of a fitted explainer.

    Its approximator must beat a constant class, and a reader must learn more from the selected words than from random
    ones, or the selection carries no information.
    """
    subject, by_name = f"The explainer {name}", by_measure(rows)
    if any(CONSTANT in row.notes for row in rows):
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


@dataclass(frozen=True, slots=True)
class ArbitraryClass:
    """A predicted class, and how many of its texts have an arbitrary selection."""

    label: str
    arbitrary: int
    """Texts for which nearly any selection gives this class, and the reader does not recover it from the selected
    words."""
    n: int
    """Texts with this predicted class."""
    is_frequent: bool
    """True if the 95 % interval of their share lies above MARGIN, on at least MIN_TEXTS texts."""


def arbitrary_classes(rows: Iterable[Row]) -> tuple[ArbitraryClass, ...]:
    """The predicted classes with arbitrary selections, from rows of one explainer."""
    return tuple(
        ArbitraryClass(str(row.settings["class"]), round(row.value * row.n), row.n, _is_frequent(row))
        for row in rows
        if row.measure == ARBITRARY_BY_CLASS and row.value > 0
    )


def _is_frequent(row: Row) -> bool:
    return row.n >= MIN_TEXTS and row.interval is not None and row.interval[0] > MARGIN


Network = Mapping[str, str]
"""The network that was trained on the selections, as fields of a note."""
PREDICTOR: Network = {"network": "predictor"}
"""Of a rationalizer."""
APPROXIMATOR: Network = {"network": "approximator"}
"""Of an explainer."""


def _arbitrary_warning(classes: Iterable[ArbitraryClass], network: Network) -> list[Note]:
    """One note about the classes whose selections are often arbitrary."""
    frequent = [(item.label, item.arbitrary, item.n) for item in classes if item.is_frequent]
    return [note(NoteCode.ARBITRARY_SELECTIONS, classes=frequent, **network)] if frequent else []


def _random_warning(by_name: Mapping[str, Row]) -> list[Note]:
    """A warning about a rationalizer whose selections do not beat random words."""
    reader, random = by_name.get(READER), by_name.get(RANDOM_WORDS)
    if not reader or not random or reader.n < MIN_TEXTS or reader.value > min(random.value, 1 - MARGIN):
        return []
    return [note(NoteCode.SELECTION_LIKE_RANDOM, reader=reader.value, random_words=random.value)]


def _unselected_warning(by_name: Mapping[str, Row]) -> list[Note]:
    """A warning about unselected words that predict better than the selected ones.

    Not of images, where the prediction from a few patches depends on the fill.
    """
    selected, rest = by_name.get(POST_HOC), by_name.get(UNSELECTED)
    if (
        not selected
        or not rest
        or "patch" in rest.settings
        or selected.n < MIN_TEXTS
        or _low(by_name, UNSELECTED) <= _high(selected)
    ):
        return []
    return [note(NoteCode.UNSELECTED_PREDICTS_BETTER, unselected=rest.value, selected=selected.value)]


def by_measure(rows: Sequence[Row]) -> dict[str, Row]:
    """One row of each measure; not the rows of single classes."""
    return {row.measure: row for row in rows if row.key.probe != CLASS_PROBE}


def has_leakage(by_name: Mapping[str, Row]) -> bool:
    """Return whether only the network trained on the selections recovers the predicted class from them.

    The gaps to the independent reader and, if measured, to the black box must exceed MARGIN with their whole
    intervals.  The black box counts because a reader trained on few texts may not know rare words.
    """
    gaps = [name for name in (GAP, BLACK_BOX_GAP) if name in by_name]
    return READER in by_name and GAP in gaps and all(_low(by_name, name) > MARGIN for name in gaps)


def _leakage(by_name: Mapping[str, Row], network: Network) -> Note:
    measures = {"gap": GAP, "reader": READER, "black_box_gap": BLACK_BOX_GAP, "random_words": RANDOM_WORDS}
    values = {name: by_name[measure].value for name, measure in measures.items() if measure in by_name}
    return note(NoteCode.LABEL_LEAKAGE, **values, **network)


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


def _low(by_name: Mapping[str, Row], name: str) -> float:
    row = by_name.get(name)
    return float("-inf") if row is None else row.interval[0] if row.interval else row.value


def _high(row: Row) -> float:
    return row.interval[1] if row.interval else row.value


def selection_rows(
    values: Mapping[str, Sequence[float]],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """One row per measure, without NaN; of the reader and of arbitrary selections also one per predicted class.

    `predicted`: the class of each text, as its position in `classes`.
    """
    rows = []
    for name, numbers in values.items():
        if finite := [value for value in numbers if not math.isnan(value)]:
            rows.append(mean_row(name, finite, settings, proportion=name == ARBITRARY))
        if name in CLASS_MEASURES:
            rows += by_class(name, numbers, predicted, classes, settings)
    return rows


CLASS_MEASURES = (READER, ARBITRARY)
"""Measures that have a row for each predicted class."""


def by_class(
    measure: str,
    numbers: Sequence[float],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """The measure for each predicted class that occurs."""
    rows, name = [], str(MeasureKey(measure, CLASS_PROBE))
    for index, label in enumerate(classes):
        class_values = [
            value for value, code in zip(numbers, predicted, strict=True) if code == index and not math.isnan(value)
        ]
        if class_values:
            row_settings = {**settings, "class": str(label)}
            rows.append(mean_row(name, class_values, row_settings, proportion=measure == ARBITRARY))
    return rows
