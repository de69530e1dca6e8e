"""The regression has the optimum of scikit-learn's, in every fold."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from steadygaze.core.maths.ridge_classifier import FOLDS, balanced_folds, cross_validated


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("strength", [0.03, 1.0])
def test_probabilities_are_those_of_scikit_learn(classes, strength):
    random = np.random.default_rng(classes)
    kind = np.sort(random.integers(classes, size=120))
    features = random.normal(size=(120, 9))
    features[:, 0] += kind
    fold = balanced_folds(kind)
    ours = cross_validated(features, kind, fold, strength=strength)
    for index in range(FOLDS):
        out = fold == index
        regression = LogisticRegression(
            C=strength * (2 if classes == 2 else 1), class_weight="balanced", max_iter=10_000, tol=1e-10
        )
        scaled = make_pipeline(StandardScaler(), regression)
        theirs = scaled.fit(features[~out], kind[~out]).predict_proba(features[out])
        assert np.allclose(ours[out], theirs, atol=1e-4)


def test_every_fold_has_its_share_of_each_class():
    kind = np.repeat([0, 1, 2], [20, 10, 5])
    fold = balanced_folds(kind)
    for index in range(FOLDS):
        assert np.bincount(kind[fold == index]).tolist() == [4, 2, 1]


def test_features_that_never_vary_leave_the_shares_of_the_classes_balanced():
    kind = np.repeat([0, 1], [30, 10])
    ours = cross_validated(np.zeros((40, 2)), kind, balanced_folds(kind), strength=1.0)
    assert np.allclose(ours, 0.5, atol=1e-6)
