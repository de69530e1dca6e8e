"""What an answer means: a sentence for every answer to every question of the audit, and none that a collapse belies."""

from dataclasses import replace

import pytest

from steadygaze.properties import PROPERTIES, conditions, property_facts
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
    stability = PROPERTIES["stability"]
    verdict = Verdict(
        "Stability", "undecided", (text_note("it is"),), key="stability", thresholds=stability.rule.limits
    )
    rows = [Row(f"jensen-shannon/{name}", 0.03, 9) for name in ("fgm-label", "pgd-attention", "3-synonyms")]
    sentence = meaning(replace(REPORT, probes=descriptions), verdict, False, "attention", rows)
    assert sentence.endswith("to other words (FGM, PGD, 3 synonyms).")


def test_only_conditions_have_names():
    assert CONDITION_NAMES.keys() <= conditions().keys()
