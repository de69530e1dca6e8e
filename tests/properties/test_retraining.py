"""Data of a retraining: the texts that training read, refused before the audit if they are others."""

from dataclasses import replace

import pytest

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted, tiny
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing import audit as audit_module
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.held_out_test import hold_out_test
from steadygaze.estimator.resumable_training import columns
from steadygaze.properties.protocols.wiegreffe_pinter import TRAINED
from steadygaze.properties.retraining import check_vocabulary, training_texts
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.progress import TrainingDiverged

EXAMPLES = [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
VALIDATION = [Example(f"{text} again", label) for text, label in zip(TEXTS[::4], LABELS[::4], strict=True)]
MANY = [Example(f"{text} {i}", label) for i in range(5) for text, label in zip(TEXTS, LABELS, strict=True)]


def test_a_corpus_with_a_validation_split_is_read_as_training_reads_it():
    corpus = Corpus("toy", {"train": MANY, "validation": VALIDATION, "test": EXAMPLES})
    clf = tiny().fit(*columns(MANY), validation=columns(VALIDATION))
    train, validation = training_texts(clf.stored_, corpus)
    assert (train, validation) == (columns(MANY), columns(VALIDATION))
    check_vocabulary(clf, train, validation)
    with pytest.raises(UserError, match=r"another vocabulary.*those that chose its epoch as validation="):
        check_vocabulary(clf, train, None)  # a tenth would be held out


def test_texts_that_training_held_out_as_test_part_are_left_out():
    whole = Corpus("toy", {"train": MANY})
    parts = hold_out_test(whole, 0.2)
    clf = tiny().fit(*columns(parts.training))
    train, _ = training_texts(clf.stored_, whole)
    assert train == columns(parts.training)
    check_vocabulary(clf, train, None)
    other = tiny(seed=1).fit(*columns(MANY))
    assert training_texts(other.stored_, whole)[0] == columns(MANY)


@pytest.mark.parametrize(
    ("train", "reason"),
    [
        ((TEXTS[:8] + TEXTS[12:20], LABELS[:8] + LABELS[12:20]), r"another vocabulary.*train= \(--train\)"),
        ((TEXTS, ["other"] * 12 + ["neg"] * 12), "training texts have the labels"),
    ],
)
def test_other_training_texts_are_refused_before_the_audit(monkeypatch, train, reason):
    monkeypatch.setattr(audit_module, "prepare_all", lambda *_: pytest.fail("the audit began"))
    with pytest.raises(UserError, match=reason):
        sg.audit(fitted(), TEXTS, LABELS, train=train)


def test_a_model_of_an_unknown_technique_is_refused_before_the_audit(monkeypatch):
    monkeypatch.setattr(audit_module, "prepare_all", lambda *_: pytest.fail("the audit began"))
    clf = tiny().fit(TEXTS, LABELS).set_params(technique="mine")
    assert "mine" not in TECHNIQUES
    with pytest.raises(UserError, match=r"technique 'mine'.*first import the module.*--import MODULE"):
        sg.audit(clf, TEXTS, LABELS, train=(TEXTS, LABELS))


@pytest.mark.slow
def test_a_retraining_that_diverges_leaves_the_other_numbers(monkeypatch):
    def diverge(*_, **__):
        raise TrainingDiverged("training diverged: the loss is NaN.")
        yield

    monkeypatch.setattr(audit_module, "attention_necessity", diverge)
    request = AuditRequest(as_adapter(fitted()), EXAMPLES[::8], train=(TEXTS, LABELS))
    report = run_audit(replace(request, config=replace(request.config, sample=2))).report()
    assert report.find("accuracy").n == 3
    assert report.find("class-gap/default-tokens").n == 21
    for name in TRAINED:
        assert "the retraining failed: training diverged: the loss is NaN" in report.find(name).note
