"""Replacements are words of other texts, after the same word where there is one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.properties.probes.other_words import words_of_other_texts


def replaced(texts: list[list[int]], specials: tuple[int, ...] = (), seed: int = 0) -> list[list[int]]:
    ids = np.array([number for text in texts for number in text])
    lengths = np.array([len(text) for text in texts])
    new = words_of_other_texts(ids, ~np.isin(ids, specials), lengths, seed)
    return [part.tolist() for part in np.split(new, lengths.cumsum()[:-1])]


def test_a_word_is_replaced_by_one_that_follows_the_same_word_elsewhere():
    texts = [[1, 2, 5, 8], [1, 3, 5, 9]]
    for seed in range(20):
        (_, second, _, fourth), (_, other_second, _, other_fourth) = replaced(texts, seed=seed)
        assert (second, other_second, fourth, other_fourth) == (3, 2, 9, 8)


def test_special_tokens_stay_and_replace_nothing():
    texts = [[0, 2, 3, 0], [0, 4, 0], [0, 6, 7, 0]]
    for seed in range(20):
        for text, new in zip(texts, replaced(texts, (0,), seed), strict=True):
            assert [word == 0 for word in text] == [word == 0 for word in new]


def test_a_word_without_another_word_stays():
    assert replaced([[1, 1], [1]]) == [[1, 1], [1]]
    assert replaced([[1, 2]]) == [[1, 2]]


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=6), min_size=1, max_size=5), st.integers(0, 9))
def test_every_replacement_is_another_word_of_another_text(texts, seed):
    for row, (text, new) in enumerate(zip(texts, replaced(texts, seed=seed), strict=True)):
        others = {word for number, other in enumerate(texts) for word in other if number != row}
        assert all(after == before or after in others for before, after in zip(text, new, strict=True))
