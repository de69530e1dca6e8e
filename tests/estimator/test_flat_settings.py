"""Settings as parameters of scikit-learn: set_params, get_params, clone, searches and pipelines."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from estimator.tiny import LABELS, SMALL, TEXTS, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.settings import field_names
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.techniques import TECHNIQUES


def test_a_setting_of_the_technique_is_a_parameter():
    clf = TextClassifier(technique="word-at")
    assert clf.get_params()["epsilon"] == TECHNIQUES["word-at"]().epsilon
    assert clf.set_params(epsilon=0.5) is clf
    assert (clf.settings, clf.get_params()["epsilon"]) == ({"epsilon": 0.5}, 0.5)


def test_a_technique_and_its_setting_are_set_in_one_call():
    clf = TextClassifier().set_params(epsilon=0.5, hidden=7, technique="word-at")
    assert (clf.technique, clf.settings) == ("word-at", {"epsilon": 0.5, "hidden": 7})
    clf.set_params(settings={"hidden": 3}, dimension=5)
    assert clf.settings == {"hidden": 3, "dimension": 5}


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_every_setting_of_every_technique_is_a_parameter_except_those_that_training_sets(technique):
    kind = TECHNIQUES[technique]
    names = set(field_names(kind)) - set(kind.filled)
    assert names <= TextClassifier(technique=technique).get_params().keys()
    assert not set(kind.filled) & TextClassifier(technique=technique).get_params().keys()


@pytest.mark.parametrize(("name", "near"), [("epsilom", "epsilon"), ("hiden", "hidden"), ("epoch", "epochs")])
def test_an_unknown_name_is_refused_with_the_nearest(name, near):
    clf = TextClassifier(technique="word-at", settings={"hidden": 3})
    with pytest.raises(UserError, match=f"unknown parameter '{name}': did you mean '{near}'"):
        clf.set_params(**{name: 1})
    assert clf.settings == {"hidden": 3}


def test_a_setting_of_another_technique_is_refused():
    with pytest.raises(UserError, match="unknown parameter 'epsilon'"):
        TextClassifier().set_params(epsilon=0.5)


def test_a_clone_keeps_the_settings_and_shares_none():
    clf = TextClassifier(technique="word-at", settings=dict(SMALL))
    copy = clone(clf).set_params(epsilon=0.5)
    assert (clf.settings, copy.settings) == (SMALL, {**SMALL, "epsilon": 0.5})
    assert clone(copy).get_params() == copy.get_params()
    assert "epsilon=0.5" not in repr(clf)


@pytest.mark.slow
def test_grid_search_over_flat_settings():
    quick = tiny("average", technique="word-at", batch_size=8)
    search = GridSearchCV(quick, {"epsilon": [0.1, 0.5], "hidden": np.array([4, 5])}, cv=2, error_score="raise")
    search.fit(TEXTS * 2, LABELS * 2)
    assert [tuple(p.values()) for p in search.cv_results_["params"]] == [(0.1, 4), (0.1, 5), (0.5, 4), (0.5, 5)]
    description = search.best_estimator_.stored_.description
    assert description.technique_settings["epsilon"] == search.best_params_["epsilon"]
    assert description.architecture.hidden == search.best_params_["hidden"]


def test_a_flat_setting_and_the_dict_train_the_same_model():
    flat = tiny("average", settings=None).set_params(**SMALL, learning_rate=0.01).fit(TEXTS, LABELS)
    inputs = tiny("average", settings={**SMALL, "learning_rate": 0.01}).fit(TEXTS, LABELS)
    assert np.array_equal(flat.predict_proba(TEXTS), inputs.predict_proba(TEXTS))


def test_a_pipeline_passes_a_setting_through():
    pipe = make_pipeline(FunctionTransformer(), tiny(technique="word-at")).set_params(textclassifier__epsilon=0.5)
    assert pipe.get_params()["textclassifier__epsilon"] == 0.5


def test_parameters_of_an_invalid_classifier_can_still_be_read():
    assert TextClassifier(technique="no such technique").get_params()["hidden"] is not None
