"""A saved tokenizer comes back as it was, or the document is refused.  Pieces: tests/tokens/test_pieces.py."""

import pytest

from steadygaze.core.errors import UserError
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.model_folder import KINDS, read_tokenizer

TEXTS = ["one two three four five", "", "six", "one two three", "’tis café"]


def test_json_brings_back_the_same_tokenizer():
    tokenizer = build_word_tokenizer([*TEXTS, "4"], max_length=3)
    again = read_tokenizer(tokenizer.to_json(), kind="words", max_length=3)
    assert (again.kind, again.max_length, again.size, again.pad_id) == ("words", 3, tokenizer.size, 0)
    assert again.vocabulary == tokenizer.vocabulary
    for text in [*TEXTS, "don’t 17 cafe\u0301 <s>"]:
        assert again.place([text]).ragged.ids.tolist() == tokenizer.encode([text]).ids.tolist()
    assert again.to_json() == tokenizer.to_json()


def test_max_length_is_the_callers_not_the_documents():
    tokenizer = read_tokenizer(build_word_tokenizer(TEXTS, max_length=9).to_json(), kind="words", max_length=2)
    assert tokenizer.max_length == 2
    assert tokenizer.encode(TEXTS).lengths.tolist() == [4, 2, 3, 4, 4]


def test_every_kind_is_read_as_itself():
    document = build_word_tokenizer(TEXTS).to_json()
    assert list(KINDS) == ["words", "pieces"]
    assert [read_tokenizer(document, kind=kind, max_length=2).kind for kind in KINDS] == ["words", "pieces"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_cut_short_is_the_users_error(kind):
    document = build_word_tokenizer(TEXTS).to_json()
    with pytest.raises(UserError, match=r"tokenizer\.json is not a tokenizer"):
        read_tokenizer(document[: len(document) // 2], kind=kind, max_length=9)


def test_words_that_are_not_ours_are_the_users_error():
    document = build_word_tokenizer(TEXTS).to_json().replace("<unk>", "[what]")
    with pytest.raises(UserError, match="not a word vocabulary of steadygaze"):
        read_tokenizer(document, kind="words", max_length=9)
