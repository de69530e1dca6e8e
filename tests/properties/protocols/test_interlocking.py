"""Interlocking: models retrained with a misleading first sentence, and the sentence of the report about them."""

import pytest
import torch

import steadygaze as sg
from estimator.test_rationalizers import LABELS, TEXTS, fitted
from estimator.tiny import SMALL, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.core.types import Example
from steadygaze.data.corpora import add_shortcut
from steadygaze.data.corpus import Corpus
from steadygaze.properties import row_names
from steadygaze.properties.audit_case import NO_LABELS, interlocking_not_applicable
from steadygaze.properties.protocols.interlocking import (
    BIASED,
    INTERLOCKING_MEASURES,
    INTERLOCKING_NEEDS_TRAIN,
    SELECTS,
    SKEWED,
    interlocking,
    interlocking_note,
    read,
)
from steadygaze.report.sentences import ELSEWHERE, INTERLOCKING_ANSWERS, TRAINING_NAMES
from steadygaze.results.note import Note, NoteCode
from steadygaze.techniques.rnp import Rnp

EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
WORDS = ["good"] * 12 + ["bad"] * 12
RATIONALES = [[(text.index(word), text.index(word) + len(word))] for text, word in zip(TEXTS, WORDS, strict=True)]
SPLIT = TEXTS, LABELS


@pytest.fixture(scope="module")
def report():
    return sg.audit(fitted("a2r"), TEXTS, LABELS, rationales=RATIONALES, train=SPLIT, skewed_epochs=2, sample=4)


@pytest.mark.slow
def test_both_are_numbers_beside_that_of_the_model_as_it_is(report):
    rows = {
        name: report.find(name, "rationale")
        for name in ("first-sentence", "first-sentence/rationales", *INTERLOCKING_MEASURES)
    }
    assert all(row.n == 24 and 0 <= row.value <= 1 for row in rows.values()), rows
    assert rows[BIASED].settings["agreement"] == 0.8
    assert rows[SKEWED].settings["epochs"] == 2
    assert rows["first-sentence/rationales"].value == 0, "the reason stands in the second of three sentences"
    for name in INTERLOCKING_MEASURES:
        assert "interlock" in rows[name].note
        assert f"of the 24 {BY_RATIONALE}" in rows[name].note
        assert "its accuracy is " in rows[name].note
    assert sum("lock" in str(note) for note in report.notes) == 2


def test_they_are_those_of_models_trained_by_hand(report):
    again = tiny("bigru", technique="a2r", settings={**SMALL, "skewed": 2}).fit(TEXTS, LABELS)
    assert report.find(SKEWED).value == pytest.approx(float(read(again.stored_, EXAMPLES)[0].mean()))
    assert again.history_[0]["stage"] == "skewed"
    lured = add_shortcut(Corpus("x", {"all": EXAMPLES}), 0.8, 0).splits["all"]
    lured_model = tiny("bigru", technique="a2r").fit([e.text for e in lured], LABELS)
    assert report.find(BIASED).value == pytest.approx(float(read(lured_model.stored_, lured)[0].mean()))


def test_one_is_trained_with_a_token_in_front_and_the_other_skewed(monkeypatch):
    seen = []

    def spied(stored, examples):
        seen.append(([(record["stage"], record["epoch"]) for record in stored.description.history], examples[0].text))
        return torch.zeros(len(examples)), torch.zeros(len(examples))

    monkeypatch.setattr("steadygaze.properties.protocols.interlocking.read", spied)
    list(interlocking(fitted("a2r"), SPLIT, EXAMPLES, 2))
    _, (lured, text), (skewed, plain) = seen
    assert lured == [("train", 1)]
    assert text in (f", {TEXTS[0]}", f"; {TEXTS[0]}")
    assert skewed == [("skewed", 1), ("skewed", 2), ("train", 1)]
    assert plain == TEXTS[0]


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_the_validation_texts_of_the_audit_choose_the_epoch_of_both_models(monkeypatch):
    """They have the token in front too, where the training texts have it; without them `fit` holds out a part."""
    model, seen = fitted("a2r"), []

    def spied(config, train, validation, *_):
        seen.append((train.texts, None if validation is None else (validation.texts, validation.labels)))
        return model.stored_

    monkeypatch.setattr("steadygaze.properties.protocols.interlocking.fit.fit", spied)
    held_out = [f"Well , {text}" for text in TEXTS[8:16]]
    sg.audit(model, TEXTS, LABELS, train=SPLIT, validation=(held_out, LABELS[8:16]), sample=2)
    sg.audit(model, TEXTS, LABELS, train=SPLIT, sample=2)
    (biased_train, (biased, labels)), (skewed_train, skewed), *without = seen
    assert all(text[:2] in (", ", "; ") for text in [*biased_train, *biased])
    assert ([text[2:] for text in biased], labels) == skewed == (held_out, list(LABELS[8:16]))
    assert ([text[2:] for text in biased_train], skewed_train) == (TEXTS, TEXTS)
    assert [validation for _, validation in without] == [None, None]


def test_the_users_model_is_left_alone():
    clf = fitted("a2r")
    before = {name: value.clone() for name, value in clf.stored_.model.state_dict().items()}
    assert [finding.measure for finding in interlocking(clf, SPLIT, EXAMPLES, 1)] == list(INTERLOCKING_MEASURES)
    assert all(value.equal(before[name]) for name, value in clf.stored_.model.state_dict().items())
    assert clf.settings == SMALL


def test_a_technique_that_was_given_ready_made_is_skewed_too():
    clf = tiny("bigru", technique=Rnp(exploration=0.1)).fit(TEXTS, LABELS)
    result = list(interlocking(clf, SPLIT, EXAMPLES, 1))
    assert result[1].values is not None
    assert clf.technique.skewed == 0


def test_without_labels_nothing_is_trained_and_too_many_classes_have_no_tokens(monkeypatch):
    clf = fitted("a2r")
    with monkeypatch.context() as patch:
        patch.setattr("steadygaze.properties.protocols.interlocking._retrain", lambda *_: pytest.fail("it was trained"))
        result = list(interlocking(clf, SPLIT, [*EXAMPLES[1:], Example(TEXTS[0])], 1))
    assert [finding.absent for finding in result] == [NO_LABELS] * 2
    many = [f"class {i}" for i in range(11)] + ["class 0"]
    clf = tiny("bigru", technique="a2r").fit(TEXTS, many * 2)
    lured, _ = interlocking(clf, (TEXTS, many * 2), [Example("a b . c d .", "class 1")], 1)
    assert "this corpus has 11 classes and needs a different token for each" in lured.absent.sentence


def test_texts_to_train_on_have_the_labels_of_the_model(monkeypatch):
    monkeypatch.setattr("steadygaze.auditing.audit.prepare_all", lambda *_: pytest.fail("it was too late"))
    for labels, result in ((WORDS, r"\['bad', 'good'\]"), (["pos", "neg", "so-so"] * 8, r"\['neg', 'pos', 'so-so'\]")):
        with pytest.raises(
            UserError, match=rf"training texts have the labels {result}, the model has \['neg', 'pos'\]"
        ):
            sg.audit(fitted("a2r"), TEXTS, LABELS, train=(TEXTS, labels))


def test_training_texts_may_be_generators(monkeypatch):
    """They are read once, and the protocols get lists."""
    classifier, seen = fitted("a2r"), []
    monkeypatch.setattr(
        "steadygaze.auditing.audit.prepare_all", lambda request, _: seen.append(request.train) or stop()
    )

    def stop():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        sg.audit(classifier, TEXTS, LABELS, train=(iter(TEXTS), iter(LABELS)))
    assert seen == [(TEXTS, LABELS)]


@pytest.mark.slow
@pytest.mark.usefixtures("fewer_protocols")
def test_classes_that_were_named_otherwise_are_those_of_the_model():
    report = sg.audit(
        fitted("a2r"),
        TEXTS,
        [1] * 12 + [0] * 12,
        classes=["no", "yes"],
        train=SPLIT,
        skewed_epochs=1,
        sample=2,
    )
    assert all(report.find(name).n == 24 for name in INTERLOCKING_MEASURES)


@pytest.mark.slow
def test_a_model_that_cannot_interlock_is_reported_with_the_reason():
    assert interlocking_not_applicable(fitted("a2r").stored_.model) is None
    assert interlocking_not_applicable(fitted("rnp tokens").stored_.model) == Note(NoteCode.SELECTS_WORDS)
    plain = tiny().fit(TEXTS, LABELS)
    assert interlocking_not_applicable(plain.stored_.model) == Note(NoteCode.NOT_A_RATIONALIZER)
    few = {"sample": 2}
    for model, why in (
        (fitted("a2r"), str(INTERLOCKING_NEEDS_TRAIN)),
        (fitted("rnp tokens"), "words, not sentences"),
        (plain, "not a rationalizer"),
    ):
        result = sg.audit(model, TEXTS, LABELS, **few)
        assert all(why in result.find(name).note for name in INTERLOCKING_MEASURES)
    words = sg.audit(fitted("rnp tokens"), TEXTS, LABELS, train=SPLIT, **few)
    assert all("words, not sentences" in words.find(name).note for name in INTERLOCKING_MEASURES)
    reason = "the model selects words, not sentences: the training texts were not used."
    assert f"Interlocking was not tested, because {reason}" in map(str, words.notes)
    assert words.find("accuracy/uniform").absent == SELECTS
    assert words.find("class-gap/default-tokens").absent == SELECTS


def test_epochs_are_checked():
    with pytest.raises(UserError, match="'skewed_epochs': found 0; it should be greater than or equal to 1"):
        sg.audit(fitted("a2r"), TEXTS, LABELS, skewed_epochs=0)


def ones(share: float, n: int = 40) -> torch.Tensor:
    """So many of n are 1, the others 0."""
    return (torch.arange(n) < round(share * n)).double()


EVERY = torch.ones(40, dtype=torch.bool)


BY_RATIONALE, BY_SELECTION = ELSEWHERE["rationale"], ELSEWHERE["selection"]


def sentence_of(*arguments) -> tuple[str, str]:
    """The answer, and its sentence without the training."""
    remark = interlocking_note(SKEWED, *arguments)
    return remark.fields["answer"], remark.sentence.removeprefix(f"{TRAINING_NAMES['skewed']}, ")


@pytest.mark.parametrize(
    ("taken", "answer", "begins"),
    [
        (
            1.0,
            "no",
            "it interlocks: it selects the first sentence of 100 % (100 % to 100 %) of the 40 texts whose rationale is",
        ),
        (0.95, "no", "it interlocks: "),  # 95 % ± 7 %: above 80 % altogether
        (0.85, "undecided", "interlocking is undecided: "),  # 85 % ± 11 %: above 80 % by its mean alone
        (0.5, "undecided", "interlocking is undecided: "),
        (0.25, "undecided", "interlocking is undecided: "),  # 25 % ± 13 %: below 30 % by its mean alone
        (0.1, "yes", "it does not interlock: "),  # 10 % ± 9 %
        (0.0, "yes", "it does not interlock: it selects the first sentence of 0 % (0 % to 0 %) of"),
    ],
)
def test_the_whole_interval_decides(taken, answer, begins):
    """The normal interval of a share p of 40 is p ± 1.96 √(p (1 − p) / 40)."""
    result, sentence = sentence_of(ones(taken), ones(0.9), 0.5, (EVERY, "rationale"))
    assert result == answer
    assert sentence.startswith(begins)


@pytest.mark.slow
def test_more_texts_turn_a_doubt_into_an_answer():
    """85 % and 80 % of 2,000: ± 1.6 % and 1.8 %."""
    every, right = torch.ones(2000, dtype=torch.bool), ones(0.9, 2000)
    assert sentence_of(ones(0.85, 2000), right, 0.5, (every, "rationale"))[1].startswith("it interlocks: ")
    assert sentence_of(ones(0.8, 2000), right, 0.5, (every, "rationale"))[1].startswith("interlocking is undecided")
    assert sentence_of(ones(0.3, 2000), right, 0.5, (every, "rationale"))[1].startswith("interlocking is undecided")
    assert sentence_of(ones(0.25, 2000), right, 0.5, (every, "rationale"))[1].startswith("it does not interlock: ")


@pytest.mark.parametrize(
    ("right", "guessed", "learned"),
    [
        (0.5, 0.5, False),
        (0.6, 0.5, False),  # 60 % ± 15 %
        (0.8, 0.5, True),  # 80 % ± 12 %
        (0.8, 0.75, False),
        (0.3, 0.5, False),
    ],
)
def test_a_model_that_may_have_learned_nothing_is_not_reported_as_free_of_interlocking(right, guessed, learned):
    """Interlocking is reported: a model that selects uninformative first sentences learns nothing."""
    for taken, answer, link in (
        (0.0, "it does not interlock" if learned else "interlocking is undecided", "but"),
        (0.5, "interlocking is undecided", "and"),
        (1.0, "it interlocks", "and"),
    ):
        result, sentence = sentence_of(ones(taken), ones(right), guessed, (EVERY, "rationale"))
        assert INTERLOCKING_ANSWERS[result] == answer
        doubt = "; " if learned else f", {link} it may have learned nothing: "
        assert sentence.startswith(f"{answer}: it selects the first sentence of {percent(taken)} (")
        assert f"{BY_RATIONALE}{doubt}its accuracy is {percent(right)} (" in sentence
        assert sentence.endswith(f", the share of the most frequent label {percent(guessed)}")


def test_texts_in_which_the_first_sentence_is_right_do_not_count():
    """Of 40 it selects the first sentence of 30, and should of these: of the other 10 it takes none."""
    _, sentence = sentence_of(ones(0.75), ones(0.9), 0.5, (ones(0.75) == 0, "selection"))
    assert sentence.startswith(
        f"it does not interlock: it selects the first sentence of 0 % (0 % to 0 %) of the 10 {BY_SELECTION}; "
    )


def test_a_few_texts_decide_nothing():
    """Of 40 the reason is elsewhere in 9, of which 2 have no second sentence."""
    first = ones(1.0)
    first[38:] = torch.nan
    result, sentence = sentence_of(first, ones(0.9), 0.5, (torch.arange(40) >= 31, "rationale"))
    assert result == "undecided"
    assert sentence.startswith(f"interlocking is undecided: 7 of 8 required {BY_RATIONALE}; its accuracy is 90 %")


def test_known_rationales_determine_which_texts_count(monkeypatch):
    """Where none is known, what the model itself selects does."""
    again = fitted("a2r")
    monkeypatch.setattr("steadygaze.properties.protocols.interlocking._retrain", lambda *_: again.stored_)
    reason = torch.tensor([0.0] * 10 + [1.0] * 12 + [torch.nan] * 2)
    assert all(
        f"of the 10 {BY_RATIONALE}" in str(*finding.notes)
        for finding in interlocking(again, SPLIT, EXAMPLES, 1, reason)
    )
    usual = int((read(again.stored_, EXAMPLES)[0] == 0).sum())
    assert 8 <= usual < 24
    _, skewed = interlocking(again, SPLIT, EXAMPLES, 1)
    assert f"it selects the first sentence of 0 % (0 % to 0 %) of the {usual} {BY_SELECTION}" in str(*skewed.notes)
    share = sum(again.predict(TEXTS) == LABELS) / 24
    assert f"its accuracy is {percent(share)} (" in str(*skewed.notes)
    assert str(*skewed.notes).endswith("the share of the most frequent label 50 %")
    assert set(INTERLOCKING_MEASURES) <= set(row_names())
