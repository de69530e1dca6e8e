"""Which of several explainers to use: the ranking by hand, and what is read back from a file."""

import json

import pytest

from report.audited import several_explainers
from steadygaze.core.errors import UserError
from steadygaze.results.note import text_note
from steadygaze.results.recommendation import ORDER, Recommendation, Tally, recommend
from steadygaze.results.report import Report
from steadygaze.results.row import Verdict

SHORT = {"f": "faithfulness", "l": "shortcut-leakage", "s": "stability", "c": "seed-consistency", "p": "plausibility"}
SIGNS = {"+": "yes", "-": "no", "?": "undecided", "0": "not measured"}


def verdicts(answers: str) -> tuple[Verdict, ...]:
    """`f+ s-`: yes for faithfulness, no for stability; in the order of the report, which is not that of the ranking."""
    parts = {SHORT.get(part[:-1], part[:-1]): SIGNS.get(part[-1], part[-1]) for part in answers.split()}
    return tuple(Verdict(name.title(), parts[name], (text_note("it is"),), key=name) for name in sorted(parts))


def recommended(**explainers: str) -> Recommendation:
    result = recommend({name: verdicts(answers) for name, answers in explainers.items()})
    assert result is not None
    return result


def test_the_order_starts_with_faithfulness_leakage_and_stability():
    assert ORDER[:3] == ("faithfulness", "shortcut-leakage", "stability")
    assert set(ORDER) == set(SHORT.values())


@pytest.mark.parametrize(
    ("first", "second", "best", "choice", "decisive"),
    [
        ("f- s+ l+ p+ c+", "f? s- l- p- c-", "second", "only-acceptable", ["faithfulness"]),
        ("f- s+", "f- s-", None, "none-acceptable", ["faithfulness"]),
        ("f+ l+ s-", "f0 l? s0", "second", "fewer-no", ["stability"]),
        ("f+ l- s? p-", "f+ l- s- p-", "first", "fewer-no", ["stability"]),
        ("f+ l? s?", "f+ l? s+ p+", "second", "more-yes", ["stability", "plausibility"]),
        ("f? l? s+ p+", "f+ l? s? p?", "first", "more-yes", ["stability", "plausibility"]),
        ("f? l+ s?", "f+ l? s?", "second", "order", ["faithfulness"]),
        ("f+ l? s+", "f+ l+ s?", "second", "order", ["shortcut-leakage"]),
        ("f+ l- s+ p?", "f+ l+ s- p?", "second", "order", ["shortcut-leakage"]),
        ("f+ s? p+", "f+ s? p+", "first", "first-named", []),
        ("f? s0", "f0 s?", "first", "first-named", []),
        ("f+ mine-", "f? mine?", "second", "fewer-no", ["mine"]),
        ("f? mine? yours+", "f? mine+ yours?", "second", "order", ["mine"]),
        ("f+", "f+ mine+", "second", "more-yes", ["mine"]),
    ],
)
def test_two_explainers_are_ranked_by_hand(first, second, best, choice, decisive):
    result = recommended(first=first, second=second)
    assert (result.explainer, result.choice, list(result.decisive)) == (best, choice, decisive)


@pytest.mark.parametrize("unknown", ["undecided", "not measured", "not meaningful", "an answer of another version"])
def test_an_answer_that_is_neither_yes_nor_no_counts_as_undecided(unknown):
    """Of stability, and of faithfulness, which excludes an explainer only by a no."""
    for key in ("stability", "faithfulness"):
        (other,) = (Verdict("T", unknown, (text_note("it is"),), key=key),)
        (undecided,) = (Verdict("T", "undecided", (text_note("it is"),), key=key),)
        result = recommend({"a": (undecided,), "b": (other,)})
        assert result == Recommendation("a", "first-named", (), (Tally("a"), Tally("b")))
        assert recommend({"a": (other,), "b": (undecided,)}).explainer == "a"


def test_all_candidates_are_ranked_those_that_are_not_acceptable_last():
    result = recommended(a="f- s+ p+", b="f? s- p?", c="f+ s? p?", d="f? s? p?", e="f+ s? p?")
    assert [tally.explainer for tally in result.ranking] == ["c", "e", "d", "b", "a"]
    assert result.ranking[-1] == Tally("a", ("stability", "plausibility"), ("faithfulness",))
    assert [tally.is_acceptable for tally in result.ranking] == [True] * 4 + [False]


def test_one_explainer_is_no_choice():
    assert recommend({}) is None
    assert recommend({"attention": verdicts("f+")}) is None


def test_the_recommendation_and_all_verdicts_come_back_from_a_file(tmp_path):
    report = several_explainers()
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert again == report
    assert list(again.verdicts_by) == ["attention", "gradient", "integrated-gradients"]
    assert again.verdicts_by["attention"] == again.verdicts
    values = report.to_dict()
    assert values["recommendation"]["explainer"] == "integrated-gradients"
    assert values["recommendation"]["message"] == report.recommendation_text
    assert [verdict["answer"] for verdict in values["other_verdicts"]["gradient"]][:2] == ["no", "no"]


def test_a_report_about_one_explainer_has_no_others():
    report = Report("t", (), verdicts("f+"), facts={"explanation": "attention"})
    assert (report.verdicts_by, report.answers_by) == ({"attention": report.verdicts}, {})
    assert (report.recommendation, report.recommendation_text) == (None, "")
    assert Report("t", (), verdicts("f+")).verdicts_by == {}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("choice", "the-best", "recommendation.choice: found 'the-best'"),
        ("ranking", [], "recommendation: it has not the fields of its choice"),
        ("explainer", 5, "recommendation.explainer: found 5"),
        ("strange", 1, "recommendation is not as steadygaze writes it"),
    ],
)
def test_a_recommendation_that_we_did_not_write_is_refused(path, value, message):
    values = json.loads(several_explainers().to_json())
    values["recommendation"][path] = value
    with pytest.raises(UserError, match=message):
        Report.from_dict(values)


def test_a_verdict_of_another_explainer_that_we_did_not_write_is_refused():
    values = json.loads(several_explainers().to_json())
    values["other_verdicts"]["gradient"][0]["reasons"] = [{"code": "score", "fields": {}}]
    with pytest.raises(UserError, match="other_verdicts: a note or an advice has not the fields of its code"):
        Report.from_dict(values)
