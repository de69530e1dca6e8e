"""Functions that return labels, and functions that are called several times."""

import numpy as np
import pytest

import steadygaze as sg

NAMES = ["neg", "pos"]


def named(texts):
    return ["pos" if "good" in text else "neg" for text in texts]


@pytest.mark.parametrize(
    ("function", "classes"),
    [
        (named, NAMES),
        (lambda texts: np.array(named(texts)), NAMES),
        (lambda texts: tuple(named(texts)), NAMES),
        (lambda texts: [int("good" in text) for text in texts], [0, 1]),
        (lambda texts: np.array(["good" in text for text in texts]), [False, True]),
    ],
)
def test_labels_are_probabilities_of_0_and_1(function, classes):
    model = sg.load(function, classes=list(map(str, classes)) if classes == [False, True] else classes)
    assert model.predict_proba(["a good film", "a bad film"]).round(9).tolist() == [[0, 1], [1, 0]]
    explanation = model.explain("a good film", explainer="leave-one-out")
    assert explanation.weights == (0, 1, 0)


def test_a_function_is_called_once_per_vote_and_its_answers_are_averaged():
    calls = []

    def alternating(texts):
        calls.append(len(texts))
        return ["pos" if len(calls) % 4 else "neg"] * len(texts)

    model = sg.load(alternating, classes=NAMES, votes=8)
    np.testing.assert_allclose(model.predict_proba(["a", "b"]), [[0.25, 0.75]] * 2)
    assert calls == [2] * 8
    rising = iter(np.linspace(0, 1, 5))
    means = sg.load(lambda texts: [[1 - (p := next(rising)), p]] * len(texts), classes=NAMES, votes=5)
    np.testing.assert_allclose(means.predict_proba(["a"]), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (["po"], "unknown label 'po': did you mean 'pos'?"),
        (["pos", "neg"], "one row per input"),
        ([0.5], "shape"),
        ([None], "black box returned"),
    ],
)
def test_an_answer_that_is_no_label_is_refused(answer, problem):
    model = sg.load(lambda texts: answer, classes=NAMES)
    with pytest.raises(sg.UserError, match=problem):
        model.predict(["a"])


def test_a_function_of_labels_needs_the_names_of_the_classes():
    with pytest.raises(sg.UserError, match=r"pass their names as classes="):
        sg.load(named)


def test_votes_of_a_model_that_is_no_function_are_refused():
    from estimator.tiny import fitted

    with pytest.raises(sg.UserError, match="hosted models and functions"):
        sg.load(lambda texts: [3.0] * len(texts), votes=3)  # regression
    from steadygaze.adapters.as_adapter import as_adapter
    from steadygaze.adapters.label_votes import QueryOptions

    with pytest.raises(sg.UserError, match="hosted models and functions"):
        as_adapter(fitted(), queries=QueryOptions(votes=2))
