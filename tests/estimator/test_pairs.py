"""Pairs of texts: every way to read one must read the same."""

import numpy as np

import steadygaze as sg
from estimator.tiny import LABELS, PAIRS, fitted_pair


def test_predict_explain_and_audit_read_the_same_pair():
    clf = fitted_pair()
    predicted = clf.predict_proba(PAIRS)
    explained = [list(explanation.probabilities.values()) for explanation in clf.explain(PAIRS)]
    np.testing.assert_allclose(explained, predicted, rtol=0, atol=1e-6)
    right = float(np.mean(clf.predict(PAIRS) == np.array(LABELS)))
    assert sg.audit(clf, PAIRS, LABELS).find("accuracy").value == right
