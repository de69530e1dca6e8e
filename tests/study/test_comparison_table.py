"""Which results are better, which are bought by collapse, and the note of a row without a number."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from steadygaze.properties import all_measures, columns, row_names
from steadygaze.results.comparison import Column, Difference
from steadygaze.results.evaluation import macro_f1_row
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.note import text_note
from steadygaze.results.row import Row, ValueKey
from steadygaze.study.cells import LABEL as LABEL_KEY
from steadygaze.study.cells import PREDICTED
from steadygaze.study.compare_config import BETWEEN
from steadygaze.study.comparison_table import mark, technique_results
from study.tiny import cell

NOISE, FLIPS, EVEN, F1 = "jensen-shannon/noise", "label-flip/3-synonyms", "normalized-entropy", "macro-f1"
TEXTS = np.random.default_rng(0).uniform(0.2, 0.4, size=50)
FAIR = ((15, 15), (10, 10))
LOWER = Column("x", "x", "about", "lower", stability=True)


def several(technique, shift=0.0, collapsed=0.0, seeds=2, **more):
    values = {NOISE: TEXTS + shift, EVEN: TEXTS + shift, F1: 0.9 + shift, "collapsed": collapsed}
    return [cell(technique, seed, {**values, **more}) for seed in range(seeds)]


def compared(*techniques, between=None):
    cells = {group[0].technique: group for group in techniques}
    return {result.technique: result for result in technique_results(cells, between or {name: {} for name in cells})}


def test_a_lower_distance_is_better_and_a_higher_one_worse():
    """Every text by 0.1: no coin of 50 throws does that; 1 / 10,000 times the comparisons of the table."""
    result = compared(several("vanilla"), several("steady", -0.1), several("shaky", 0.1), several("same"))
    assert [result[name].entries[NOISE].mark for name in ("steady", "shaky", "same", "vanilla")] == [
        "better",
        "worse",
        "",
        "",
    ]
    gap = result["steady"].entries[NOISE].against
    assert gap.value == pytest.approx(-0.1)
    assert gap.interval == pytest.approx((-0.1, -0.1))
    assert gap.agree == 2
    assert (gap.p, gap.holm) == (pytest.approx(1e-4), pytest.approx(6e-4))  # 3 techniques × 2 measures
    assert result["vanilla"].entries[NOISE].against is None


def test_the_numbers_are_signed_by_all_their_seeds():
    row = compared(several("vanilla"), several("steady"))["vanilla"].entries[NOISE].row
    assert row.signature == f"{NOISE}|corpus:tiny|explainer:attention|seeds:0+1|n:50"
    assert row.value == pytest.approx(TEXTS.mean())
    assert row.interval[0] < row.value < row.interval[1]


def test_a_seed_is_at_chance_if_neither_accuracy_nor_macro_f1_is_above_it():
    def scored(technique, seed, accuracy, macro_f1):
        made = cell(technique, seed, {NOISE: TEXTS})
        rows = (Row("accuracy", sum(accuracy) / 2, 50, accuracy), Row(F1, sum(macro_f1) / 2, 50, macro_f1))
        report = replace(made.report, rows=(*made.report.rows, *rows), evaluation=SimpleNamespace(confusion=FAIR))
        return replace(made, report=report)

    guessed, learned = ((0.4, 0.6), (0.35, 0.6)), ((0.7, 0.9), (0.6, 0.9))
    balanced = ((0.5, 0.7), (0.52, 0.7))  # at the share of the most frequent label, but above it for both classes
    result = compared(
        [scored("vanilla", seed, *scores) for seed, scores in enumerate((guessed, learned, balanced))],
        several("unknown", seeds=3),
    )
    assert result["vanilla"].at_chance == (True, False, False)
    assert result["vanilla"].guessing == 1
    assert result["unknown"].at_chance == ()


def test_nobody_wins_by_collapsing():
    result = compared(several("vanilla"), several("silent", -0.1, collapsed=1.0))["silent"]
    assert result.entries[NOISE].mark == "bought"
    assert result.marked("better") == []
    assert result.collapsed == (True, True)
    assert result.silent == 2


def test_one_collapsed_seed_is_enough():
    cells = [*several("half", -0.1, seeds=1), cell("half", 1, {NOISE: TEXTS - 0.1, "collapsed": 1.0})]
    result = compared(several("vanilla"), cells)["half"]
    assert (result.silent, result.entries[NOISE].mark) == (1, "bought")


def test_a_known_bad_state_counts_its_seeds_and_names_the_model_or_the_explanation():
    flat = HealthProblem(ProblemKind.COLLAPSED, detail="Flat.")
    constant = HealthProblem(ProblemKind.COLLAPSED_EXPLANATION, "The explanation by lime", detail="Flat.")
    cells = several("vanilla")
    found = [Health((flat, constant)), Health((constant,))]
    cells = [
        replace(cell, report=replace(cell.report, health=health)) for cell, health in zip(cells, found, strict=True)
    ]
    assert [problem.subject for problem in compared(cells)["vanilla"].health] == [
        "vanilla, in 1 of 2 seeds,",
        "The explanation by lime of vanilla, in 2 of 2 seeds,",
    ]


def test_a_number_without_a_good_end_differs():
    assert compared(several("vanilla"), several("other", 0.1))["other"].entries[EVEN].mark == "differs"


def test_a_number_of_the_whole_set_has_seeds_and_no_test():
    """0.7 ± 9.17 · 0.1, and within the range of macro-F1; the difference −0.2 ± 0.917."""
    cells = [cell("other", 0, {F1: 0.8}), cell("other", 1, {F1: 0.6})]
    entry = compared([cell("vanilla", s, {F1: 0.9}) for s in range(2)], cells)["other"].entries[F1]
    assert (entry.row.value, entry.row.interval, entry.seeds) == (pytest.approx(0.7), (0.0, 1.0), (0.8, 0.6))
    assert entry.against.value == pytest.approx(-0.2)
    assert entry.against.interval == pytest.approx((-1.1168, 0.7168), abs=1e-3)
    assert (entry.against.p, entry.against.holm, entry.mark) == (None, None, "")
    alone = compared(several("vanilla", seeds=1), several("other", seeds=1))["other"].entries[F1]
    assert alone.row.interval is None


LABEL = np.arange(50) % 2


def predicting(technique, seed, wrong):
    """A model that is wrong about the first texts."""
    predicted = np.where(np.arange(50) < wrong, 1 - LABEL, LABEL)
    made = cell(technique, seed, {F1: macro_f1(LABEL, predicted)})
    outcomes = {LABEL_KEY: LABEL.astype(float), PREDICTED: predicted.astype(float)}
    return replace(made, values={**made.values, **outcomes})


def macro_f1(label, predicted):
    return f1_score(label, predicted, average="macro")


def test_equal_seeds_leave_the_variation_between_texts_in_macro_f1():
    """All seeds are wrong about ten texts of 50: the interval is that of one model, and not of width 0."""
    result = compared([predicting("vanilla", s, 10) for s in range(3)], [predicting("other", s, 10) for s in range(3)])
    predicted = np.where(np.arange(50) < 10, 1 - LABEL, LABEL)
    (low, high), alone = result["vanilla"].entries[F1].row.interval, macro_f1_row(LABEL, predicted, 2).interval
    assert (low, high) == pytest.approx(alone, abs=0.02)
    assert high - low > 0.15
    assert result["other"].entries[F1].against.interval == (0.0, 0.0), "the same predictions in every resample"


def test_one_seed_has_an_interval_of_macro_f1_over_texts():
    low, high = (
        compared([predicting("vanilla", 0, 10)], [predicting("other", 0, 5)])["vanilla"].entries[F1].row.interval
    )
    assert 0.6 < low < 0.75 < 0.85 < high < 0.95


def test_macro_f1_of_seeds_without_known_predictions_resamples_the_seeds():
    cells = [predicting("other", 0, 10), cell("other", 1, {F1: 0.8})]
    entry = compared([predicting("vanilla", s, 10) for s in range(2)], cells)["other"].entries[F1]
    assert entry.against.interval == pytest.approx((0.0, 0.0), abs=1e-12)


def test_a_difference_that_seeds_do_not_share_is_not_marked():
    """Better by 0.3 in one seed, worse by 0.1 in the other: sure of these texts, and of no other seed."""
    cells = [cell("other", 0, {NOISE: TEXTS - 0.3}), cell("other", 1, {NOISE: TEXTS + 0.1})]
    entry = compared([cell("vanilla", s, {NOISE: TEXTS}) for s in range(2)], cells)["other"].entries[NOISE]
    assert entry.against.holm < 0.05
    assert entry.against.interval[1] > 0
    assert (entry.against.agree, entry.mark) == (1, "")


def test_a_number_that_a_cell_lacks_is_a_reason():
    cells = [cell("other", 0, {NOISE: TEXTS}), cell("other", 1, {}, {NOISE: text_note("it rained")})]
    entry = compared(several("vanilla"), cells)["other"].entries[NOISE]
    assert math.isnan(entry.row.value)
    assert entry.row.note == "not applicable, because it rained (other, seed 1)"
    assert entry.against is None
    missing = compared(several("vanilla"), several("other"))["other"].entries[FLIPS]
    assert "not measured" in missing.row.note


def test_texts_that_have_no_number_are_counted_out():
    holed = TEXTS.copy()
    holed[:10] = np.nan
    entry = compared(several("vanilla"), several("other", **{NOISE: holed - 0.1}))["other"].entries[NOISE]
    assert (entry.row.n, entry.row.note) == (40, "left out: 10 texts")
    assert entry.against.value == pytest.approx(-0.1), "over the texts that both have"


def test_what_lies_between_seeds_is_compared_text_by_text():
    seeds, pairs = "jensen-shannon/seeds", [ValueKey(BETWEEN, "attention", pair) for pair in ((0, 1), (0, 2), (1, 2))]
    between = {name: dict.fromkeys(pairs, TEXTS - shift) for name, shift in (("vanilla", 0.0), ("steady", 0.1))}
    result = compared(several("vanilla", seeds=3), several("steady", seeds=3), between=between)["steady"].entries[seeds]
    assert (result.mark, result.seeds) == ("better", ())
    assert result.row.value == pytest.approx(TEXTS.mean() - 0.1)
    assert result.against.value == pytest.approx(-0.1)
    pair = {name: {pairs[0]: values[pairs[0]]} for name, values in between.items()}
    two = compared(several("vanilla"), several("steady"), between=pair)["steady"].entries[seeds]
    assert two.against.holm < 0.05
    assert two.mark == "", "one distance says nothing of other seeds"
    alone = compared(several("vanilla", seeds=1), several("steady", seeds=1))["steady"]
    assert "only one model" in alone.entries[seeds].row.note


def test_the_audits_answers_are_kept_seed_by_seed():
    assert compared(several("vanilla"), several("x"))["x"].answers == {"Stability": ("undecided", "yes")}


@pytest.mark.parametrize(
    ("interval", "holm", "marked"),
    [((-0.2, -0.1), 0.049, "better"), ((-0.2, -0.1), 0.05, ""), ((-0.2, 0.0), 0.01, ""), (None, 0.01, "")],
)
def test_a_mark_takes_both_the_test_and_the_interval(interval, holm, marked):
    assert mark(LOWER, Difference(-0.1, interval, 1, holm / 2, holm), False) == marked


def test_every_column_is_a_row_of_an_audit():
    assert all(column.measure in row_names() for column in columns())
    for measure in all_measures().values():
        assert {column.key.measure for column in measure.columns} <= {measure.name}
