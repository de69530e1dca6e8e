"""A text in pieces is the text, and without some of them it is the text without them."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.adapters.black_box import TextWords
from steadygaze.core.random_key import text_key
from steadygaze.data.batches import Data, collate
from steadygaze.perturbations.word_removal import remove_words

ANY = st.lists(st.text() | st.text(" \t\nab'’.-é\u00ad😀\ud800", max_size=12), min_size=1, max_size=4)
"""Any strings at all, and short ones of what is hard: white space, clitics, accents, joiners, half a surrogate pair."""

SEEN = TextWords()
"""Has met more and more by the time a text comes to it."""


def batch_of(words, texts):
    return collate(Data(words.place(texts).ragged), np.arange(len(texts)))


@settings(max_examples=20, deadline=None)
@given(ANY)
def test_the_pieces_of_a_text_are_the_text(texts):
    batch = batch_of(SEEN, texts)
    assert SEEN.join(batch.ids, batch.present) == texts


@given(ANY, st.integers(0, 2**32 - 1))
def test_erased_words_are_taken_out_with_the_space_behind_them_and_nothing_else_is(texts, seed):
    """Character by character: a word goes, and so do the characters up to the next word; a space may come."""
    placed, batch = SEEN.place(texts), batch_of(SEEN, texts)
    gone = batch.mask & torch.from_numpy(np.random.default_rng(seed).random(batch.mask.shape) < 0.5)
    result = SEEN.join(*(getattr(remove_words(batch, gone), name) for name in ("ids", "present")))
    for row, (text, spans) in enumerate(zip(texts, placed.spans, strict=True)):
        starts = [start for start, _ in spans] + [len(text)]
        erased = gone[row][batch.mask[row]].tolist()
        lost = {place for word in np.flatnonzero(erased) for place in range(starts[word], starts[word + 1])}
        left = "".join(letter for place, letter in enumerate(text) if place not in lost)
        assert "".join(result[row].split()) == "".join(left.split())
        assert len(result[row]) - len(left) <= sum(erased)  # at most one space for each word


@given(
    st.lists(st.sampled_from(["good", "good,", "film.", "film!"]), min_size=1, max_size=9), st.integers(0, 2**32 - 1)
)
def test_words_are_never_glued(tokens, seed):
    text = " ".join(tokens)
    spans, batch = SEEN.place([text]).spans[0], batch_of(SEEN, [text])
    gone = batch.mask & torch.from_numpy(np.random.default_rng(seed).random(batch.mask.shape) < 0.5)
    words = [text[start:end] for (start, end), erased in zip(spans, gone[0].tolist(), strict=True) if not erased]
    left = remove_words(batch, gone)
    (result,) = SEEN.join(left.ids, left.present)
    assert re.findall("[a-z]+", result) == [word for word in words if word.isalpha()]


@pytest.mark.parametrize(
    ("text", "erased", "left"),
    [
        ("dull. A film", ".", "dull A film"),
        ("dull, slow. A film", ",.", "dull slow A film"),
        ("(a good film)", "a", "(good film)"),
        ('a "good film" here', "good", 'a "film" here'),
        ("dull. (A film)", ".", "dull (A film)"),
        ("a film.", "film", "a ."),
        ("don't go", "go", "don't "),
        ("他喜欢喝茶", "喜欢", "他喝茶"),
    ],
)
@pytest.mark.parametrize("removal", ["delete", "pad"])
def test_a_space_separates_the_words_around_erased_punctuation(text, erased, left, removal):
    words = TextWords()
    spans, batch = words.place([text]).spans[0], batch_of(words, [text])
    gone = torch.tensor([[text[start:end] in [erased, *erased] for start, end in spans]])
    assert gone.any()
    rest = remove_words(batch, gone, removal)
    assert words.join(rest.ids, rest.present) == [left]


@given(ANY)
def test_every_word_has_its_characters_and_every_other_character_is_white_space(texts):
    placed, batch = SEEN.place(texts), batch_of(SEEN, texts)
    vocabulary = SEEN.vocabulary
    assert batch.mask.sum(1).tolist() == [len(spans) for spans in placed.spans]
    for row, (text, spans) in enumerate(zip(texts, placed.spans, strict=True)):
        pieces = [vocabulary[index] for index in batch.ids[row][batch.mask[row]].tolist()]
        assert [piece.rstrip() for piece in pieces] == [text[start:end] for start, end in spans]
        assert not (batch.present[row] & ~batch.mask[row])[1:].any()  # only what stands before the first word


def test_by_hand():
    words = TextWords()
    batch = batch_of(words, ["  A good film.", "good film"])
    vocabulary = words.vocabulary
    assert [vocabulary[index] for index in batch.ids[0].tolist()] == ["  ", "A ", "good ", "film", "."]
    assert batch.mask[0].tolist() == [False, True, True, True, True]
    assert vocabulary == ["", "  ", ".", "A ", "film", "good "]  # padding, then by alphabet
    assert batch.ids[1, :2].tolist() == [5, 4]
    gone = torch.zeros_like(batch.mask)
    gone[0, 2] = gone[1, 1] = True
    left = remove_words(batch, gone)
    assert words.join(left.ids, left.present) == ["  A film.", "good "]


def test_ids_stay_and_do_not_depend_on_the_order_of_texts():
    texts = ["the film was good", "a bad film", "nobody's film!"]
    encoder, other = TextWords(), TextWords()
    first = encoder.encode(texts)
    assert other.encode(texts[::-1]).select([2, 1, 0]).ids.tolist() == first.ids.tolist()
    encoder.encode(["something else entirely"])
    assert encoder.encode(texts).ids.tolist() == first.ids.tolist()
    assert encoder.encode(["film"], question=True).ids.tolist() == [encoder.vocabulary.index("film")]


def test_an_empty_text_has_no_pieces_and_padding_is_nothing():
    words = TextWords()
    batch = batch_of(words, ["", "good film", " "])
    assert batch.present.sum(1).tolist() == [0, 2, 1]
    assert not batch.mask[2].any()
    padded = batch.ids.masked_fill(torch.tensor([[False], [True], [False]]), 0)
    assert words.join(padded, batch.present) == ["", "", " "]


def test_a_text_is_read_to_its_end():
    words = TextWords()
    text = "word " * 5000
    placed = words.place([text])
    assert len(placed.spans[0]) == 5000
    assert not placed.ragged.cut.any()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(" \tabAB'.é\ud800", max_size=12), min_size=1, max_size=6), st.data())
def test_the_number_of_a_word_does_not_depend_on_other_texts_or_their_order(texts, data):
    chosen = data.draw(st.permutations(range(len(texts))))[: data.draw(st.integers(1, len(texts)))]
    alone, after_others, alike = TextWords(), TextWords(), TextWords()
    after_others.place(data.draw(st.lists(st.sampled_from(texts))))
    all_texts = batch_of(after_others, texts)
    some = batch_of(alone, [texts[row] for row in chosen])
    width = some.ids.shape[1]
    assert torch.equal(some.permanent_ids.where(some.present, 0), all_texts.permanent_ids[chosen, :width])
    assert torch.equal(text_key(some), text_key(all_texts)[chosen])
    assert np.array_equal(alike.place(texts).ragged.permanent_ids, after_others.place(texts).ragged.permanent_ids)


def test_words_have_different_numbers_in_alphabetical_order():
    words = ["bad", "bags", "Bit", "good", "goodness", "é"]
    numbers = batch_of(TextWords(), words).permanent_ids.flatten().tolist()
    assert numbers[:4] == sorted(numbers[:4])  # by the first four letters
    assert len({*numbers}) == len(words)
    assert len({*batch_of(TextWords(), ["a a.a"]).permanent_ids.flatten().tolist()}) == 4  # "a ", "a", ".", "a"
