"""Empty texts among others: a null row and one warning, from every kind of model in memory."""

import numpy as np
import pandas as pd
import pytest

import steadygaze as sg
from estimator.tiny import fitted, fitted_pair
from steadygaze.adapters import streaming
from steadygaze.core.errors import CoverageWarning, UserError
from steadygaze.data.text_checks import EmptyTexts
from steadygaze.estimator.inputs import predict_nonempty
from steadygaze.models.inference import NonFiniteOutput

TEXTS = ["a good film", "", " \n", None, float("nan"), "a bad film"]
WARNING = r"^no prediction for 4 empty texts: texts\[1\]; texts\[2\]; texts\[3\]; texts\[4\]$"


def cheerful(texts):
    assert all(text.strip() for text in texts)
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]


def classes(kind):
    return fitted() if kind == "own" else sg.load(cheerful, classes=["no", "yes"])


@pytest.mark.parametrize("kind", ["own", "function"])
def test_the_other_rows_are_those_without_the_empty_texts(kind):
    model, whole = classes(kind), [TEXTS[0], TEXTS[-1]]
    with pytest.warns(CoverageWarning, match=WARNING) as caught:
        probabilities = model.predict_proba(TEXTS)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_allclose(probabilities[[0, -1]], model.predict_proba(whole), atol=1e-6)
    assert np.isnan(probabilities[1:-1]).all()
    with pytest.warns(CoverageWarning, match=WARNING):
        labels = model.predict(pd.Series(TEXTS))
    assert labels.tolist() == [model.predict(whole)[0], None, None, None, None, model.predict(whole)[1]]
    with pytest.warns(CoverageWarning, match=WARNING) as caught:
        explanations = sg.explain(model, TEXTS)
    assert len(caught) == 1
    assert [e if e is None else e.text for e in explanations] == [whole[0], None, None, None, None, whole[1]]
    assert explanations.to_pandas().text.unique().tolist() == [0, 5]
    assert "a bad film" not in explanations[:2]._repr_html_()


def test_a_pair_without_a_question_is_empty():
    with pytest.warns(CoverageWarning, match=r"1 empty text: texts\[1\]$"):
        labels = fitted_pair().predict([("a film", "why?"), ("a film", " ")])
    assert [label is None for label in labels] == [False, True]


@pytest.mark.parametrize(
    ("pair", "name"), [(("A", ""), "second"), (("", "B"), "first"), (("", " "), "first and the second")]
)
def test_the_empty_text_of_a_pair_on_the_command_line_is_named(pair, name):
    empty = EmptyTexts()
    assert list(streaming.read(True, [], None, ["text"], False, pair, empty=empty)) == [[pair]]
    assert empty.sentence == f"no prediction for 1 empty text: the {name} text of the pair"


def test_without_any_text_all_rows_are_null():
    with pytest.warns(CoverageWarning, match="2 empty texts"):
        assert np.isnan(classes("function").predict_proba(["", " "])).all()
    with pytest.warns(CoverageWarning, match="1 empty text"):
        assert classes("function").explain([""]) == [None]


def test_numbers_are_nan():
    number = sg.load(lambda texts: [float(len(text)) for text in texts])
    with pytest.warns(CoverageWarning, match="1 empty text"):
        assert number.predict(["ab", ""]).tolist() == pytest.approx([2.0, np.nan], nan_ok=True)


def test_an_error_names_the_row_among_all_texts():
    def broken(texts):
        raise NonFiniteOutput(texts.index("b"))

    with pytest.raises(NonFiniteOutput, match="text 3 is not finite"):
        predict_nonempty(["a", "", "b"], 2, broken)
    with pytest.raises(UserError, match=r"texts\[2\] is 7"):
        classes("function").predict(["a", "", 7])


@pytest.mark.parametrize("kind", ["own", "function"])
def test_scores_and_single_explanations_refuse_an_empty_text(kind):
    model = classes(kind)
    with pytest.raises(UserError, match=r"texts\[1\] is empty"):
        model.score(["a good film", ""], [model.classes_[0]] * 2)
    with pytest.raises(UserError, match=r"texts\[0\] is empty"):
        model.explain("")
