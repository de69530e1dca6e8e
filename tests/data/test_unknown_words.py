"""Words outside the vocabulary join the group of their closest known synonym."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.tiny import LABELS, TEXTS, tiny
from steadygaze import TextClassifier
from steadygaze.core.errors import UserError
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.unknown_words import closest_known, with_unknown_words

TABLE = {
    "lovely": ["pretty", "dull", "good"],
    "good": ["solid", "swell"],
    "bad": ["swell", "awful"],
    "film": ["movie"],
    "tedious": ["dreary"],
}


def test_a_word_is_read_as_the_first_known_word_of_its_row_or_as_that_in_whose_row_it_stands_first():
    known = ["film", "good", "bad", "dull"]
    expected = {"lovely": "dull", "solid": "good", "swell": "bad", "awful": "bad", "movie": "film"}
    assert closest_known(TABLE, known) == expected
    assert closest_known({"good": ["swell"], "bad": ["swell"]}, ["bad", "good"]) == {"swell": "bad"}  # more frequent


def test_known_words_and_groups_stay_and_groups_without_a_known_word_are_taken_apart():
    groups = SynonymGroups((("good", "fine"), ("lovely", "swell"), ("tedious", "dreary")), spellings=("good",))
    merged = with_unknown_words(groups, TABLE, ["film", "good", "bad", "dull"])
    assert merged.groups == (
        ("good", "fine", "solid"),
        ("tedious", "dreary"),
        ("bad", "awful", "swell"),
        ("dull", "lovely"),
        ("film", "movie"),
    )
    assert merged.spellings == ("good",)


WORDS = st.sampled_from([first + second for first in "abcdef" for second in "xyz"])


@given(st.dictionaries(WORDS, st.lists(WORDS, max_size=4)), st.lists(WORDS, unique=True, max_size=6))
def test_every_word_is_in_one_group_and_every_known_word_in_its_own(table, known):
    groups = with_unknown_words(None, table, known)  # refuses a word in two groups
    for word, name in closest_known(table, known).items():
        assert word not in known
        assert name in known
        assert name in table.get(word, []) or word in table[name]
        assert groups.representative(word) == name
    assert all(groups.representative(word) == word for word in known)


def trained(**parameters) -> TextClassifier:
    return tiny(epochs=6, batch_size=4, **parameters).fit(TEXTS, LABELS)


def test_a_model_reads_an_unknown_word_as_its_synonym_and_shows_the_users_own():
    table = {"good": ["swell"], "film": ["movie"]}
    clf = trained(synonym_groups=table)
    known, unknown = "the film was good", "the Movie was swell"
    np.testing.assert_array_equal(clf.predict_proba([known]), clf.predict_proba([unknown]))
    explanation = clf.explain(unknown)
    assert explanation.tokens == ("the", "Movie", "was", "swell")
    assert explanation.weights == clf.explain(known).weights


@pytest.mark.parametrize("source", ["groups", "setting"])
def test_a_table_of_groups_or_of_a_setting_serves(source, tmp_path):
    """An unknown word reads as its synonym; the known ones of another row stay apart."""
    file = tmp_path / "table.json"
    file.write_text('{"bad": ["awful"], "thought": ["believed"]}')
    parameters = (
        {"synonym_groups": str(file)}
        if source == "groups"
        else {"settings": {"synonyms": str(file), "unknown": "synonym"}}
    )
    clf = trained(**parameters)
    assert clf.predict_proba(["awful"]) == pytest.approx(clf.predict_proba(["bad"]), abs=0)
    assert not np.array_equal(clf.predict_proba(["dull"]), clf.predict_proba(["bad"]))


def test_saved_models_keep_it(tmp_path):
    import steadygaze as sg

    clf = trained(synonym_groups={"good": ["swell"]})
    clf.save(tmp_path / "model")
    assert sg.load(tmp_path / "model").predict_proba(["swell"]) == pytest.approx(clf.predict_proba(["good"]), abs=0)


def test_the_token_of_unknown_words_can_be_kept():
    clf = trained(synonym_groups={"good": ["fine", "swell"]}, settings={"unknown": "token"})
    np.testing.assert_array_equal(clf.predict_proba(["the film was swell"]), clf.predict_proba(["the film was xyzzy"]))
    clf = trained(synonym_groups=SynonymGroups((("good", "fine"),)))
    np.testing.assert_array_equal(clf.predict_proba(["the film was swell"]), clf.predict_proba(["the film was xyzzy"]))


def test_a_table_is_needed():
    with pytest.raises(UserError, match="unknown=synonym needs a synonym table: pass one as synonym_groups or with"):
        trained(settings={"unknown": "synonym"})
