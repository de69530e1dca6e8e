"""Which tokens end a sentence, in our own vocabularies and in those of word pieces."""

import pytest

from steadygaze.tokens.sentences import sentence_ends
from steadygaze.tokens.words import build_words


@pytest.mark.parametrize("token", [".", "!", "?", "...", "!!!", "?!", "…", "Ġ.", "▁?", "##.", "##...", "。"])
def test_a_stop_ends_a_sentence_however_a_vocabulary_marks_it(token):
    assert sentence_ends([token]).tolist() == [True]


@pytest.mark.parametrize(
    "token", ["", "u.s.", "a", ",", ";", ":", "-", '"', "3.5", "##", "Ġ", "▁", "Ġa", "<s>", "qqq", ".)"]
)
def test_nothing_else_does(token):
    assert sentence_ends([token]).tolist() == [False]


def test_of_a_word_vocabulary_the_stops_are_found():
    vocabulary = build_words(["Fine beer! Is it? From the U.S. ... yes."]).vocabulary
    ended = [token for token, ends in zip(vocabulary, sentence_ends(vocabulary), strict=True) if ends]
    assert sorted(ended) == ["!", ".", "...", "?"]
