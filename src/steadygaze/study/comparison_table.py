"""The table of a comparison: means, intervals and differences from the baseline, with notes about their meaning.

A difference is significant if its p-value, corrected for all comparisons of the table, is under 0.05 and its interval
over texts and seeds excludes 0.  Both are needed, as `seed_statistics.py` explains.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from steadygaze.properties import columns, measure_of
from steadygaze.properties.protocols.stability import ALONE
from steadygaze.results.comparison import SIGNIFICANT, Column, ComparisonCell, Difference, Mark, TechniqueResult
from steadygaze.results.evaluation import is_at_chance
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, MODEL, Health, HealthProblem, ProblemKind
from steadygaze.results.intervals import RESAMPLES, Interval, Values
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import Answer, Row
from steadygaze.results.seed_intervals import by_model, mean_intervals, seed_stretch
from steadygaze.study.cells import StudyCell
from steadygaze.study.compare_config import BETWEEN, COLLAPSED, CompareConfig
from steadygaze.study.seed_statistics import (
    SIGN_FLIPS,
    macro_f1_interval,
    mean,
    seed_means,
    tested_differences,
)
from steadygaze.study.study_data import HELD_OUT, KEPT_OUT, StudyData, encoder, explainers, synonyms
from steadygaze.study.study_folder import Arrays


def facts(config: CompareConfig, data: StudyData) -> dict[str, str]:
    sizes = ", ".join(f"{size:,} {name}" for name, size in data.corpus.sizes.items())
    return {
        "data": f"{data.corpus.name}: {sizes}",
        "audited with": f"{count_text(len(data.examples), 'text')} of the split {data.split}",
        "techniques": ", ".join(config.techniques),
        "held against": config.baseline,
        "seeds": ", ".join(map(str, config.numbers)),
        "encoder": encoder(config),
        "explanation": explainers(config),
        "synonyms": synonyms(config) or "none; --synonyms FILE (synonyms=) adds a table",
    }


def notes(config: CompareConfig, data: StudyData, results: Sequence[TechniqueResult]) -> tuple[str, ...]:
    sentences = [_intervals(config), *_test(config), *_texts(data)]
    baseline = results[0]
    if baseline.silent:
        sentences.append(
            f"The baseline itself collapsed in {baseline.silent} of {len(config.numbers)} seeds: its weights do not "
            "depend on the text.  They are stable, so that informative weights look worse."
        )
    return tuple(sentences)


def _intervals(config: CompareConfig) -> str:
    if config.seeds == 1:
        return (
            f"Intervals are 95 % bootstrap intervals over texts ({RESAMPLES:,} resamples).  Only one seed was trained: "
            "the variance between seeds is unknown.  The calibration error has no interval."
        )
    times = f"{seed_stretch(config.seeds):.1f}"
    return (
        f"Intervals are 95 % bootstrap intervals: {RESAMPLES:,} resamples of seeds and texts, the same for all "
        "techniques.  The calibration error resamples only seeds.  The divergence "
        "between seeds belongs to pairs of seeds: the jackknife gives the part of each seed, and two seeds are too "
        f"few to test it.  For {config.seeds} seeds, every interval "
        f"multiplies the variation between seeds by {times}, as in Student's t."
    )


def _test(config: CompareConfig) -> list[str]:
    return [
        f"A technique is compared with {config.baseline} text by text; the difference of a text is the mean over seeds."
        f"  p is from a sign-flip test ({SIGN_FLIPS:,} resamples, or "
        "every pattern for few texts).  Holm's method corrects it for all comparisons of this table.",
        "p tests whether these models would differ on other texts of the same kind, not whether retrained models "
        "would.  For that, see the interval of the difference and the number of seeds with its sign.",
        f"A difference is marked if the corrected p is under {SIGNIFICANT} and its interval excludes 0.  Better "
        "stability of weights that do not depend on the text is marked as collapse.",
    ]


def _texts(data: StudyData) -> list[str]:
    if data.split == HELD_OUT:
        return [
            f"The data have no test split: one text in {KEPT_OUT} of every class was held out from training, with a "
            "fixed seed."
        ]
    if data.split == "validation":
        return ["The audited texts also selected the epoch of every model: the classification scores are optimistic."]
    return []


Place = tuple[str, str]
"""A technique and a measure."""
ENOUGH = 3
"""Seeds needed to test the divergence between seeds: two seeds have only one distance."""
MACRO_F1 = "macro-f1"
ONE_MODEL = ("model", "seed")
"""Settings that differ between models."""


def technique_results(
    cells: Mapping[str, Sequence[StudyCell]], seed_divergence: Mapping[str, Arrays]
) -> tuple[TechniqueResult, ...]:
    """The first technique is the baseline."""
    scores = {
        (technique, column.measure): _matrix(column, of_seeds, seed_divergence[technique])
        for technique, of_seeds in cells.items()
        for column in columns()
    }
    values = {place: score for place, score in scores.items() if not isinstance(score, Note)}
    intervals, differences = mean_intervals(values), tested_differences(_differences(values, next(iter(cells))))
    _resample_macro_f1(cells, intervals, differences)
    results = []
    for technique, of_seeds in cells.items():
        collapsed = tuple(map(_collapsed, of_seeds))
        entries = {}
        for column in columns():
            place, of_pairs = (technique, column.measure), column.key == BETWEEN
            row = _row(column.measure, of_seeds, scores[place], bounded(column.measure, intervals.get(place)))
            per_seed = tuple(seed_means(values[place]).tolist()) if place in values and not of_pairs else ()
            difference = differences.get(place)
            testable = None if of_pairs and len(of_seeds) < ENOUGH else difference
            entries[column.measure] = ComparisonCell(row, per_seed, difference, mark(column, testable, any(collapsed)))
        at_chance = tuple(map(_at_chance, of_seeds))
        known = () if None in at_chance else tuple(map(bool, at_chance))
        health = _health(technique, of_seeds)
        results.append(
            TechniqueResult(technique, entries, collapsed, _answers(of_seeds), at_chance=known, health=health)
        )
    return tuple(results)


def mark(column: Column, difference: Difference | None, collapsed: bool) -> Mark:
    if difference is None or difference.interval is None:
        return ""
    low, high = difference.interval
    if difference.holm is None or difference.holm >= SIGNIFICANT or low <= 0 <= high:
        return ""
    if column.direction == "neither":
        return "differs"
    if (difference.value < 0) != (column.direction == "lower"):
        return "worse"
    return "bought" if column.stability and collapsed else "better"


def _matrix(column: Column, cells: Sequence[StudyCell], seed_divergence: Arrays) -> Values | Note:
    """(S,N) for a value per text, (S,1) for one of the whole split; else the reason why there is none."""
    if column.key == BETWEEN:
        pairs = {key.models: values for key, values in seed_divergence.items() if key.models is not None}
        return by_model(pairs, len(cells)) if pairs else ALONE
    rows = []
    for cell in cells:
        if isinstance(values := cell.values_of(column.measure), Note):
            return note(NoteCode.IN_CELL, technique=cell.technique, seed=cell.seed, reason=values)
        rows.append(values)
    return np.stack(rows)


def _differences(values: Mapping[Place, Values], baseline: str) -> dict[Place, Values]:
    """Technique minus baseline, if both have values of the same texts."""
    differences = {
        (technique, measure): technique_values - values[baseline, measure]
        for (technique, measure), technique_values in values.items()
        if technique != baseline and (baseline, measure) in values
    }
    return {place: values for place, values in differences.items() if np.isfinite(values).any(-1).all()}


def _resample_macro_f1(
    cells: Mapping[str, Sequence[StudyCell]],
    intervals: dict[Place, Interval | None],
    differences: dict[Place, Difference],
) -> None:
    """Replace the intervals of macro-F1, one number per seed, by those over seeds and texts."""
    known = {name: [outcome for cell in of_seeds if (outcome := cell.outcomes)] for name, of_seeds in cells.items()}
    baseline = next(iter(cells))
    for name, outcomes in known.items():
        place = (name, MACRO_F1)
        if not outcomes or len(outcomes) < len(cells[name]):
            continue
        if place in intervals:
            intervals[place] = macro_f1_interval(outcomes)
        if place in differences and len(known[baseline]) == len(outcomes):
            difference = macro_f1_interval(outcomes, minus=known[baseline])
            differences[place] = dataclasses.replace(differences[place], interval=difference)


def bounded(measure: str, interval: Interval | None) -> Interval | None:
    """The interval within the range of the measure, which the stretch can exceed."""
    low, high = measure_of(measure).bounds
    return interval and (max(interval[0], low), min(interval[1], high))


def _row(measure: str, cells: Sequence[StudyCell], values: Values | Note, interval: Interval | None) -> Row:
    """A row with the settings that all models share."""
    first = cells[0].report.find(measure)
    settings = {} if first is None else {k: v for k, v in first.settings.items() if k not in ONE_MODEL}
    settings["seeds"] = "+".join(str(cell.seed) for cell in cells)
    if isinstance(values, Note):
        return Row(measure, math.nan, 0, None, settings, absent=values)
    texts = int(np.isfinite(values).any(0).sum()) if values.shape[1] > 1 or first is None else first.n
    missing = values.shape[1] - texts if values.shape[1] > 1 else 0
    left_out = (note(NoteCode.LEFT_OUT, left=missing),) if missing else ()
    return Row(measure, mean(values), texts, interval, settings, left_out)


def _collapsed(cell: StudyCell) -> bool | None:
    values = cell.values_of(COLLAPSED)
    return None if isinstance(values, Note) else bool(values[0] > 0)


def _health(technique: str, cells: Sequence[StudyCell]) -> Health:
    """The known-bad states of the models of a technique; one sentence for all seeds with the same state."""
    by_state: dict[tuple[ProblemKind, str], list[HealthProblem]] = {}
    for cell in cells:
        for problem in cell.report.health:
            by_state.setdefault((problem.kind, problem.subject), []).append(problem)
    health = HEALTHY
    for (_, subject), problems in by_state.items():
        name = technique if subject == MODEL else f"{subject} of {technique}"
        health += Health((problems[0],)).of(f"{name}, in {len(problems)} of {count_text(len(cells), 'seed')},")
    return health


def _at_chance(cell: StudyCell) -> bool | None:
    """True if the predictions are not significantly better than chance; None: unknown."""
    rows = [cell.report.find(measure) for measure in ("accuracy", "macro-f1")]
    if cell.report.evaluation is None or None in rows:
        return None
    return is_at_chance(cell.report.evaluation.confusion, *(row.interval for row in rows if row is not None))


def _answers(cells: Sequence[StudyCell]) -> dict[str, tuple[Answer, ...]]:
    """Title of a verdict -> answer per seed."""
    per_seed = [{verdict.title: verdict.answer for verdict in cell.report.verdicts} for cell in cells]
    titles = dict.fromkeys(title for answers in per_seed for title in answers)
    return {title: tuple(answers.get(title, "not measured") for answers in per_seed) for title in titles}


def with_settings(
    results: Sequence[TechniqueResult], settings: Mapping[str, Mapping[str, object]]
) -> tuple[TechniqueResult, ...]:
    return tuple(dataclasses.replace(result, settings=settings[result.technique]) for result in results)
