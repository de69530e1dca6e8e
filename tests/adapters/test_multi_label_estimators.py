"""Multi-label classifiers of scikit-learn, alone and inside pipelines and searches."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import steadygaze as sg
from steadygaze.core.errors import UserError

MANY = ["a good film", "a bad film", "good but bad", "a film"] * 5
HAS = np.array([["good" in text, "bad" in text] for text in MANY], int)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    "estimator",
    [
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        ClassifierChain(LogisticRegression()),
        GridSearchCV(OneVsRestClassifier(LogisticRegression()), {"estimator__C": [1, 10]}, cv=2),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_multi_label_estimators_of_scikit_learn(estimator):
    pipeline = make_pipeline(CountVectorizer(), estimator).fit(MANY, HAS)
    search = GridSearchCV(pipeline, {"countvectorizer__lowercase": [True]}, cv=2).fit(MANY, HAS)
    for source in (pipeline, search):
        model = sg.load(source, classes=["good", "bad"])
        assert (model.task, model.outputs) == ("multi-label", ("good", "bad"))
        assert model.predict(MANY).tolist() == source.predict(MANY).astype(bool).tolist()
        assert model.score(MANY, HAS) == (source.predict(MANY) == HAS).all(1).mean()
    assert sg.load(pipeline).outputs == (0, 1)


def test_outputs_with_several_classes_are_refused():
    labels = np.array([["low", "mid", "high", "mid"] * 5, ["yes", "no", "no", "no"] * 5]).T
    pipeline = make_pipeline(CountVectorizer(), RandomForestClassifier(2)).fit(MANY, labels)
    with pytest.raises(UserError, match=r"has 2 outputs, and one has the classes .* only 0 and 1"):
        sg.load(pipeline)
