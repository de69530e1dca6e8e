"""Would it lock: models trained again where the first sentence is a trap, and the sentence that is said of them."""

import pytest
import torch

import steadygaze as sg
from estimator.test_rationalisers import LABELS, TEXTS, fitted
from estimator.tiny import SMALL, tiny
from steadygaze.audit.case import Plan
from steadygaze.audit.finding import Finding
from steadygaze.audit.names import NAMES
from steadygaze.audit.protocol.absent import NO_LABELS
from steadygaze.audit.protocol.interlocking import (
    BIASED,
    LOCKS,
    SELECTS,
    SKEWED,
    UNKNOWN,
    UNLOCKED,
    chosen_first,
    interlocking,
    told,
    unlockable,
)
from steadygaze.corpus.bias import biased
from steadygaze.corpus.corpus import Corpus
from steadygaze.errors import UserError
from steadygaze.objective.rnp import Rnp
from steadygaze.types import Example

EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
WORDS = ["good"] * 12 + ["bad"] * 12
EVIDENCE = [[(text.index(word), text.index(word) + len(word))] for text, word in zip(TEXTS, WORDS, strict=True)]
SPLIT = TEXTS, LABELS
TAKES = "it takes the first sentence"


@pytest.fixture(scope="module")
def report():
    return sg.audit(fitted("a2r"), TEXTS, LABELS, evidence=EVIDENCE, train=SPLIT, plan=Plan(skewed=2, sample=4))


def test_both_are_numbers_beside_that_of_the_model_as_it_is(report):
    rows = {name: report.find(name, "rationale") for name in ("first-sentence", "first-sentence/evidence", *LOCKS)}
    assert all(row.n == 24 and 0 <= row.value <= 1 for row in rows.values()), rows
    assert rows[BIASED].settings["agreement"] == 0.8
    assert rows[SKEWED].settings["epochs"] == 2
    assert rows["first-sentence/evidence"].value == 0, "the reason stands in the second of three sentences"
    for name in LOCKS:
        assert "lock" in rows[name].note
        assert "the known reason is in it in 0%" in rows[name].note
    assert sum("lock" in note for note in report.notes) == 2


def test_they_are_those_of_models_trained_by_hand(report):
    again = tiny("bigru", technique="a2r", settings={**SMALL, "skewed": 2}).fit(TEXTS, LABELS)
    assert report.find(SKEWED).value == pytest.approx(float(chosen_first(again, EXAMPLES).mean()))
    assert again.history_[0]["stage"] == "skewed"
    lured = biased(Corpus("x", {"all": EXAMPLES}), 0.8, 0).splits["all"]
    lured_model = tiny("bigru", technique="a2r").fit([e.text for e in lured], LABELS)
    assert report.find(BIASED).value == pytest.approx(float(chosen_first(lured_model, lured).mean()))


def test_one_is_trained_with_a_token_in_front_and_the_other_skewed(monkeypatch):
    seen = []

    def spied(clf, examples):
        seen.append(([(one["stage"], one["epoch"]) for one in clf.history_], examples[0].text))
        return torch.zeros(len(examples))

    monkeypatch.setattr("steadygaze.audit.protocol.interlocking.chosen_first", spied)
    list(interlocking(fitted("a2r"), SPLIT, EXAMPLES, 2))
    (lured, text), (skewed, plain) = seen
    assert lured == [("train", 1)]
    assert text in (f", {TEXTS[0]}", f"; {TEXTS[0]}")
    assert skewed == [("skewed", 1), ("skewed", 2), ("train", 1)]
    assert plain == TEXTS[0]


def test_the_users_model_is_left_alone():
    clf = fitted("a2r")
    before = {name: value.clone() for name, value in clf.stored_.model.state_dict().items()}
    assert [one.measure for one in interlocking(clf, SPLIT, EXAMPLES, 1)] == list(LOCKS)
    assert all(value.equal(before[name]) for name, value in clf.stored_.model.state_dict().items())
    assert clf.settings == SMALL


def test_a_technique_that_was_given_ready_made_is_skewed_too():
    clf = tiny("bigru", technique=Rnp(exploration=0.1)).fit(TEXTS, LABELS)
    found = list(interlocking(clf, SPLIT, EXAMPLES, 1))
    assert found[1].values is not None
    assert clf.technique.skewed == 0


def test_without_labels_no_token_can_agree_and_too_many_classes_have_none():
    unlabelled = [Example(text) for text in TEXTS]
    lured, skewed = interlocking(fitted("a2r"), SPLIT, unlabelled, 1)
    assert lured.absent == NO_LABELS
    assert skewed.values is not None
    many = [f"class {i}" for i in range(11)] + ["class 0"]
    clf = tiny("bigru", technique="a2r").fit(TEXTS, many * 2)
    lured, _ = interlocking(clf, (TEXTS, many * 2), [Example("a b . c d .", "class 1")], 1)
    assert "this corpus has 11 classes, each of which needs a token of its own" in lured.absent


def test_what_cannot_lock_is_said():
    assert unlockable(fitted("a2r").stored_.model) == ""
    assert unlockable(fitted("rnp tokens").stored_.model) == "the model selects words, not sentences"
    plain = tiny().fit(TEXTS, LABELS)
    assert "does not select" in unlockable(plain.stored_.model)
    few = {"plan": Plan(sample=2)}
    for model, why in (
        (fitted("a2r"), UNLOCKED),
        (fitted("rnp tokens"), "words, not sentences"),
        (plain, "not select"),
    ):
        found = sg.audit(model, TEXTS, LABELS, **few)
        assert all(why in found.find(name).note for name in LOCKS)
    words = sg.audit(fitted("rnp tokens"), TEXTS, LABELS, train=SPLIT, **few)
    assert all("words, not sentences" in words.find(name).note for name in LOCKS)
    assert SELECTS in words.find("accuracy/uniform").note
    assert SELECTS in words.find("class-gap/default-tokens").note


def test_epochs_are_checked():
    with pytest.raises(UserError, match="skewed must be at least 1, found 0"):
        Plan(skewed=0)


def findings(locked: float, usual: float, known: float | None) -> list[Finding]:
    found = [Finding("first-sentence", torch.tensor([usual])), Finding(SKEWED, torch.tensor([locked, torch.nan]))]
    return found if known is None else [*found, Finding("first-sentence/evidence", torch.tensor([known]))]


@pytest.mark.parametrize(
    ("locked", "usual", "known", "begins", "ends"),
    [
        (0.95, 0.05, 0.1, f"it would lock: trained skewed, {TAKES} of 95% of the texts, as it is of 5%",
         "the known reason is in it in 10%"),
        (0.95, 0.05, None, "it would lock:", UNKNOWN),
        (0.2, 0.05, 0.1, "it would not lock:", "in 10%"),
        (0.79, 0.05, 0.1, "it would not lock:", "in 10%"),
        (0.95, 0.05, 0.69, "it would not lock:", "in 69%"),
        (0.95, 0.05, 0.9, "it cannot be told whether it would lock:", "in 90%"),
        (0.95, 0.9, None, "it cannot be told whether it would lock:", UNKNOWN),
    ],
)  # fmt: skip
def test_what_is_said_depends_on_where_the_reason_stands(locked, usual, known, begins, ends):
    _, said, *_ = told(findings(locked, usual, known))
    assert said.note.startswith(begins)
    assert said.note.endswith(ends)


def test_nothing_is_said_of_no_number():
    found = told([Finding(SKEWED, absent="no reason"), Finding(BIASED, torch.tensor([torch.nan]))])
    assert [one.note for one in found] == ["", ""]
    assert set(LOCKS) <= set(NAMES)
