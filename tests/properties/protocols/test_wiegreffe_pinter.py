"""Two models more: one that may not attend, one that attends elsewhere; trained on texts of a dozen words."""

import numpy as np
import pytest
import torch

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny
from steadygaze.auditing.audit import audit
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import jensen_shannon
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.properties.audit_case import NO_LABELS, Finding
from steadygaze.properties.protocols.wiegreffe_pinter import attention_necessity, same_labels

SPLIT = TEXTS, LABELS
HASTE = {**SMALL, "learning_rate": 0.03}


def model(**changes: object) -> TextClassifier:
    return tiny(**{"epochs": 4, "batch_size": 4, "settings": HASTE, **changes})


def findings_of(clf: TextClassifier, train=SPLIT, test=SPLIT, **more: float) -> dict[str, Finding]:
    return {finding.measure: finding for finding in attention_necessity(clf, train, train, test, **more)}


@pytest.fixture(scope="module")
def clf() -> TextClassifier:
    return model().fit(*SPLIT, validation=SPLIT)


@pytest.mark.slow
def test_the_numbers_are_those_of_two_models_trained_by_hand(clf):
    """With λ = ½, so that the adversary differs from a copy; one text of a single word has no other attention."""
    test_split = [*TEXTS[:3], TEXTS[-1], "good"], [*LABELS[:3], "pos", "pos"]  # the fourth label is wrong
    codes = np.searchsorted(clf.classes_, test_split[1])
    findings = findings_of(clf, test=(test_split[0], codes), difference=0.5)
    assert list(findings) == [
        "accuracy/uniform",
        "accuracy/above-uniform",
        "jensen-shannon/trained-adversary",
        "prediction-change/trained-adversary",
    ]
    even = model(settings={**HASTE, "attention": "uniform"}).fit(*SPLIT, validation=SPLIT)
    right = (even.predict(test_split[0]) == np.array(test_split[1])).astype(float)
    assert findings["accuracy/uniform"].values.tolist() == right.tolist()
    ours = (clf.predict(test_split[0]) == np.array(test_split[1])).astype(float)
    assert findings["accuracy/above-uniform"].values.tolist() == (ours - right).tolist()
    other = model(technique="adversary", settings={**HASTE, "difference": 0.5})
    other.fit(*SPLIT, validation=SPLIT, reference=clf)
    change = np.abs(clf.predict_proba(test_split[0]) - other.predict_proba(test_split[0])).sum(-1) / 2
    assert findings["prediction-change/trained-adversary"].values.tolist() == pytest.approx(change.tolist(), abs=1e-6)
    outputs, uniform_outputs = (
        inference.split_outputs(it.stored_.model, clf.stored_.data(test_split[0], None)) for it in (clf, other)
    )
    distance = jensen_shannon(outputs.weights.double(), uniform_outputs.weights.double(), outputs.mask)
    values = findings["jensen-shannon/trained-adversary"].values
    torch.testing.assert_close(values[:4], distance[:4], rtol=0, atol=1e-6)
    assert values.isnan().tolist() == [False] * 4 + [True]
    assert values[:4].min() > 0.02
    assert findings["jensen-shannon/trained-adversary"].settings == {"difference": 0.5}


def test_a_technique_leaves_its_own_settings_behind_and_the_model_keeps_its_own(clf):
    settings = {**HASTE, "teachers": 2, "min_df": 1}
    made = same_labels(model(technique="consensus", settings=settings), "adversary", difference=0.1)
    assert made.settings == {**HASTE, "min_df": 1, "difference": 0.1}
    assert made.get_params()["batch_size"] == 4
    before = {name: value.clone() for name, value in clf.stored_.model.state_dict().items()}
    findings_of(clf)
    assert all(value.equal(before[name]) for name, value in clf.stored_.model.state_dict().items())


def test_without_labels_the_missing_accuracy_is_reported(clf):
    findings = findings_of(clf, test=(TEXTS[:2], None))
    assert {name for name, finding in findings.items() if finding.absent} == {
        "accuracy/uniform",
        "accuracy/above-uniform",
    }
    assert findings["accuracy/uniform"].absent == NO_LABELS


def test_other_training_texts_than_the_models_own_are_refused(clf):
    with pytest.raises(UserError, match="another vocabulary"):
        findings_of(clf, train=(TEXTS[:8] + TEXTS[12:20], LABELS[:8] + LABELS[12:20]))


def test_pairs_too():
    clf = model(epochs=1).fit(PAIRS, LABELS, validation=(PAIRS, LABELS))
    findings = findings_of(clf, train=(PAIRS, LABELS), test=(PAIRS[:5], LABELS[:5]))
    assert [len(finding.values) for finding in findings.values()] == [5] * 4


@pytest.mark.slow
def test_an_audit_runs_it_with_any_label_names():
    """Names, or the places of the classes: the same texts are right."""
    clf = model().fit(*SPLIT)
    by_name = audit(clf, TEXTS, LABELS, train=SPLIT)
    by_place = audit(clf, TEXTS, [["neg", "pos"].index(label) for label in LABELS], train=SPLIT)
    for measure in ("accuracy", "accuracy/uniform", "accuracy/above-uniform"):
        assert by_name.find(measure).value == by_place.find(measure).value
    assert by_name.find("accuracy").value > 0.5
    assert [row.measure for row in by_name.rows].count("accuracy/uniform") == 1
    assert audit(clf, TEXTS, LABELS).find("accuracy/uniform").n == 0
    with pytest.raises(UserError, match="only a TextClassifier can be retrained"):
        audit(clf.predict_proba, TEXTS, LABELS, train=SPLIT, classes=["neg", "pos"])
