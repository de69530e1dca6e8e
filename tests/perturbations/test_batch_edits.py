"""Edits of batches: rows taken, words deleted, padding removed; and the number that seeds a text's random key."""

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from contract.tiny import batch, littered, rows, split, widened
from steadygaze.core.random_key import text_key
from steadygaze.perturbations.word_removal import remove_words, row_chunks, take_rows, trim_padding


def test_rows_are_taken_as_often_as_they_are_named_with_all_that_is_known_of_them():
    whole = batch(split(pair=True))
    begins = {"word_starts": whole.mask, "question_word_starts": whole.question_mask}
    own = {"weight": torch.arange(7.0), "sentences": whole.mask.long().cumsum(-1), "word_keys": torch.arange(99)}
    whole = replace(whole, **own, **begins)
    some = take_rows(whole, torch.tensor([2, 0, 2]))
    assert torch.equal(some.word_keys, own["word_keys"])  # of the vocabulary, not of rows
    for name in {*whole.__slots__} - {"word_keys"}:
        assert torch.equal(getattr(some, name), getattr(whole, name)[[2, 0, 2]])
    assert take_rows(batch(split()), torch.tensor([1])).question_ids is None


@given(rows, st.randoms())
def test_a_text_closes_up_over_its_deleted_words_and_keeps_the_rest_in_order(patterns, random):
    whole = batch(split(patterns))
    gone = whole.mask & torch.tensor([[random.random() < 0.5 for _ in row] for row in whole.ids])
    cut = remove_words(whole, gone)
    for i in range(len(whole)):
        left = [t for t in range(whole.ids.shape[1]) if whole.present[i, t] and not gone[i, t]]
        many = len(left)
        assert cut.ids[i, :many].tolist() == whole.ids[i, left].tolist()
        assert cut.mask[i, :many].tolist() == whole.mask[i, left].tolist()
        assert cut.present[i].tolist() == [t < many for t in range(whole.ids.shape[1])]
        assert not cut.mask[i, many:].any()


def test_padding_is_left_off():
    whole = widened(batch(split(("sww", "w"))), 4)
    cut = trim_padding(whole, 3)
    assert torch.equal(cut.ids, batch(split(("sww", "w"))).ids)
    assert cut.present.shape == cut.mask.shape == (2, 3)


def test_parts_are_all_rows_in_order():
    whole = batch(split())
    assert [part.tolist() for part in row_chunks(whole, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [len(part) for part in row_chunks(whole, 100)] == [7]


def test_a_texts_number_is_its_own_whatever_stands_beside_it():
    whole = batch(split())
    keys = text_key(whole)
    assert torch.equal(text_key(widened(whole, 5)), keys)
    assert torch.equal(text_key(littered(whole)), keys)
    assert len(keys.unique()) == 7
    turned = replace(whole, ids=whole.ids.masked_fill(~whole.present, 0))
    swapped = turned.ids.clone()
    swapped[0, [1, 2]] = swapped[0, [2, 1]]
    assert text_key(replace(whole, ids=swapped))[0] != keys[0]  # the same words in another order
