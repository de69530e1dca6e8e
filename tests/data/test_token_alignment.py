"""Tokens against characters, checked with loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.data.token_alignment import mark_tokens, merge_words

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair))), max_size=12)


@given(SPANS, SPANS)
def test_a_token_is_marked_when_it_shares_a_character_with_rationales(spans, rationales):
    letters = {index for start, end in rationales for index in range(start, end)}
    assert mark_tokens(spans, rationales).tolist() == [bool(letters & set(range(*span))) for span in spans]


def test_touching_is_not_overlapping():
    assert mark_tokens([(0, 3), (3, 5), (5, 9)], [(3, 5)]).tolist() == [False, True, False]


def test_a_long_rationale_is_kept_behind_a_short_one():
    assert mark_tokens([(8, 9)], [(0, 10), (1, 2)]).tolist() == [True]


def test_without_rationales_nothing_is_marked():
    assert mark_tokens([(0, 1)], []).tolist() == [False]
    assert mark_tokens([], [(0, 1)]).tolist() == []


def test_pieces_of_a_word_are_pooled():
    words, spans, weights = merge_words(
        "so unreadable!", [(0, 2), (3, 5), (5, 13), (13, 14)], [0, 1, 1, 2], [1, 2, 4, 8]
    )
    assert words == ["so", "unreadable", "!"]
    assert spans == [(0, 2), (3, 13), (13, 14)]
    assert weights.tolist() == [1, 6, 8]


def test_groups_may_skip_numbers():
    assert merge_words("abc", [(0, 1), (1, 2), (2, 3)], [0, 4, 4], [1.0, 1.0, 1.0])[2].tolist() == [1, 2]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20))
def test_no_weight_is_lost(steps):
    groups = np.cumsum(steps).tolist()
    spans = [(index, index + 1) for index in range(len(groups))]
    words, merged, weights = merge_words("x" * len(groups), spans, groups, np.ones(len(groups)))
    assert [len(word) for word in words] == weights.tolist() == [groups.count(group) for group in sorted(set(groups))]
    assert [end for _, end in merged[:-1]] == [start for start, _ in merged[1:]]


def test_merging_an_empty_text_gives_no_words():
    words, spans, weights = merge_words("", [], [], np.zeros(0, np.float32))
    assert (words, spans, weights.tolist(), weights.dtype) == ([], [], [], np.float32)


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="1 spans, 1 groups and 2 weights"):
        merge_words("a", [(0, 1)], [0], [1.0, 2.0])
