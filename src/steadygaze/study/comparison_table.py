"""What a comparison says of itself, in plain words: what was done, and what the numbers can and cannot tell.

Cells -> the table: of every technique and column the mean, its interval, and how it stands against the baseline.

A difference counts when its p, corrected for all comparisons of the table, is under 0.05 and its interval over texts
and seeds leaves out 0: what `statistics.py` says of the two is why it takes both.  Better by collapse is no merit.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from steadygaze.audit.protocols.seed_consistency import ALONE
from steadygaze.results.comparison import SIGNIFICANT, Column, ComparisonCell, Difference, Mark, TechniqueResult
from steadygaze.results.formatting import count_text
from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer
from steadygaze.study.cells import StudyCell
from steadygaze.study.compare_config import BETWEEN, COLLAPSED, COLUMNS, CompareConfig
from steadygaze.study.seed_statistics import (
    DRAWS,
    RESAMPLES,
    Values,
    across_seeds,
    by_model,
    holm,
    intervals,
    mean,
    seed_means,
    seed_stretch,
    sign_flips,
)
from steadygaze.study.study_data import HELD_OUT, KEPT_OUT, StudyData, encoder, explainers, synonyms
from steadygaze.study.study_folder import Arrays


def facts(order: CompareConfig, given: StudyData) -> dict[str, str]:
    sizes = ", ".join(f"{size:,} {name}" for name, size in given.corpus.sizes.items())
    return {
        "data": f"{given.corpus.name}: {sizes}",
        "audited with": f"{count_text(len(given.examples), 'text')} of the split {given.split}",
        "techniques": ", ".join(order.techniques),
        "held against": order.baseline,
        "seeds": ", ".join(map(str, order.numbers)),
        "encoder": encoder(order),
        "explanation": explainers(order),
        "synonyms": synonyms(order) or "none: --synonyms FILE (synonyms=) gives a table of them",
    }


def notes(order: CompareConfig, given: StudyData, made: Sequence[TechniqueResult]) -> tuple[str, ...]:
    said = [_intervals(order), *_test(order), *_texts(order, given)]
    baseline = made[0]
    if baseline.silent:
        said.append(
            f"The baseline itself collapsed in {baseline.silent} of {len(order.numbers)} seeds: weights that say the "
            "same whatever the text hold still, so that whatever says something looks worse than it."
        )
    return tuple(said)


def _intervals(order: CompareConfig) -> str:
    if order.seeds == 1:
        return (
            f"Intervals are 95 % bootstrap intervals over texts alone ({DRAWS:,} draws).  One seed was trained: "
            "nothing here says what another seed would change.  Numbers for a whole set (macro-F1, calibration error) "
            "have none."
        )
    times = f"{seed_stretch(order.seeds):.1f}"
    return (
        f"Intervals are 95 % bootstrap intervals: seeds and texts are drawn anew, {DRAWS:,} times, the same for all "
        "techniques.  Numbers for a whole set (macro-F1, calibration error) are drawn over seeds alone.  What lies "
        "between seeds belongs to pairs of them: what each seed adds is found by leaving it out, and two seeds are too "
        f"few to mark it.  {order.seeds} seeds say little of others: in the interval of a difference "
        f"what they differ by counts {times} times, as in Student's t."
    )


def _test(order: CompareConfig) -> list[str]:
    return [
        f"A technique is held against {order.baseline} text by text, each text's difference being the mean over seeds."
        f"  p: how often differences whose signs are thrown by a coin lie as far from 0 ({RESAMPLES:,} throws, or "
        "every pattern where there are few).  Holm's method corrects it for all comparisons of this table.",
        "The p is about texts: whether these very models would differ on other texts of the same kind.  It is not "
        "about training again.  That is for the interval of the difference, and for how many seeds have its sign.",
        f"A difference is marked where the corrected p is under {SIGNIFICANT} and its interval leaves out 0.  Better "
        "stability of weights that say the same whatever the text is bought, not earned, and is marked so.",
    ]


def _texts(order: CompareConfig, given: StudyData) -> list[str]:
    if given.split == HELD_OUT:
        return [
            f"The data have no test split: of every class one text in {KEPT_OUT} was kept out of training, by a seed "
            "that is always the same."
        ]
    if given.split == "validation":
        return ["The audited texts also chose the epoch of every model: what is said of the labels is too good."]
    return []


Place = tuple[str, str]
"""A technique and a measure."""
Interval = tuple[float, float]
ENOUGH = 3
"""Seeds from which on what lies between them can be told from chance: two have but one distance."""
ONE_MODEL = ("model", "seed")
"""Settings of a number that are about one model."""


def technique_results(
    cells: Mapping[str, Sequence[StudyCell]], between: Mapping[str, Arrays]
) -> tuple[TechniqueResult, ...]:
    """The first technique is the baseline."""
    found = {
        (technique, column.measure): _matrix(column.measure, several, between[technique])
        for technique, several in cells.items()
        for column in COLUMNS
    }
    numbers = {place: value for place, value in found.items() if not isinstance(value, str)}
    bounds, gaps = _bounds(numbers), _gaps(_differences(found, next(iter(cells))))
    made = []
    for technique, several in cells.items():
        collapsed = tuple(map(_collapsed, several))
        entries = {}
        for column in COLUMNS:
            place = technique, column.measure
            row = _row(column.measure, several, found[place], bounds.get(place))
            own = place in numbers and column.measure != BETWEEN
            seeds = tuple(seed_means(numbers[place]).tolist()) if own else ()
            gap = None if column.measure == BETWEEN and len(several) < ENOUGH else gaps.get(place)
            entries[column.measure] = ComparisonCell(row, seeds, gaps.get(place), mark(column, gap, any(collapsed)))
        made.append(TechniqueResult(technique, entries, collapsed, _answers(several)))
    return tuple(made)


def mark(column: Column, gap: Difference | None, collapsed: bool) -> Mark:
    if gap is None or gap.holm is None or gap.interval is None or gap.holm >= SIGNIFICANT:
        return ""
    low, high = gap.interval
    if low <= 0 <= high:
        return ""
    if column.direction == "neither":
        return "differs"
    if (gap.value < 0) != (column.direction == "lower"):
        return "worse"
    return "bought" if column.stability and collapsed else "better"


def _matrix(measure: str, cells: Sequence[StudyCell], between: Arrays) -> Values | str:
    """(S,N) of a number for each text, (S,1) of one for the whole set; else why there is none."""
    if measure == BETWEEN:
        return by_model(_pairs(between), len(cells)) if between else f"not applicable, because {ALONE}"
    several = [cell.found(measure) for cell in cells]
    for cell, one in zip(cells, several, strict=True):
        if isinstance(one, str):
            return f"{cell.name}: {one}"
    return np.stack([one for one in several if not isinstance(one, str)])


def _pairs(between: Arrays) -> dict[tuple[int, int], Values]:
    found = {}
    for name, values in between.items():
        one, _, other = name.rpartition("|")[2].partition("+")
        found[int(one), int(other)] = values
    return found


def _differences(found: Mapping[Place, Values | str], baseline: str) -> dict[Place, Values]:
    """Technique minus baseline, wherever both have a number of the same text."""
    gaps = {}
    for (technique, measure), ours in found.items():
        theirs = found[baseline, measure]
        if technique != baseline and not isinstance(ours, str) and not isinstance(theirs, str):
            gaps[technique, measure] = ours - theirs
    return {place: gap for place, gap in gaps.items() if np.isfinite(gap).any(-1).all()}


def _bounds(numbers: Mapping[Place, Values], stretch: bool = False) -> dict[Place, Interval | None]:
    """All that have the same seeds and texts by the same draws."""
    alike: dict[tuple[int, ...], list[Place]] = defaultdict(list)
    for place, values in numbers.items():
        alike[values.shape].append(place)
    found: dict[Place, Interval | None] = {}
    for places in alike.values():
        together = np.stack([numbers[place] for place in places])
        found |= zip(places, intervals(together, stretch=stretch), strict=True)
    return found


def _gaps(against: Mapping[Place, Values]) -> dict[Place, Difference]:
    bounds, tested = _bounds(against, stretch=True), _tested(against)
    found = {}
    for place, gap in against.items():
        value = mean(gap)
        agree = int((np.sign(seed_means(gap)) == np.sign(value)).sum())
        found[place] = Difference(value, bounds[place], agree, *tested.get(place, (None, None)))
    return found


def _tested(against: Mapping[Place, Values]) -> dict[Place, tuple[float, float]]:
    """p and its correction, of the numbers that every text has one of."""
    places = [place for place, gap in against.items() if gap.shape[1] > 1]
    if not places:
        return {}
    p = sign_flips(np.stack([across_seeds(against[place]) for place in places])).tolist()
    return dict(zip(places, zip(p, holm(p), strict=True), strict=True))


def _row(measure: str, cells: Sequence[StudyCell], found: Values | str, bounds: Interval | None) -> Row:
    """Signed by what all its models have in common."""
    like = cells[0].report.find(measure)
    settings = {} if like is None else {k: v for k, v in like.settings.items() if k not in ONE_MODEL}
    settings["seeds"] = "+".join(str(cell.seed) for cell in cells)
    if isinstance(found, str):
        return Row(measure, math.nan, 0, None, settings, found)
    texts = int(np.isfinite(found).any(0).sum()) if found.shape[1] > 1 or like is None else like.n
    left = found.shape[1] - texts if found.shape[1] > 1 else 0
    return Row(measure, mean(found), texts, bounds, settings, f"left out: {left:,} texts" if left else "")


def _collapsed(cell: StudyCell) -> bool | None:
    found = cell.found(COLLAPSED)
    return None if isinstance(found, str) else bool(found[0] > 0)


def _answers(cells: Sequence[StudyCell]) -> dict[str, tuple[Answer, ...]]:
    """Of every question that an audit answers, what it says of each seed."""
    questions = dict.fromkeys(verdict.question for cell in cells for verdict in cell.report.verdicts)
    return {
        question: tuple(
            next((v.answer for v in cell.report.verdicts if v.question == question), "not asked") for cell in cells
        )
        for question in questions
    }


def with_settings(
    made: Sequence[TechniqueResult], settings: Mapping[str, Mapping[str, object]]
) -> tuple[TechniqueResult, ...]:
    return tuple(dataclasses.replace(one, settings=settings[one.technique]) for one in made)
