"""What both kinds of tokenizer share: the specials, the cut, the JSON document."""

import json

import numpy as np
import pytest

from steadygaze.core.errors import UserError
from steadygaze.data import text_tokenizer as module
from steadygaze.data.word_tokenizer import build_word_tokenizer

TEXTS = ["one two three four five", "", "six", "one two three", "’tis café"]


def test_specials_stand_round_every_text_and_are_not_words():
    ragged = build_word_tokenizer(TEXTS, max_length=3).encode(["one two", ""])
    first_id, second_id = (build_word_tokenizer(TEXTS).vocabulary.index(word) for word in ("one", "two"))
    assert ragged.ids.tolist() == [2, first_id, second_id, 3, 2, 3]
    assert ragged.words.tolist() == [False, True, True, False, False, False]
    assert ragged.starts.tolist() == [0, 4, 6]
    assert ragged.lengths.tolist() == [4, 2]
    assert (ragged.ids.dtype, ragged.words.dtype, ragged.starts.dtype) == (np.int32, np.bool_, np.int64)
    assert len(ragged) == 2


def test_truncation_keeps_exactly_max_length_words_and_reports_it():
    tokenizer = build_word_tokenizer(TEXTS, max_length=3)
    placed = tokenizer.place(TEXTS)
    assert placed.ragged.cut.tolist() == [True, False, False, False, False]
    assert placed.ragged.lengths.tolist() == [5, 2, 3, 5, 5]
    assert placed.spans[0] == [(0, 3), (4, 7), (8, 13)]
    assert list(placed.groups[0]) == [0, 1, 2]
    assert tokenizer.encode(TEXTS).ids.tolist() == placed.ragged.ids.tolist()


def test_a_max_length_below_one_is_refused():
    with pytest.raises(UserError, match="max_length: found 0"):
        build_word_tokenizer(TEXTS, max_length=0)


def test_no_texts_are_an_empty_ragged():
    placed = build_word_tokenizer(TEXTS).place([])
    assert len(placed.ragged) == len(placed.spans) == 0
    assert placed.ragged.starts.tolist() == [0]


def test_chunks_do_not_show(monkeypatch):
    tokenizer = build_word_tokenizer(TEXTS)
    whole = tokenizer.place(TEXTS * 3)
    monkeypatch.setattr(module, "CHUNK", 10)
    parts = tokenizer.place(TEXTS * 3)
    assert parts.ragged.ids.tolist() == whole.ragged.ids.tolist() == tokenizer.encode(TEXTS * 3).ids.tolist()
    assert (parts.spans, parts.groups) == (whole.spans, whole.groups)


def test_json_is_what_the_library_reads():
    document = json.loads(build_word_tokenizer(TEXTS, max_length=3).to_json())
    assert document["model"]["type"] == "WordLevel"
    assert document["truncation"]["max_length"] == 5
    assert document["padding"]["pad_token"] == "<pad>"
