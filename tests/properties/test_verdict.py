"""Verdicts from rows made by hand: what makes a yes, what a no, and what is too little for either."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import steadygaze as sg
from steadygaze.properties import PROPERTIES, measure_of, rows_under
from steadygaze.properties.property import COLLAPSED, FEWEST, FEWEST_FOR_YES, Property, Threshold, widening
from steadygaze.properties.verdict_rules import verdicts
from steadygaze.results.advice import AdviceKind
from steadygaze.results.note import Note, NoteCode, text_note
from steadygaze.results.row import Row, Verdict

RATED = [item for item in PROPERTIES.values() if item.rule]
NUMBERS = [
    pytest.param(item, name, id=f"{item.name}: {name}")
    for item in RATED
    for name in item.rule.thresholds
    if name != COLLAPSED
]
REFUTABLE = [item for item in NUMBERS if math.isfinite(item.values[0].rule.thresholds[item.values[1]].bad)]
"""The rows that can cause a no."""
KEYS = [item.name for item in RATED]
STABILITY, ROBUSTNESS, FAITHFULNESS, SHORTCUT = "stability", "robustness", "faithfulness", "shortcut-leakage"
DEPENDENT = ["stability", "robustness", "seed-consistency", "plausibility"]
"""The properties that mean nothing for an unfaithful explanation."""


def row(name: str, value: float, n: int = 100, near: float | None = 0.0, *notes: Note, absent: str = "") -> Row:
    """A mean with an interval of so much to either side, or none."""
    interval = None if near is None else (value - near, value + near)
    return Row(
        name, value, n, interval, {"explainer": "attention"}, notes, absent=text_note(absent) if absent else None
    )


def collapsed(value: float, *notes: Note) -> Row:
    return row(COLLAPSED, value, 100, None, *notes)


def rule_of(key: str) -> Property:
    return next(item for item in RATED if item.name == key)


def of(key: str, *rows: Row) -> Verdict:
    return next(verdict for verdict in verdicts(rows, "attention") if verdict.key == key)


def is_bounded(item: Property, name: str) -> bool:
    """True if the yes of another row makes a yes of this one."""
    return any(name in names for names in item.rule.bounds.values())


def good(item: Property) -> dict[str, Row]:
    """Every number as good as it need be."""
    return {
        name: row(name, b.good, near=None if name == COLLAPSED else 0.0) for name, b in item.rule.thresholds.items()
    }


# --- yes, no and in between


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_where_every_number_is_good_the_answer_is_yes(item):
    rows = good(item)
    verdict = of(item.name, *rows.values())
    assert verdict.answer == "yes"
    assert set(verdict.rows) == {row.signature for row in rows.values()}
    assert verdict.thresholds == {name: (bound.good, bound.bad) for name, bound in item.rule.thresholds.items()}
    assert verdict.title == item.title


@pytest.mark.parametrize(("item", "name"), REFUTABLE)
def test_one_number_that_is_bad_beyond_doubt_makes_a_no_and_one_in_doubt_no_yes(item, name):
    """Beyond doubt: the whole interval is.  One that reaches over an edge by a hair is in between.

    A row that is bounded by a yes is a yes if only its value is on the side of yes.
    """
    bound = item.rule.thresholds[name]
    middle, hair = (bound.good + bound.bad) / 2, abs(bound.good - bound.bad) / 100
    worse = hair if bound.bad > bound.good else -hair

    same_kind = next((group for group in item.rule.together if name in group), (name,))

    def answer(row: Row) -> str:
        return of(item.name, *(good(item) | {n: replace(row, measure=n) for n in same_kind}).values()).answer

    assert answer(row(name, bound.bad)) == "no"
    assert answer(row(name, bound.bad + 2 * worse, near=hair)) == "no"
    assert answer(row(name, bound.bad, near=hair)) == "undecided"
    assert answer(row(name, middle)) == "undecided"
    assert answer(row(name, bound.good, near=hair)) == ("yes" if is_bounded(item, name) else "undecided")
    assert answer(row(name, bound.good + worse, near=hair)) == "undecided"
    assert answer(row(name, bound.good - 2 * worse, near=hair)) == "yes"
    assert answer(row(name, float("nan"), near=0.0)) == "undecided"


@pytest.mark.parametrize(("item", "name"), [item for item in NUMBERS if item not in REFUTABLE])
def test_a_row_without_a_threshold_of_no_is_never_a_no(item, name):
    bound = item.rule.thresholds[name]
    worst = measure_of(name).bounds[bound.good < bound.bad]
    for value, answer in ((bound.good, "yes"), ((bound.good + worst) / 2, "undecided"), (worst, "undecided")):
        assert of(item.name, *(good(item) | {name: row(name, value)}).values()).answer == answer
        assert of(item.name, row(name, value)).answer == answer


def test_failed_measures_come_first():
    noise, fgm, pgd = rule_of(ROBUSTNESS).rule.thresholds
    verdict = of(ROBUSTNESS, row(noise, 0.9), row(fgm, 0.68), row(pgd, 0.4))
    assert verdict.answer == "no"
    assert [(reason.fields["measure"], reason.fields["value"]) for reason in verdict.reasons] == [
        (pgd, 0.4), (fgm, 0.68), (noise, 0.9),
    ]  # fmt: skip
    first, second, third = verdict.why.split("; ")
    assert ("0.400" in first, "0.680" in second, "0.900" in third) == (True, True, True)


@pytest.mark.parametrize(
    ("explainer", "noun"), [("attention", "attention"), ("rationale", "selection"), ("lime", "weight")]
)
def test_what_is_rated_is_named_for_what_the_model_shows(explainer, noun):
    results = [
        replace(row, settings={"explainer": explainer})
        for row in (good(rule_of(STABILITY)) | good(rule_of(SHORTCUT)) | {COLLAPSED: collapsed(1)}).values()
    ]
    why = {verdict.key: verdict.why for verdict in verdicts(results, explainer)}
    assert why[STABILITY].startswith(f"The {noun} does not depend on the text; ")
    assert f"the positions of the {noun} reveal the predicted label" in why[SHORTCUT]
    assert f"more of the {noun} than under uniform weights" in why[SHORTCUT]


def test_numbers_of_another_explanation_do_not_count():
    rows = [replace(row, settings={"explainer": "gradient"}) for row in good(rule_of(STABILITY)).values()]
    assert {verdict.answer for verdict in verdicts(rows, "attention")} == {"not measured"}
    assert next(iter(verdicts(rows, "gradient"))).answer == "yes"


# --- tests of one kind


@pytest.mark.parametrize("group", rule_of(FAITHFULNESS).rule.together)
def test_of_two_tests_of_one_kind_both_must_fail_for_a_no(group):
    first, second = (row(name, rule_of(FAITHFULNESS).rule.thresholds[name].bad) for name in group)
    rows = good(rule_of(FAITHFULNESS))
    assert of(FAITHFULNESS, *(rows | {first.measure: first}).values()).answer == "undecided"
    assert of(FAITHFULNESS, *(rows | {first.measure: first, second.measure: second}).values()).answer == "no"
    assert of(FAITHFULNESS, first).answer == "no"  # the other one has no value


# --- several tests


def test_a_score_that_is_a_no_alone_may_be_undecided_among_four_tests():
    """0.60 ± 0.09 lies beyond 0.5; with 95 % for four tests it is 0.60 ± 0.115, which reaches 0.485."""
    rule, name = rule_of(FAITHFULNESS).rule, "kendall/randomized"
    rows = good(rule_of(FAITHFULNESS))
    assert rule.thresholds[name].bad == 0.5
    assert rule.tests(rows) == 4, "two kinds of erasure, the random model and the leakage gap"
    near, far = row(name, 0.6, near=0.09), row(name, 0.62, near=0.09)
    assert of(FAITHFULNESS, near).answer == "no"
    assert of(FAITHFULNESS, *(rows | {name: near}).values()).answer == "undecided"
    assert of(FAITHFULNESS, *(rows | {name: far}).values()).answer == "no"


def test_the_interval_of_a_yes_is_not_widened():
    """0.2 ± 0.09 lies below 0.3, and 0.2 ± 0.115 would not."""
    rows = good(rule_of(FAITHFULNESS)) | {"kendall/randomized": row("kendall/randomized", 0.2, near=0.099)}
    assert 0.2 + 0.099 * widening(4) > 0.3
    assert of(FAITHFULNESS, *rows.values()).answer == "yes"


def test_the_widening_is_that_of_bonferroni():
    """The quantiles of the normal distribution for 1 − 0.05 / 2, / 4 and / 8: 1.960, 2.241 and 2.498."""
    assert [widening(tests) for tests in (1, 2, 4)] == pytest.approx(
        [1.0, 2.2414 / 1.95996, 2.4977 / 1.95996], abs=1e-4
    )


def test_rows_of_one_kind_and_a_collapse_are_one_test_and_none():
    rule = rule_of(FAITHFULNESS).rule
    assert [rule.tests(group) for group in rule.together] == [1, 1]
    assert rule.tests([name for group in rule.together for name in group]) == 2
    assert rule_of(STABILITY).rule.tests([COLLAPSED]) == 1
    assert rule_of(STABILITY).rule.tests(rule_of(STABILITY).rule.thresholds) == 2


def test_a_row_that_is_never_a_no_is_not_a_test():
    rule = rule_of(SHORTCUT).rule
    assert rule.tests(["label-unaccounted", "content-leak"]) == rule.tests(["content-leak"]) == 1


# --- a property that depends on another one


UNFAITHFUL = row("kendall/randomized", 0.9)


def answers(*rows: Row) -> dict[str, Verdict]:
    return {verdict.key: verdict for verdict in verdicts(rows, "attention")}


def good_everywhere() -> dict[str, Row]:
    return {name: row for item in RATED for name, row in good(item).items()}


def test_nothing_but_leakage_is_meaningful_for_an_unfaithful_explanation():
    faithful, unfaithful = (
        answers(*(good_everywhere() | extra).values()) for extra in ({}, {UNFAITHFUL.measure: UNFAITHFUL})
    )
    assert {verdict.answer for verdict in faithful.values()} == {"yes"}
    assert {key: verdict.answer for key, verdict in unfaithful.items()} == {
        FAITHFULNESS: "no",
        SHORTCUT: "yes",
        **dict.fromkeys(DEPENDENT, "not meaningful"),
    }
    for key in DEPENDENT:
        first, *others = unfaithful[key].reasons
        assert (first.code, first.fields) == (NoteCode.DEPENDS_ON, {"title": "Faithfulness", "answer": "no"})
        assert tuple(others) == faithful[key].reasons, "the scores are still listed"
        assert unfaithful[key].rows == faithful[key].rows
        assert unfaithful[key].thresholds == faithful[key].thresholds


@pytest.mark.parametrize("key", DEPENDENT)
@pytest.mark.parametrize("value", ["good", "middle", "bad"])
def test_no_answer_of_a_dependent_property_survives_and_it_has_no_advice(key, value):
    name = rule_of(key).rule.required[0]
    bound = rule_of(key).rule.thresholds[name]
    score = row(name, {"good": bound.good, "middle": (bound.good + bound.bad) / 2, "bad": bound.bad}[value])
    alone, dependent = answers(score)[key], answers(score, UNFAITHFUL)[key]
    assert alone.answer == {"good": "yes", "middle": "undecided", "bad": "no"}[value]
    assert bool(alone.advice) == (value != "good")
    assert (dependent.answer, dependent.advice) == ("not meaningful", ())


@pytest.mark.parametrize("key", DEPENDENT)
def test_what_was_not_measured_stays_so(key):
    name = rule_of(key).rule.required[0]
    missing = row(name, float("nan"), 0, None, absent="nothing was found")
    for rows in ((), (missing,)):
        alone, dependent = answers(*rows)[key], answers(*rows, UNFAITHFUL)[key]
        assert dependent == alone
        assert dependent.answer == "not measured"


@pytest.mark.parametrize("key", DEPENDENT)
@pytest.mark.parametrize("value", ["good", "middle", "bad"])
def test_there_is_no_yes_about_an_explanation_whose_faithfulness_is_undecided(key, value):
    """A no needs no faithfulness: it says that something is wrong."""
    name = rule_of(key).rule.required[0]
    bound = rule_of(key).rule.thresholds[name]
    score = row(name, {"good": bound.good, "middle": (bound.good + bound.bad) / 2, "bad": bound.bad}[value])
    doubtful = answers(score, row("kendall/randomized", 0.4))
    alone = answers(score)[key]
    assert doubtful[FAITHFULNESS].answer == "undecided"
    if value == "good":
        first, *others = doubtful[key].reasons
        assert doubtful[key].answer == "undecided"
        assert (first.code, first.fields) == (NoteCode.DEPENDS_ON, {"title": "Faithfulness", "answer": "undecided"})
        assert (tuple(others), doubtful[key].rows) == (alone.reasons, alone.rows)
        decide, *advice = doubtful[key].advice
        assert (decide.kind, decide.numbers) == (AdviceKind.DECIDE_FIRST, {"title": "Faithfulness"})
        assert tuple(advice) == doubtful[FAITHFULNESS].advice != ()
        assert doubtful[key].advice_text.startswith("First decide faithfulness; ")
    else:
        assert doubtful[key] == alone


@pytest.mark.parametrize("key", DEPENDENT)
@pytest.mark.parametrize("faithfulness", ["yes", "not measured"])
def test_a_yes_stays_one_if_faithfulness_is_a_yes_or_was_not_measured(key, faithfulness):
    rows = list(good(rule_of(key)).values())
    rows += good(rule_of(FAITHFULNESS)).values() if faithfulness == "yes" else []
    verdict = answers(*rows)
    assert (verdict[FAITHFULNESS].answer, verdict[key].answer) == (faithfulness, "yes")


# --- a row that bounds others


BOUND, BOUNDED = "label-unaccounted", ("content-leak", "position-leak/unaccounted")


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(
    ("unaccounted", "value", "near", "n", "expected"),
    [
        ((0.04, 0.01), 0.03, 0.02, 100, "yes"),  # little can leak: that the interval ends at 0.05 does not matter
        ((0.08, 0.02), 0.03, 0.02, 100, "undecided"),  # the bound is undecided
        ((0.04, 0.01), 0.045, 0.02, 100, "undecided"),  # the value is above 0.04, the threshold of yes
        ((0.04, 0.01), 0.03, 0.02, 49, "undecided"),
        ((0.04, 0.01), 0.03, 0.02, 50, "yes"),
        ((0.04, 0.01), 0.03, None, 100, "yes"),
        ((0.04, 0.01), 0.20, 0.01, 100, "no"),
        ((0.04, 0.01), 0.03, 0.005, 100, "yes"),
        ((0.08, 0.02), 0.03, 0.005, 100, "undecided"),
    ],
)
def test_a_yes_of_the_unaccounted_label_decides_the_leaks_that_it_bounds(name, unaccounted, value, near, n, expected):
    rows = good(rule_of(SHORTCUT)) | {
        BOUND: row(BOUND, unaccounted[0], near=unaccounted[1]),
        name: row(name, value, n, near),
    }
    assert of(SHORTCUT, *rows.values()).answer == expected


def test_the_unaccounted_label_bounds_no_other_row():
    assert rule_of(SHORTCUT).rule.bounds == {BOUND: BOUNDED}
    others = set(rule_of(SHORTCUT).rule.thresholds) - {COLLAPSED, BOUND, *BOUNDED}
    for name in others:
        bound = rule_of(SHORTCUT).rule.thresholds[name]
        doubtful = row(name, bound.good, near=abs(bound.good - bound.bad) / 100)
        assert of(SHORTCUT, *(good(rule_of(SHORTCUT)) | {name: doubtful}).values()).answer == "undecided"
    assert {item.name for item in RATED if item.rule.bounds} == {SHORTCUT}


# --- a model that is close to constant


@pytest.mark.parametrize(("size", "expected"), [(0.0005, "not measured"), (0.4, "yes")])
def test_the_same_explanation_is_not_rated_if_the_model_is_close_to_constant(size, expected):
    """It names the only word that matters, of a model whose probabilities span 0.001 or 0.8."""

    def predict(texts: list[str]) -> list[list[float]]:
        up = [size * (("good" in text) - ("bad" in text)) for text in texts]
        return [[0.5 - change, 0.5 + change] for change in up]

    nouns = [*"abcdefghijklmnopqrstuvwxyz"]
    texts = [f"a {word} film of {noun}" for word in ("good", "bad") for noun in nouns]
    report = sg.audit(predict, texts, classes=["no", "yes"], explainers=["lime"])
    faithfulness = next(verdict for verdict in report.verdicts if verdict.key == FAITHFULNESS)
    assert faithfulness.answer == expected
    assert ("the prediction hardly depends on the words" in faithfulness.why.lower()) == (size < 0.001)


# --- too little for a yes, or for a no


@pytest.mark.parametrize(("item", "name"), NUMBERS)
@pytest.mark.parametrize("n", [1, FEWEST - 1])
def test_a_few_texts_are_beyond_no_doubt(item, name, n):
    """However good or bad: one text never is."""
    bound = item.rule.thresholds[name]
    for value in (bound.good, bound.bad):
        assert of(item.name, row(name, value, n)).answer == "undecided"
        rows = good(item) | {name: row(name, value, n)}
        assert of(item.name, *rows.values()).answer == "undecided"
    assert of(item.name, row(name, bound.bad, FEWEST)).answer == ("no" if math.isfinite(bound.bad) else "undecided")


@pytest.mark.parametrize(("item", "name"), NUMBERS)
def test_a_yes_needs_fifty_texts_and_a_no_eight(item, name):
    """A good score of 49 texts prevents the yes of all others; it is no reason for a no."""
    assert (FEWEST, FEWEST_FOR_YES) == (8, 50)
    for n, answer in ((FEWEST, "undecided"), (49, "undecided"), (50, "yes")):
        score = row(name, item.rule.thresholds[name].good, n)
        assert of(item.name, *(good(item) | {name: score}).values()).answer == answer
        assert of(item.name, score).answer == (answer if name in item.rule.required else "undecided")


@pytest.mark.parametrize(("item", "name"), NUMBERS)
def test_a_number_without_an_interval_is_beyond_no_doubt(item, name):
    bound = item.rule.thresholds[name]
    for value in (bound.good, bound.bad):
        expected = "yes" if value == bound.good and is_bounded(item, name) else "undecided"
        assert of(item.name, *(good(item) | {name: row(name, value, near=None)}).values()).answer == expected
        assert of(item.name, row(name, value, near=None)).answer == "undecided"


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_without_what_a_question_needs_there_is_no_yes_but_there_may_be_a_no(item):
    left = {name: row for name, row in good(item).items() if name not in item.rule.required}
    informative = [name for name in left if name != COLLAPSED]
    assert of(item.name, *left.values()).answer == ("undecided" if informative else "not measured")
    for name in informative:
        bad = row(name, item.rule.thresholds[name].bad)
        assert of(item.name, *(left | {name: bad}).values()).answer == "no"


def test_missing_measures_of_a_yes_are_named_with_the_reason():
    """The gradient has no effect: the score under noise is good, or undecided, and not enough; a no needs no more."""
    noise, fgm, pgd = rule_of(ROBUSTNESS).rule.thresholds
    missing = row(fgm, float("nan"), 0, None, absent="the gradient has no effect")
    good, doubtful, bad = (row(noise, value) for value in (0.9, 0.68, 0.1))
    for score in (good, doubtful):
        verdict = of(ROBUSTNESS, score, missing)
        needs = verdict.reasons[-1]
        assert (needs.code, needs.fields["measure"]) == (NoteCode.YES_NEEDS, fgm)
        assert verdict.why.endswith(f"({fgm}), which is {missing.note}.")
        assert of(ROBUSTNESS, score).why.endswith(f"({fgm}), which is missing.")
    for rows in ((bad, missing), (doubtful, row(pgd, 0.9), missing)):
        assert NoteCode.YES_NEEDS not in [reason.code for reason in of(ROBUSTNESS, *rows).reasons]


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_without_measures_the_reason_is_that_of_the_required_measures(item):
    rows = [row(name, float("nan"), 0, None, absent=f"no {name}") for name in item.rule.thresholds]
    assert of(item.name, *rows).why == f"No {item.rule.required[0]}."


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_one_of_what_a_question_needs_is_enough_for_a_yes(item):
    assert item.rule.required
    for name in item.rule.required:
        assert of(item.name, good(item)[name]).answer == "yes"


def test_what_was_needed_and_could_not_be_measured_is_not_there():
    missing = row("label-unaccounted", float("nan"), 0, None, absent="only one text was passed")
    verdict = of(SHORTCUT, collapsed(0), missing, row("default-mass/above-share", 0.0))
    assert verdict.answer == "undecided"
    assert missing.signature not in verdict.rows


def test_only_rewording_decides_stability():
    """Shifts by other probes, and of divergences, are reported and decide nothing."""
    names = (*rule_of(ROBUSTNESS).rule.thresholds, *rows_under("1-synonym", "3-synonyms", "noise", "fgm-label"))
    others = [row(name, value) for name in names for value in (0.0, 1.0)]
    absent = [row(name, math.nan, 0, None, absent="no synonyms are known") for name in rule_of(STABILITY).rule.required]
    for rows in ([], others[::2], others[1::2]):
        verdict = of(STABILITY, collapsed(0), *rows, *absent)
        assert (verdict.answer, verdict.why) == ("not measured", "No synonyms are known.")
        good = [row(name, 0.7) for name in rule_of(STABILITY).rule.required]
        assert of(STABILITY, collapsed(0), *rows, *good).answer == "yes"


# --- guards can fail a verdict, never pass it


@pytest.mark.parametrize("key", [STABILITY, SHORTCUT])
def test_the_absence_of_a_collapse_answers_nothing_and_is_not_reported(key):
    assert of(key, collapsed(0)).answer == "not measured"
    name = rule_of(key).rule.required[0]
    alone, beside = of(key, good(rule_of(key))[name]), of(key, good(rule_of(key))[name], collapsed(0))
    assert (alone.answer, alone.why) == (beside.answer, beside.why)


@pytest.mark.parametrize("key", [STABILITY, SHORTCUT])
def test_a_collapse_is_a_no_whatever_else_is_good_and_though_it_has_no_interval(key):
    rows = good(rule_of(key)) | {COLLAPSED: collapsed(1, text_note("the weights are even"))}
    verdict = of(key, *rows.values())
    assert verdict.answer == "no"
    assert verdict.why.lower().startswith(rule_of(key).rule.thresholds[COLLAPSED].sentence.format(noun="attention"))
    assert of(key, collapsed(1)).answer == "no"
    assert of(key, replace(collapsed(1), n=2)).answer == "no"


@pytest.mark.parametrize("key", [key for key in KEYS if key not in (STABILITY, SHORTCUT)])
def test_a_collapse_does_not_change_other_verdicts(key):
    assert of(key, collapsed(1)).answer == "not measured"


# --- the sentence


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_why_is_always_a_sentence(item):
    """Whatever is there: nothing, one number, all of them; good, bad, not defined or not measured."""
    ways = [
        lambda name, bound: row(name, bound.good),
        lambda name, bound: row(name, bound.bad),
        lambda name, bound: row(name, float("nan")),
        lambda name, bound: row(name, float("nan"), 0, None),
        lambda name, bound: row(name, float("nan"), 0, None, "the model has no attention weights"),
    ]
    bounds = item.rule.thresholds.items()
    sets = [[], *([way(*item)] for way in ways for item in bounds), *([way(*item) for item in bounds] for way in ways)]
    for rows in sets:
        for verdict in verdicts(rows, "attention"):
            assert len(verdict.why) > 10
            assert verdict.why.endswith(".")
            assert not verdict.why.endswith("..")
            assert verdict.why[0].isupper()
            assert "{" not in verdict.why
            assert (verdict.answer == "not measured") == (not verdict.rows)


def test_a_verdict_without_measures_has_the_reason():
    rows = [
        row(name, float("nan"), 0, None, absent="nobody marked a word")
        for name in rule_of("plausibility").rule.thresholds
    ]
    assert of("plausibility", *rows) == replace(of("plausibility"), reasons=(text_note("nobody marked a word"),))
    assert of("plausibility").why == "No deciding measure is available."


# --- the bounds themselves


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_every_number_is_in_the_catalog_and_points_the_way_it_points_there(item):
    for name, bound in item.rule.thresholds.items():
        measure = measure_of(name)
        assert measure.direction in ("neither", "higher" if bound.good > bound.bad else "lower"), name
        low, high = measure.bounds
        assert low <= bound.good <= high, name
        assert low <= bound.bad <= high or math.isinf(bound.bad), name
        assert bound.good != bound.bad, name
    assert set(item.rule.required) <= set(item.rule.thresholds) - {COLLAPSED}


def test_every_verdict_is_decided_by_its_rows():
    decided = {item.name: set(item.rule.thresholds) for item in RATED}
    assert decided[STABILITY] == {COLLAPSED, "weight-correlation/reworded", "weight-correlation/reworded-top"}
    assert decided[ROBUSTNESS] == {f"weight-correlation/{probe}" for probe in ("noise", "fgm-label", "pgd-attention")}
    assert decided["seed-consistency"] == {"weight-correlation/seeds"}
    assert {"content-leak", "value-leak", "label-unaccounted", "position-leak/unaccounted"} < decided[SHORTCUT]
    assert rule_of(SHORTCUT).rule.required == ("label-unaccounted",)
    assert not [name for names in decided.values() for name in names if name.startswith("jensen-shannon/")]
    assert "position-leak/shuffled" not in decided[SHORTCUT]
    assert {item.name for item in RATED if COLLAPSED in item.rule.thresholds} == {STABILITY, SHORTCUT}
    assert {item.name: item.rule.depends_on for item in RATED if item.rule.depends_on} == dict.fromkeys(
        DEPENDENT, (FAITHFULNESS,)
    )
    assert len(set(KEYS)) == len({item.title for item in RATED}) == len(RATED)


def test_the_page_about_reports_lists_all_thresholds():
    """One line of the table for each row; infinity is written as never."""
    page = (Path(__file__).parents[2] / "docs/how-to/read-a-report.md").read_text(encoding="utf-8")
    lines = re.findall(r"\| `([a-z/-]+)` \| ([≤≥] [\d.]+) \| ([≤≥] [\d.]+|never) \|", page)
    expected = {
        name: (
            f"{'≥' if bound.good > bound.bad else '≤'} {bound.good:g}",
            f"{'≤' if bound.good > bound.bad else '≥'} {bound.bad:g}" if math.isfinite(bound.bad) else "never",
        )
        for item in RATED
        for name, bound in item.rule.thresholds.items()
        if name != COLLAPSED
    }
    assert {name: (yes, no) for name, yes, no in lines} == expected
    assert len(lines) == len(expected)
    assert f"{FEWEST_FOR_YES} texts" in page
    titles = [cell.strip() for cell in re.findall(r"^\| ([A-Z][^|]*) \|", page, re.MULTILINE)]
    assert {item.title for item in RATED} <= set(titles)


def test_one_bound_by_hand():
    """Less is better: yes up to .1, no from .3 on.  More is better: yes from .3 on, no up to .1."""
    less, more = Threshold(0.1, 0.3, "{value}"), Threshold(0.3, 0.1, "{value}")
    for low, high, answer_if_lower, answer_if_higher in [
        (0.0, 0.1, "yes", "no"),
        (0.0, 0.2, "undecided", "undecided"),
        (0.2, 0.4, "undecided", "undecided"),
        (0.3, 0.4, "no", "yes"),
    ]:
        number = Row("number", (low + high) / 2, FEWEST_FOR_YES, (low, high))
        assert (less.decide(number), more.decide(number)) == (answer_if_lower, answer_if_higher)
        few = replace(number, n=FEWEST)
        assert [answer.decide(few) for answer in (less, more)] == [
            "undecided" if answer == "yes" else answer for answer in (answer_if_lower, answer_if_higher)
        ]
