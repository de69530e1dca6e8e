"""What an answer means: a sentence for every answer to every question of the audit, and none that a collapse belies."""

from dataclasses import replace

import pytest

from steadygaze.properties import PROPERTIES, conditions, property_facts
from steadygaze.properties.property import Property
from steadygaze.properties.verdict_rules import verdicts
from steadygaze.report.audit_page import SILENT, meaning
from steadygaze.results.formatting import CONDITION_NAMES
from steadygaze.results.note import text_note
from steadygaze.results.report import Report
from steadygaze.results.row import Row, Verdict

RATED = [item for item in PROPERTIES.values() if item.rule is not None]
REPORT = Report("An audit", (), properties=property_facts())


def test_every_question_of_the_audit_has_a_sentence_for_every_answer():
    assert all({"yes", "undecided", "no"} <= item.meanings.keys() for item in RATED)
    sentences = [sentence for item in RATED for sentence in item.meanings.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("item", RATED, ids=lambda item: item.name)
def test_a_collapse_is_not_called_a_move(item):
    """Weights that are the same for every text never shift; the answer is no."""
    limits = item.rule.limits
    verdict = Verdict(item.title, "no", (text_note("it is"),), key=item.name, thresholds=limits)
    assert meaning(REPORT, verdict, False, "weight") == item.meanings["no"].format(noun="weight")
    assert (meaning(REPORT, verdict, True, "weight") == SILENT.format(noun="weight")) == ("collapsed" in limits)


def test_a_verdict_that_was_not_measured_and_an_unknown_one_have_no_sentence():
    """The reason why it was not measured is all the content."""
    assert (
        meaning(
            REPORT, Verdict("Why?", "not measured", (text_note("nobody asked"),), key="plausibility"), True, "weight"
        )
        == ""
    )
    assert meaning(REPORT, Verdict("Why?", "yes", (text_note("it is"),), key="mine"), False, "weight") == ""


@pytest.mark.parametrize("descriptions", [conditions(), {}, dict.fromkeys(conditions(), "LIME: in other words.")])
def test_the_names_of_conditions_do_not_depend_on_their_descriptions(descriptions):
    robustness = PROPERTIES["robustness"]
    verdict = Verdict(
        "Robustness", "undecided", (text_note("it is"),), key="robustness", thresholds=robustness.rule.limits
    )
    rows = [Row(f"weight-correlation/{name}", 0.68, 9) for name in ("fgm-label", "pgd-attention", "noise")]
    sentence = meaning(replace(REPORT, probes=descriptions), verdict, False, "attention", rows)
    assert sentence.endswith("to other words (FGM, PGD, noise).")


CONDITIONAL = Property("mine", "Mine", meanings={"undecided": "It may shift{conditions}."})


def mine(*rows: Row) -> str:
    """The meaning of an undecided answer about a property of a user; from 0.7 up a score is good."""
    limits = {"weight-correlation/noise": (0.7, 0.65), "weight-correlation/fgm-label": (0.7, 0.65)}
    verdict = Verdict("Mine", "undecided", (text_note("it is"),), key="mine", thresholds=limits)
    return meaning(Report("An audit", (), properties=(CONDITIONAL.fact,)), verdict, False, "weight", rows)


def test_the_conditions_of_an_undecided_answer_are_those_whose_score_is_not_good():
    good, doubtful = (Row("weight-correlation/noise", value, 400, (value, value)) for value in (0.9, 0.68))
    assert mine(good) == "It may shift."
    assert mine(doubtful) == "It may shift (noise)."
    assert mine(good, replace(doubtful, measure="weight-correlation/fgm-label")) == "It may shift (FGM)."


@pytest.mark.parametrize("item", RATED, ids=lambda item: item.name)
def test_good_scores_of_too_few_texts_are_not_called_doubtful(item):
    """Every score is good, of 49 texts: none is missing, and none is named as doubtful."""
    rows = [
        Row(name, bound.good, 49, (bound.good, bound.good), {"explainer": "attention"})
        for name, bound in item.rule.thresholds.items()
    ]
    (verdict,) = (verdict for verdict in verdicts(rows, "attention") if verdict.key == item.name)
    assert verdict.answer == "undecided"
    expected = item.meanings["undecided"].format(noun="attention", conditions="")
    assert meaning(REPORT, verdict, False, "attention", rows) == expected


@pytest.mark.parametrize("key", ["stability", "robustness", "seed-consistency", "plausibility"])
def test_good_scores_of_an_explanation_that_may_be_unfaithful_are_not_called_doubtful(key):
    rule = PROPERTIES[key].rule
    rows = [Row(name, bound.good, 90, (bound.good, bound.good)) for name, bound in rule.thresholds.items()]
    rows.append(Row("kendall/randomized", 0.4, 90, (0.4, 0.4)))
    (verdict,) = (verdict for verdict in verdicts(rows, "attention") if verdict.key == key)
    assert verdict.answer == "undecided"
    expected = "The scores are good, but the answer about faithfulness is undecided."
    assert meaning(REPORT, verdict, False, "attention", rows) == expected


@pytest.mark.parametrize("key", ["stability", "robustness", "seed-consistency", "plausibility"])
def test_an_answer_about_an_unfaithful_explanation_says_why_it_means_nothing(key):
    verdict = Verdict("T", "not meaningful", (text_note("it is"),), key=key)
    assert meaning(REPORT, verdict, False, "attention").startswith("The explanation is not faithful: ")


def test_only_conditions_have_names():
    assert CONDITION_NAMES.keys() <= conditions().keys()
