"""What an answer means: a sentence for every answer to every question of the audit, and none that a collapse belies."""

import pytest

from steadygaze.audit.verdict_rules import VERDICT_RULES
from steadygaze.report.audit_page import MEANS, SILENT, meaning
from steadygaze.results.row import Verdict


def test_every_question_of_the_audit_has_a_sentence_for_every_answer():
    assert {rule.key for rule in VERDICT_RULES} == MEANS.keys()
    assert all(set(said) == {"yes", "undecided", "no"} for said in MEANS.values())
    sentences = [sentence for said in MEANS.values() for sentence in said.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("rule", VERDICT_RULES, ids=lambda rule: rule.key)
def test_a_collapse_is_not_called_a_move(rule):
    """Weights that say the same of every text never move; the answer is no all the same."""
    limits = {name: (bound.good, bound.bad) for name, bound in rule.thresholds.items()}
    verdict = Verdict(rule.title, "no", "It is.", key=rule.key, thresholds=limits)
    assert meaning(verdict, False, "weight") == MEANS[rule.key]["no"].format(noun="weight")
    assert (meaning(verdict, True, "weight") == SILENT.format(noun="weight")) == ("collapsed" in limits)


def test_what_was_not_asked_and_a_question_of_others_have_no_sentence():
    """Why it was not asked is all there is to say."""
    assert meaning(Verdict("Why?", "not measured", "Nobody asked.", key="plausibility"), True, "weight") == ""
    assert meaning(Verdict("Why?", "yes", "It is.", key="mine"), False, "weight") == ""
