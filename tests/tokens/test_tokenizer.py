"""What both kinds of tokenizer share: the ragged record, the cut, the JSON document."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.errors import UserError
from steadygaze.tokens import tokenizer as module
from steadygaze.tokens.tokenizer import Placed, Ragged, TextTokenizer
from steadygaze.tokens.words import build_words

TEXTS = ["one two three four five", "", "six", "one two three", "’tis café"]


def test_specials_stand_round_every_text_and_are_not_words():
    ragged = build_words(TEXTS, max_length=3).encode(["one two", ""])
    one, two = (build_words(TEXTS).vocabulary.index(word) for word in ("one", "two"))
    assert ragged.ids.tolist() == [2, one, two, 3, 2, 3]
    assert ragged.words.tolist() == [False, True, True, False, False, False]
    assert ragged.starts.tolist() == [0, 4, 6]
    assert ragged.lengths.tolist() == [4, 2]
    assert (ragged.ids.dtype, ragged.words.dtype, ragged.starts.dtype) == (np.int32, np.bool_, np.int64)
    assert len(ragged) == 2


def test_the_cut_keeps_exactly_max_length_words_and_says_so():
    tokenizer = build_words(TEXTS, max_length=3)
    placed = tokenizer.place(TEXTS)
    assert placed.ragged.cut.tolist() == [True, False, False, False, False]
    assert placed.ragged.lengths.tolist() == [5, 2, 3, 5, 5]
    assert placed.spans[0] == [(0, 3), (4, 7), (8, 13)]
    assert placed.groups[0] == [0, 1, 2]
    assert tokenizer.encode(TEXTS).ids.tolist() == placed.ragged.ids.tolist()


def test_a_max_length_below_one_is_refused():
    with pytest.raises(UserError, match="max_length: found 0"):
        build_words(TEXTS, max_length=0)


@given(st.lists(st.integers(0, len(TEXTS) - 1), max_size=8))
def test_select_gives_the_sequences_asked_for(rows):
    ragged = build_words(TEXTS, max_length=3).encode(TEXTS)
    chosen = ragged.select(rows)
    expected = [ragged.ids[ragged.starts[row] : ragged.starts[row + 1]].tolist() for row in rows]
    assert [chosen.ids[a:b].tolist() for a, b in zip(chosen.starts, chosen.starts[1:], strict=False)] == expected
    assert chosen.cut.tolist() == [row == 0 for row in rows]
    assert chosen.words.sum() == sum(len(row) - 2 for row in expected)


def test_no_texts_are_an_empty_ragged():
    placed = build_words(TEXTS).place([])
    assert len(placed.ragged) == len(placed.spans) == 0
    assert placed.ragged.starts.tolist() == [0]


def test_records_refuse_parts_that_do_not_fit():
    ragged = build_words(TEXTS).encode(TEXTS)
    with pytest.raises(ValueError, match="Ragged: shapes"):
        Ragged(ragged.ids, ragged.words[1:], ragged.starts, ragged.cut)
    with pytest.raises(ValueError, match="Placed: 5 texts, 0 spans"):
        Placed(ragged, [], [])


def test_chunks_do_not_show(monkeypatch):
    tokenizer = build_words(TEXTS)
    whole = tokenizer.place(TEXTS * 3)
    monkeypatch.setattr(module, "CHUNK", 10)
    parts = tokenizer.place(TEXTS * 3)
    assert parts.ragged.ids.tolist() == whole.ragged.ids.tolist() == tokenizer.encode(TEXTS * 3).ids.tolist()
    assert (parts.spans, parts.groups) == (whole.spans, whole.groups)


def test_json_brings_back_the_same_tokenizer():
    tokenizer = build_words([*TEXTS, "4"], max_length=3)
    again = TextTokenizer.from_json(tokenizer.to_json())
    assert (again.kind, again.max_length, again.size, again.pad_id) == ("words", 3, tokenizer.size, 0)
    assert again.vocabulary == tokenizer.vocabulary
    for text in [*TEXTS, "don’t 17 cafe\u0301 <s>"]:
        assert again.place([text]).ragged.ids.tolist() == tokenizer.encode([text]).ids.tolist()
    assert again.to_json() == tokenizer.to_json()


def test_json_is_what_the_library_reads():
    document = json.loads(build_words(TEXTS, max_length=3).to_json())
    assert document["model"]["type"] == "WordLevel"
    assert document["truncation"]["max_length"] == 5
    assert document["padding"]["pad_token"] == "<pad>"


def test_from_json_takes_the_callers_word_for_max_length():
    assert TextTokenizer.from_json(build_words(TEXTS).to_json(), max_length=2).max_length == 2


def test_a_broken_document_is_the_users_error():
    good = build_words(TEXTS).to_json()
    with pytest.raises(UserError, match=r"tokenizer\.json is not a tokenizer"):
        TextTokenizer.from_json(good[: len(good) // 2])
    without = json.dumps({**json.loads(good), "truncation": None})
    with pytest.raises(UserError, match="give max_length"):
        TextTokenizer.from_json(without)
    with pytest.raises(UserError, match="not a word vocabulary of ours"):
        TextTokenizer.from_json(good.replace("<unk>", "[what]"), kind="words")
