"""What an answer means: a sentence for every answer to every question of the audit, and none that a collapse belies."""

import pytest

from steadygaze.properties.verdict_rules import VERDICT_RULES
from steadygaze.report.audit_page import MEANS, SILENT, meaning
from steadygaze.results.row import Verdict


def test_every_question_of_the_audit_has_a_sentence_for_every_answer():
    assert {rule.key for rule in VERDICT_RULES} == MEANS.keys()
    assert all(set(message) == {"yes", "undecided", "no"} for message in MEANS.values())
    sentences = [sentence for message in MEANS.values() for sentence in message.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("rule", VERDICT_RULES, ids=lambda rule: rule.key)
def test_a_collapse_is_not_called_a_move(rule):
    """Weights that are the same for every text never shift; the answer is no."""
    limits = {name: (bound.good, bound.bad) for name, bound in rule.thresholds.items()}
    verdict = Verdict(rule.title, "no", "It is.", key=rule.key, thresholds=limits)
    assert meaning(verdict, False, "weight") == MEANS[rule.key]["no"].format(noun="weight")
    assert (meaning(verdict, True, "weight") == SILENT.format(noun="weight")) == ("collapsed" in limits)


def test_a_verdict_that_was_not_measured_and_an_unknown_one_have_no_sentence():
    """The reason why it was not measured is all the content."""
    assert meaning(Verdict("Why?", "not measured", "Nobody asked.", key="plausibility"), True, "weight") == ""
    assert meaning(Verdict("Why?", "yes", "It is.", key="mine"), False, "weight") == ""
