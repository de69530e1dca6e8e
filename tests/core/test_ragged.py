"""The two records that hold many token sequences: their parts fit, and rows can be picked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.ragged import TokenArray, TokenizedTexts
from steadygaze.data.word_tokenizer import build_word_tokenizer

TEXTS = ["one two three four five", "", "six", "one two three", "’tis café"]


@given(st.lists(st.integers(0, len(TEXTS) - 1), max_size=8))
def test_select_returns_the_requested_sequences(rows):
    ragged = build_word_tokenizer(TEXTS, max_length=3).encode(TEXTS)
    chosen = ragged.select(rows)
    expected = [ragged.ids[ragged.starts[row] : ragged.starts[row + 1]].tolist() for row in rows]
    assert [chosen.ids[a:b].tolist() for a, b in zip(chosen.starts, chosen.starts[1:], strict=False)] == expected
    assert chosen.cut.tolist() == [row == 0 for row in rows]
    assert chosen.words.sum() == sum(len(row) - 2 for row in expected)


def test_records_refuse_parts_that_do_not_fit():
    ragged = build_word_tokenizer(TEXTS).encode(TEXTS)
    with pytest.raises(ValueError, match="TokenArray: inconsistent shapes"):
        TokenArray(ragged.ids, ragged.words[1:], ragged.starts, ragged.cut)
    with pytest.raises(ValueError, match="TokenizedTexts: 5 texts, 0 spans"):
        TokenizedTexts(ragged, [], [])
