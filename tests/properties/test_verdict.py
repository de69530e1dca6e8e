"""Verdicts from rows made by hand: what makes a yes, what a no, and what is too little for either."""

from dataclasses import replace

import pytest

import steadygaze as sg
from steadygaze.properties import PROPERTIES, measure_of
from steadygaze.properties.property import COLLAPSED, FEWEST, Property, Threshold
from steadygaze.properties.verdict_rules import verdicts
from steadygaze.results.formatting import SHIFT_SCALE
from steadygaze.results.note import Note, text_note
from steadygaze.results.row import Row, Verdict

RATED = [item for item in PROPERTIES.values() if item.rule]
NUMBERS = [
    pytest.param(item, name, id=f"{item.name}: {name}")
    for item in RATED
    for name in item.rule.thresholds
    if name != COLLAPSED
]
KEYS = [item.name for item in RATED]
STABILITY_TITLE, SHORTCUT = "stability", "shortcut-leakage"


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


@pytest.mark.parametrize(("item", "name"), NUMBERS)
def test_one_number_that_is_bad_beyond_doubt_makes_a_no_and_one_in_doubt_no_yes(item, name):
    """Beyond doubt: the whole interval is.  One that reaches over an edge by a hair is in between."""
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
    assert answer(row(name, bound.good, near=hair)) == "undecided"
    assert answer(row(name, bound.good - 2 * worse, near=hair)) == "yes"
    assert answer(row(name, float("nan"), near=0.0)) == "undecided"


def test_failed_measures_come_first():
    rows = good(rule_of(STABILITY_TITLE)) | {
        "jensen-shannon/1-synonym": row("jensen-shannon/1-synonym", 0.4),
        "jensen-shannon/noise": row("jensen-shannon/noise", 0.01),
    }
    first, second, *rest = of(STABILITY_TITLE, *rows.values()).why.split("; ")
    assert first == f"Substituting one word by a synonym shifts the attention by 0.400 ({SHIFT_SCALE})"
    assert second == "small noise shifts the attention by 0.010"
    assert len(rest) == 3


@pytest.mark.parametrize(
    ("explainer", "noun"), [("attention", "attention"), ("rationale", "selection"), ("lime", "weight")]
)
def test_what_moves_is_named_for_what_the_model_shows(explainer, noun):
    results = [
        replace(row, settings={"explainer": explainer})
        for key in (STABILITY_TITLE, SHORTCUT)
        for row in good(rule_of(key)).values()
    ]
    still, _, _, shortcut, _ = (verdict.why for verdict in verdicts(results, explainer))
    assert still.startswith(
        f"Small noise shifts the {noun} by 0.005 (0: the same words, 0.69: entirely different words); "
    )
    assert f"the positions of the {noun} reveal the predicted label" in shortcut
    assert f"more of the {noun} than under uniform weights" in shortcut


def test_numbers_of_another_explanation_do_not_count():
    rows = [replace(row, settings={"explainer": "gradient"}) for row in good(rule_of(STABILITY_TITLE)).values()]
    assert {verdict.answer for verdict in verdicts(rows, "attention")} == {"not measured"}
    assert next(iter(verdicts(rows, "gradient"))).answer == "yes"


# --- tests of one kind


@pytest.mark.parametrize("group", rule_of("faithfulness").rule.together)
def test_of_two_tests_of_one_kind_both_must_fail_for_a_no(group):
    first, second = (row(name, rule_of("faithfulness").rule.thresholds[name].bad) for name in group)
    rows = good(rule_of("faithfulness"))
    assert of("faithfulness", *(rows | {first.measure: first}).values()).answer == "undecided"
    assert of("faithfulness", *(rows | {first.measure: first, second.measure: second}).values()).answer == "no"
    assert of("faithfulness", first).answer == "no"  # the other one has no value


# --- a model that is close to constant


@pytest.mark.parametrize(("size", "expected"), [(0.0005, "not measured"), (0.4, "yes")])
def test_the_same_explanation_is_not_rated_if_the_model_is_close_to_constant(size, expected):
    """It names the only word that matters, of a model whose probabilities span 0.001 or 0.8."""

    def predict(texts: list[str]) -> list[list[float]]:
        up = [size * (("good" in text) - ("bad" in text)) for text in texts]
        return [[0.5 - change, 0.5 + change] for change in up]

    nouns = [*"abcdefghijklmnop"]
    texts = [f"a {word} film of {noun}" for word in ("good", "bad") for noun in nouns]
    report = sg.audit(predict, texts, classes=["no", "yes"], explainers=["lime"])
    faithfulness = next(verdict for verdict in report.verdicts if verdict.key == "faithfulness")
    assert faithfulness.answer == expected
    assert ("the prediction hardly depends on the words" in faithfulness.why.lower()) == (size < 0.001)


# --- too little for a yes, or for a no


@pytest.mark.parametrize(("item", "name"), NUMBERS)
@pytest.mark.parametrize("n", [1, FEWEST - 1])
def test_a_few_texts_are_beyond_no_doubt(item, name, n):
    """However good or bad: one text never is."""
    for value in (item.rule.thresholds[name].good, item.rule.thresholds[name].bad):
        assert of(item.name, row(name, value, n)).answer == "undecided"
        rows = good(item) | {name: row(name, value, n)}
        assert of(item.name, *rows.values()).answer == "undecided"
    assert of(item.name, row(name, item.rule.thresholds[name].bad, FEWEST)).answer == "no"


@pytest.mark.parametrize(("item", "name"), NUMBERS)
def test_a_number_without_an_interval_is_beyond_no_doubt(item, name):
    for value in (item.rule.thresholds[name].good, item.rule.thresholds[name].bad):
        assert of(item.name, *(good(item) | {name: row(name, value, near=None)}).values()).answer == "undecided"


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_without_what_a_question_needs_there_is_no_yes_but_there_may_be_a_no(item):
    left = {name: row for name, row in good(item).items() if name not in item.rule.required}
    informative = [name for name in left if name != COLLAPSED]
    assert of(item.name, *left.values()).answer == ("undecided" if informative else "not measured")
    for name in informative:
        bad = row(name, item.rule.thresholds[name].bad)
        assert of(item.name, *(left | {name: bad}).values()).answer == "no"


def test_missing_measures_of_a_yes_are_named_with_the_reason():
    """No word had a synonym: numbers of the vectors are good, or undecided, and not enough; a no needs no more."""
    missing = row("jensen-shannon/1-synonym", float("nan"), 0, None, absent="no word has a synonym")
    good, doubtful, bad = (row("jensen-shannon/noise", value) for value in (0.0, 0.01, 0.02))
    for noise in (good, doubtful):
        label = "shift when one word is substituted by a synonym (jensen-shannon/1-synonym)"
        needs = f"; a yes also needs the {label}, which is"
        assert of(STABILITY_TITLE, noise, missing).why.endswith(f"{needs} {missing.note}.")
        assert of(STABILITY_TITLE, noise).why.endswith(f"{needs} missing.")
    assert "a yes also needs" not in of(STABILITY_TITLE, bad, missing).why
    assert "a yes also needs" not in of(STABILITY_TITLE, doubtful, row("jensen-shannon/3-synonyms", 0.0), missing).why


def test_without_measures_the_reason_is_that_of_the_required_measures():
    rows = [row(name, float("nan"), 0, None, absent=f"no {name}") for name in rule_of(STABILITY_TITLE).rule.thresholds]
    assert of(STABILITY_TITLE, *rows).why == "No jensen-shannon/1-synonym."


@pytest.mark.parametrize("item", RATED, ids=KEYS)
def test_one_of_what_a_question_needs_is_enough_for_a_yes(item):
    assert item.rule.required
    for name in item.rule.required:
        assert of(item.name, good(item)[name]).answer == "yes"


def test_what_was_needed_and_could_not_be_measured_is_not_there():
    missing = row("position-leak/shuffled", float("nan"), 0, None, absent="fewer than two classes are predicted")
    verdict = of(SHORTCUT, collapsed(0), missing, row("default-mass/above-share", 0.0))
    assert verdict.answer == "undecided"
    assert missing.signature not in verdict.rows


def test_a_black_box_without_synonyms_never_holds_still_for_sure():
    """It shows neither weights nor vectors: with any other numbers, no word was substituted."""
    numbers = [
        name
        for name in rule_of(STABILITY_TITLE).rule.thresholds
        if not name.endswith(("synonym", "synonyms", COLLAPSED))
    ]
    absent = [
        row(name, float("nan"), 0, None, absent="no synonyms are known")
        for name in rule_of(STABILITY_TITLE).rule.required
    ]
    for some in ([], numbers[:1], numbers):
        rows = [collapsed(0), *(row(name, 0.0) for name in some)]
        for several in (rows, [*rows, *absent]):
            assert of(STABILITY_TITLE, *several).answer == ("undecided" if some else "not measured")


# --- guards can fail a verdict, never pass it


@pytest.mark.parametrize("key", [STABILITY_TITLE, SHORTCUT])
def test_the_absence_of_a_collapse_answers_nothing_and_is_not_reported(key):
    assert of(key, collapsed(0)).answer == "not measured"
    name = rule_of(key).rule.required[0]
    alone, beside = of(key, good(rule_of(key))[name]), of(key, good(rule_of(key))[name], collapsed(0))
    assert (alone.answer, alone.why) == (beside.answer, beside.why)


@pytest.mark.parametrize("key", [STABILITY_TITLE, SHORTCUT])
def test_a_collapse_is_a_no_whatever_else_is_good_and_though_it_has_no_interval(key):
    rows = good(rule_of(key)) | {COLLAPSED: collapsed(1, text_note("the weights are even"))}
    verdict = of(key, *rows.values())
    assert verdict.answer == "no"
    assert verdict.why.lower().startswith(rule_of(key).rule.thresholds[COLLAPSED].sentence.format(noun="attention"))
    assert of(key, collapsed(1)).answer == "no"
    assert of(key, replace(collapsed(1), n=2)).answer == "no"


@pytest.mark.parametrize("key", [key for key in KEYS if key not in (STABILITY_TITLE, SHORTCUT)])
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
        assert low <= min(bound.good, bound.bad) < max(bound.good, bound.bad) <= high, name
    assert set(item.rule.required) <= set(item.rule.thresholds) - {COLLAPSED}


def test_the_worst_case_the_shuffled_leak_and_the_collapse_belong_to_their_verdicts():
    assert "jensen-shannon/pgd-attention" in rule_of(STABILITY_TITLE).rule.thresholds
    assert rule_of(SHORTCUT).rule.required == ("position-leak/shuffled",)
    assert {item.name for item in RATED if COLLAPSED in item.rule.thresholds} == {STABILITY_TITLE, SHORTCUT}
    assert len(set(KEYS)) == len({item.title for item in RATED}) == len(RATED)


def test_one_bound_by_hand():
    """Less is better: yes up to .1, no from .3 on.  More is better: yes from .3 on, no up to .1."""
    less, more = Threshold(0.1, 0.3, "{value}"), Threshold(0.3, 0.1, "{value}")
    for low, high, answer_if_lower, answer_if_higher in [
        (0.0, 0.1, "yes", "no"),
        (0.0, 0.2, "undecided", "undecided"),
        (0.2, 0.4, "undecided", "undecided"),
        (0.3, 0.4, "no", "yes"),
    ]:
        number = Row("number", (low + high) / 2, FEWEST, (low, high))
        assert (less.decide(number), more.decide(number)) == (answer_if_lower, answer_if_higher)
