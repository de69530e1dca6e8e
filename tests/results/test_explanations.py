"""Explanations: a list that a notebook shows and pandas reads."""

import json
import pickle

import pytest

from results.test_explanation import HighlightParser, explain
from steadygaze.results.explanation import MOST_SHOWN, Explanations


@pytest.fixture
def pair() -> Explanations:
    return Explanations([explain("good plot", (0.75, 0.25)), explain("bad", (1.0,), label="negative")])


def test_it_is_a_list(pair):
    plain = list(pair)
    assert pair == plain
    assert pair[0] is plain[0]
    assert pair[1:] == plain[1:]
    assert type(pair[1:]) is Explanations
    assert [e.label for e in reversed(pair)] == ["negative", "positive"]
    assert json.dumps([e.to_dict() for e in pair])
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_a_notebook_shows_every_text(pair):
    shown = HighlightParser(pair._repr_html_()).shown
    assert shown.index("good plot") < shown.index("bad")
    many = Explanations([explain("good plot", (0.75, 0.25))] * (MOST_SHOWN + 1200))
    shown = HighlightParser(many._repr_html_()).shown
    assert shown.count("good plot") == MOST_SHOWN
    assert shown.endswith("… and 1,200 more")
    assert Explanations()._repr_html_() == ""


def test_the_table_has_one_row_per_text_and_token(pair):
    table = pair.to_pandas()
    assert table.to_dict("list") == {
        "text": [0, 0, 1],
        "label": ["positive", "positive", "negative"],
        "target": ["positive", "positive", "negative"],
        "explainer": ["attention"] * 3,
        "token": ["good", "plot", "bad"],
        "start": [0, 5, 0],
        "end": [4, 9, 3],
        "weight": [0.75, 0.25, 1.0],
    }
    columns = ["text", "label", "target", "explainer", "token", "start", "end", "weight"]
    assert list(Explanations().to_pandas().columns) == columns


def test_the_table_names_the_explained_class():
    table = Explanations([explain("good", (1.0,), target="negative", explainer="lime")]).to_pandas()
    assert table[["label", "target", "explainer"]].values.tolist() == [["positive", "negative", "lime"]]


def test_bounds_are_columns_where_some_text_has_them(pair):
    table = Explanations([*pair, explain("dull", (0.5,), bounds=((0.25, 0.75),))]).to_pandas()
    assert table.low.isna().tolist() == [True, True, True, False]
    assert (table.low[3], table.high[3]) == (0.25, 0.75)
