"""The gate: requirements read from words and files, and reports held to them; nothing passes by being absent."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.audited import PLAUSIBILITY_TITLE, STABILITY_TITLE, full_report, row
from steadygaze.core.errors import UserError
from steadygaze.results.policy import (
    Policy,
    Requirement,
    VerdictRequirement,
    as_policy,
    parse_policy,
    parse_requirement,
    to_toml,
)
from steadygaze.results.report import unmet_requirements

FILE = """
[[require]]
measure = "jensen-shannon/3-synonyms"
at_most = 0.05
explainer = "attention"
interval = true
why = "Rule 7 of the house."

[[require]]
measure = "accuracy"
at_least = 0.8
below = 1

[[verdict]]
name = "stability"
answer = ["yes", "undecided"]
"""


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("jensen-shannon/synonyms<=0.02", Requirement("jensen-shannon/synonyms", "<=", 0.02)),
        (" accuracy >= 1e-1 ", Requirement("accuracy", ">=", 0.1)),
        ("comprehensiveness[attention]>=0.1", Requirement("comprehensiveness", ">=", 0.1, "attention")),
        (
            "comprehensiveness [ input-x-gradient ] > -.5",
            Requirement("comprehensiveness", ">", -0.5, "input-x-gradient"),
        ),
        ("collapsed==0", Requirement("collapsed", "==", 0.0)),
        ("label-flip/noise<0.3", Requirement("label-flip/noise", "<", 0.3)),
    ],
)
def test_a_requirement_is_a_measure_a_sign_and_a_number(text, right):
    assert parse_requirement(text) == right


@pytest.mark.parametrize(
    "text", ["", "accuracy", "accuracy>=", ">=0.9", "accuracy=0.9", "accuracy=>0.9", "accuracy>=high", "accuracy>=nan",
             "accuracy>=inf", "a b>=1", "accuracy[]>=1", "accuracy>=0.9 or so", "accuracy!=1", "accuracy[x>=1"],
)  # fmt: skip
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(UserError, match=r"jensen-shannon/3-synonyms<=0\.05"):
        parse_requirement(text)


def test_a_file_is_read_into_requirements_and_wanted_answers():
    assert parse_policy(FILE) == Policy(
        (
            Requirement("jensen-shannon/3-synonyms", "<=", 0.05, "attention", True, "Rule 7 of the house."),
            Requirement("accuracy", ">=", 0.8),
            Requirement("accuracy", "<", 1.0),
        ),
        (VerdictRequirement("stability", ("yes", "undecided")),),
    )


printable = st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S"))
words = st.text(printable | st.sampled_from(" \x7f"), min_size=1, max_size=12)
requirements = st.builds(
    Requirement,
    words,
    st.sampled_from(["<=", ">=", "<", ">", "=="]),
    st.floats(-1e9, 1e9),
    st.none() | words,
    st.booleans(),
    st.just("") | words,
)
wanted = st.builds(VerdictRequirement, words, st.sampled_from([("yes",), ("yes", "not measured")]), st.just("") | words)


@settings(max_examples=50, deadline=None)
@given(st.lists(requirements, max_size=3).map(tuple), st.lists(wanted, min_size=1, max_size=2).map(tuple))
def test_a_policy_comes_back_from_its_file_whatever_its_words_are(required, verdicts):
    policy = Policy(required, verdicts)
    assert parse_policy(to_toml(policy)) == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[require]\n", r"house\.toml is not valid TOML: .*line 1"),
        ("x = " + "9" * 5000, r"house\.toml is not valid TOML"),
        ("", r"house\.toml requires nothing"),
        ("[[requires]]\n", "unknown table 'requires': did you mean 'require'"),
        ("[require]\nmeasure='a'", r"require must be written \[\[require\]\]"),
        (
            "\n[[require]]\nmeasure='a'\natmost=1",
            r"house\.toml, line 2, \[\[require\]\]: unknown key 'atmost'.*'at_most'",
        ),
        (
            "[[require]]\nmeasure='a'\nat_most=1\n[[require]]\nmeasure='a'",
            r"line 4, .*needs a measure and one of at_most",
        ),
        ("[[require]]\nat_most=1", "needs a measure"),
        ("[[require]]\nmeasure='a'\nat_most='1'", "at_most must be a number, found '1'"),
        ("[[require]]\nmeasure='a'\nat_most=nan", "at_most must be a number, found nan"),
        ("[[require]]\nmeasure='a'\nat_most=true", "at_most must be a number, found True"),
        ("[[require]]\nmeasure='a'\nat_most=1" + "0" * 400, "at_most must be a number"),
        ("[[require]]\nmeasure=1\nat_most=1", "measure must be a text, found 1"),
        ("[[require]]\nmeasure='a'\nat_most=1\ninterval='yes'", "interval must be true or false"),
        ("[[verdict]]\nname='q'", r"line 1, \[\[verdict\]\]: it needs a name and an answer"),
        ("[[verdict]]\nname='q'\nanswer=[]", "it needs a name and an answer"),
        ("[[verdict]]\nname='q'\nanswer='maybe'", "unknown answer 'maybe'"),
        ("[[verdict]]\nname='q'\nanswer=[['yes']]", "unknown answer"),
        ("require=[{measure='a'}]", r"house\.toml, number 1, \[\[require\]\]"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line_the_key_and_what_would_be_right(text, message):
    with pytest.raises(UserError, match=message):
        parse_policy(text, "house.toml")


def test_a_policy_is_words_a_file_or_itself(tmp_path: Path):
    (tmp_path / "p.toml").write_text(FILE)
    assert as_policy(str(tmp_path / "p.toml")) == as_policy(tmp_path / "p.toml") == parse_policy(FILE)
    assert as_policy("a<=1") == as_policy(["a<=1"]) == Policy((Requirement("a", "<=", 1.0),))
    assert as_policy(Policy()) == Policy()
    with pytest.raises(UserError, match=r"there is no file .*nowhere\.toml"):
        as_policy(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("op", "limit", "holds"),
    [("<=", 0.5, True), ("<=", 0.4, False), (">=", 0.5, True), (">=", 0.6, False), ("<", 0.5, False), ("<", 0.6, True),
     (">", 0.5, False), (">", 0.4, True), ("==", 0.5, True), ("==", 0.4, False)],
)  # fmt: skip
def test_each_operator_has_its_meaning(op, limit, holds):
    report = full_report(rows=(row("x", 0.5),))
    assert (unmet_requirements(report, Policy((Requirement("x", op, limit),))) == []) == holds


def sentences(*required: str | Requirement, **changes) -> list[str]:
    rules = [
        requirement if isinstance(requirement, Requirement) else parse_requirement(requirement)
        for requirement in required
    ]
    return [failure.sentence for failure in unmet_requirements(full_report(**changes), Policy(tuple(rules)))]


def test_a_failure_names_the_value_the_requirement_and_the_reason():
    (failure,) = unmet_requirements(full_report(), Policy((Requirement("sufficiency", "<=", 0.01, why="Rule 7."),)))
    assert failure.sentence == "sufficiency of attention is 0.04; at most 0.01 was required: Rule 7."
    assert failure.required == "sufficiency<=0.01"
    assert failure.signature.startswith("sufficiency|")
    assert str(failure) == failure.sentence


def test_the_audited_explanation_is_meant_where_none_is_named():
    assert sentences("comprehensiveness>=0.4") == []
    assert sentences("comprehensiveness[random]>=0.4") == [
        "comprehensiveness of random is 0.111; at least 0.4 was required."
    ]


def test_a_number_of_another_explanation_does_not_stand_in():
    rows = (row("comprehensiveness", 0.9, explain="random"),)
    assert sentences("comprehensiveness>=0.4", rows=rows) == [
        "comprehensiveness was not measured of attention, only of random."
    ]
    assert sentences("comprehensiveness[lime]>=0.4", rows=rows) == [
        "comprehensiveness was not measured of lime, only of random."
    ]


def test_every_number_of_that_name_must_hold():
    rows = (row("x", 0.1, radius=0.1), row("x", 0.3, radius=0.2))
    (failure,) = unmet_requirements(full_report(rows=rows), as_policy("x<=0.2"))
    assert "radius:0.2" in failure.signature


def test_the_whole_interval_can_be_demanded():
    """0.0712 [0.0602, 0.0822]: the number is under 0.08, its interval is not."""
    assert sentences("jensen-shannon/3-synonyms<=0.08") == []
    assert sentences(Requirement("jensen-shannon/3-synonyms", "<=", 0.08, interval=True)) == [
        "jensen-shannon/3-synonyms of attention is 0.0712, its 95 % interval 0.0602 to 0.0822; "
        "at most 0.08 was required of the whole interval."
    ]
    assert sentences(Requirement("jensen-shannon/3-synonyms", "<=", 0.09, interval=True)) == []
    assert sentences(Requirement("jensen-shannon/3-synonyms", ">=", 0.07, interval=True)) != []


def test_a_number_without_an_interval_fails_where_the_whole_interval_is_demanded():
    assert sentences(Requirement("collapsed", "==", 0.0, interval=True)) == [
        "collapsed of attention is 0 and has no interval; exactly 0 was required of the whole interval."
    ]


def test_a_measure_that_is_not_applicable_fails_with_the_reason():
    (sentence,) = sentences("jensen-shannon/seeds<=0.5")
    assert sentence == (
        "jensen-shannon/seeds of attention: at most 0.5 was required, and it is not applicable, because only one model "
        "was given: name others trained alike, with other seeds."
    )


def test_a_measure_that_was_not_run_fails_and_the_measured_ones_are_listed():
    (sentence,) = sentences("jensen-shannon/synonyms<=0.02")
    assert sentence.startswith(
        "jensen-shannon/synonyms was required and was not measured; there are jensen-shannon/noise, "
    )
    assert sentences("auprc<=1", rows=()) == ["auprc was required and was not measured."]


def test_a_measure_that_nobody_knows_is_the_users_mistake():
    with pytest.raises(UserError, match="unknown measure 'jensen-shanon/noise': did you mean 'jensen-shannon/noise'"):
        sentences("jensen-shanon/noise<=0.02")


def test_a_value_has_enough_digits_to_differ_from_the_limit():
    assert sentences("x<=0.05", rows=(row("x", 0.05000001),)) == [
        "x of attention is 0.05000001; at most 0.05 was required."
    ]
    assert sentences("x<0.05", rows=(row("x", 0.05),)) == ["x of attention is 0.05; less than 0.05 was required."]


def test_an_answer_that_is_not_wanted_fails_by_question_or_by_its_short_name():
    for name in (STABILITY_TITLE, "stability"):
        (failure,) = unmet_requirements(
            full_report(), Policy(verdicts=(VerdictRequirement(name, ("yes",), "It must."),))
        )
        assert failure.sentence.startswith(
            f"{STABILITY_TITLE}: the answer is 'undecided'; 'yes' was required (With the highlighted words"
        )
        assert failure.sentence.endswith("): It must.")
        assert (
            unmet_requirements(full_report(), Policy(verdicts=(VerdictRequirement(name, ("yes", "undecided")),))) == []
        )


def test_a_verdict_that_was_not_measured_fails_unless_that_is_allowed():
    (failure,) = unmet_requirements(
        full_report(), Policy(verdicts=(VerdictRequirement(PLAUSIBILITY_TITLE, ("yes", "undecided", "no")),))
    )
    assert "'not measured'; 'yes' or 'undecided' or 'no' was required (Nobody marked words" in failure.sentence
    assert (
        unmet_requirements(full_report(), Policy(verdicts=(VerdictRequirement(PLAUSIBILITY_TITLE, ("not measured",)),)))
        == []
    )


def test_a_question_that_nobody_knows_is_the_users_mistake():
    with pytest.raises(UserError, match="unknown verdict 'stabilty': did you mean 'stability'"):
        unmet_requirements(full_report(), Policy(verdicts=(VerdictRequirement("stabilty", ("yes",)),)))
