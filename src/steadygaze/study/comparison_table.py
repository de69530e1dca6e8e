"""The table of a comparison: means, intervals and differences from the baseline, with notes about their meaning.

A difference is significant if its p-value, corrected for all comparisons of the table, is under 0.05 and its interval
over texts and seeds excludes 0; `seed_statistics.py` explains why both are needed.
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
        "synonyms": synonyms(order) or "none; --synonyms FILE (synonyms=) adds a table",
    }


def notes(order: CompareConfig, given: StudyData, results: Sequence[TechniqueResult]) -> tuple[str, ...]:
    sentences = [_intervals(order), *_test(order), *_texts(order, given)]
    baseline = results[0]
    if baseline.silent:
        sentences.append(
            f"The baseline itself collapsed in {baseline.silent} of {len(order.numbers)} seeds: its weights do not "
            "depend on the text.  They are stable, so that informative weights look worse."
        )
    return tuple(sentences)


def _intervals(order: CompareConfig) -> str:
    if order.seeds == 1:
        return (
            f"Intervals are 95 % bootstrap intervals over texts ({DRAWS:,} draws).  Only one seed was trained: "
            "the variance between seeds is unknown.  Scores of a whole split (macro-F1, calibration error) have no "
            "interval."
        )
    times = f"{seed_stretch(order.seeds):.1f}"
    return (
        f"Intervals are 95 % bootstrap intervals: {DRAWS:,} resamples of seeds and texts, the same for all "
        "techniques.  Scores of a whole split (macro-F1, calibration error) resample only seeds.  The divergence "
        "between seeds belongs to pairs of seeds: the jackknife gives the part of each seed, and two seeds are too "
        f"few to test it.  For {order.seeds} seeds, the interval of a difference "
        f"multiplies the variation between seeds by {times}, as in Student's t."
    )


def _test(order: CompareConfig) -> list[str]:
    return [
        f"A technique is compared with {order.baseline} text by text; the difference of a text is the mean over seeds."
        f"  p is from a sign-flip test ({RESAMPLES:,} resamples, or "
        "every pattern for few texts).  Holm's method corrects it for all comparisons of this table.",
        "p tests whether these models would differ on other texts of the same kind, not whether retrained models "
        "would.  For that, see the interval of the difference and the number of seeds with its sign.",
        f"A difference is marked if the corrected p is under {SIGNIFICANT} and its interval excludes 0.  Better "
        "stability of weights that do not depend on the text is marked as collapse.",
    ]


def _texts(order: CompareConfig, given: StudyData) -> list[str]:
    if given.split == HELD_OUT:
        return [
            f"The data have no test split: one text in {KEPT_OUT} of every class was held out from training, with a "
            "fixed seed."
        ]
    if given.split == "validation":
        return ["The audited texts also selected the epoch of every model: the classification scores are optimistic."]
    return []


Place = tuple[str, str]
"""A technique and a measure."""
Interval = tuple[float, float]
ENOUGH = 3
"""Seeds needed to test the divergence between seeds: two seeds have only one distance."""
ONE_MODEL = ("model", "seed")
"""Settings that differ between models."""


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
    results = []
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
        results.append(TechniqueResult(technique, entries, collapsed, _answers(several)))
    return tuple(results)


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
    """(S,N) for a value per text, (S,1) for one of the whole split; else the reason why there is none."""
    if measure == BETWEEN:
        return by_model(_pairs(between), len(cells)) if between else f"not applicable, because {ALONE}"
    several = [cell.found(measure) for cell in cells]
    for cell, values in zip(cells, several, strict=True):
        if isinstance(values, str):
            return f"{cell.name}: {values}"
    return np.stack([values for values in several if not isinstance(values, str)])


def _pairs(between: Arrays) -> dict[tuple[int, int], Values]:
    pairs = {}
    for name, values in between.items():
        first, _, second = name.rpartition("|")[2].partition("+")
        pairs[int(first), int(second)] = values
    return pairs


def _differences(found: Mapping[Place, Values | str], baseline: str) -> dict[Place, Values]:
    """Technique minus baseline, if both have values of the same texts."""
    gaps = {}
    for (technique, measure), ours in found.items():
        theirs = found[baseline, measure]
        if technique != baseline and not isinstance(ours, str) and not isinstance(theirs, str):
            gaps[technique, measure] = ours - theirs
    return {place: gap for place, gap in gaps.items() if np.isfinite(gap).any(-1).all()}


def _bounds(numbers: Mapping[Place, Values], stretch: bool = False) -> dict[Place, Interval | None]:
    """Intervals; arrays of the same shape use the same draws."""
    shapes: dict[tuple[int, ...], list[Place]] = defaultdict(list)
    for place, values in numbers.items():
        shapes[values.shape].append(place)
    found: dict[Place, Interval | None] = {}
    for places in shapes.values():
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
    """p and corrected p, for measures with a value per text."""
    places = [place for place, gap in against.items() if gap.shape[1] > 1]
    if not places:
        return {}
    p = sign_flips(np.stack([across_seeds(against[place]) for place in places])).tolist()
    return dict(zip(places, zip(p, holm(p), strict=True), strict=True))


def _row(measure: str, cells: Sequence[StudyCell], found: Values | str, bounds: Interval | None) -> Row:
    """A row with the settings that all models share."""
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
    """Question -> answer per seed."""
    questions = dict.fromkeys(verdict.question for cell in cells for verdict in cell.report.verdicts)
    return {
        question: tuple(
            next((v.answer for v in cell.report.verdicts if v.question == question), "not asked") for cell in cells
        )
        for question in questions
    }


def with_settings(
    results: Sequence[TechniqueResult], settings: Mapping[str, Mapping[str, object]]
) -> tuple[TechniqueResult, ...]:
    return tuple(dataclasses.replace(result, settings=settings[result.technique]) for result in results)
