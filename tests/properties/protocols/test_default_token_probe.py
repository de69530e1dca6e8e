"""Default tokens: where they stand, and that attention can look at nine places and no other."""

import numpy as np
import pytest
import torch

from contract.tiny import assert_close, batch, cached_classifier, ragged, widened
from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.properties.protocols.default_tokens import (
    DEFAULTS,
    PLACES,
    default_token_mask,
    default_token_positions,
    with_default_tokens,
)

LONG = ("s" + "w" * 14 + "s", "swwws", "w" * 9, "s", "sw" + "s" + "w" * 11)


def test_four_tokens_stand_before_every_text_and_each_is_one_word():
    texts = with_default_tokens(["the film was a bore .", "b movie"])
    assert texts == ["a b c d the film was a bore .", "a b c d b movie"]
    read = default_token_mask(build_word_tokenizer(texts).encode(texts))
    words = build_word_tokenizer(texts)
    shown = [
        [words.vocabulary[i] for i in read.ids[a:b][read.words[a:b]]]
        for a, b in zip(read.starts, read.starts[1:], strict=False)
    ]
    assert shown == [[*DEFAULTS, "the", "film", "was", "a", "bore"], [*DEFAULTS, "b", "movie"]]


def test_the_first_nine_words_of_each_text_are_kept_wherever_specials_stand():
    """Words: 14, 3, 9, none, and one before a special with 11 after it."""
    read = ragged(LONG)
    kept = default_token_mask(read)
    assert np.add.reduceat(kept.words, kept.starts[:-1]).tolist() == [9, 3, 9, 0, 9]
    for start, end in zip(read.starts, read.starts[1:], strict=False):
        places = np.flatnonzero(read.words[start:end])[:PLACES]
        assert np.flatnonzero(kept.words[start:end]).tolist() == places.tolist()
    assert kept.ids is read.ids


def test_rows_without_any_token_are_no_trouble():
    nothing = TokenArray(np.zeros(0, np.int32), np.zeros(0, np.bool_), np.zeros(3, np.int64), np.zeros(2, np.bool_))
    assert len(default_token_mask(nothing)) == 2
    between = TokenArray(np.ones(4, np.int32), np.ones(4, np.bool_), np.array([0, 3, 3, 4, 4]), np.zeros(4, np.bool_))
    assert default_token_mask(between, 2).words.tolist() == [True, True, False, True]


@pytest.mark.parametrize("encoder", ["average", "bilstm", "transformer"])
def test_attention_is_zero_outside_the_nine_places_whatever_stands_beside_and_after(encoder):
    data = Data(default_token_mask(ragged(LONG)), None, np.zeros(len(LONG), np.int64))
    model, whole = cached_classifier(encoder), batch(data)
    weights = model(whole).weights
    assert weights[~whole.mask].eq(0).all()
    assert whole.mask.sum(-1).tolist() == [9, 3, 9, 0, 9]
    assert_close(weights.sum(-1), whole.mask.any(-1).double())
    assert_close(model(widened(whole, 4)).weights[:, : weights.shape[1]], weights)
    for row in range(len(LONG)):
        alone = model(batch(data, [row])).weights
        assert_close(alone[0], weights[row, : alone.shape[1]])


def test_an_unlooked_word_is_read_all_the_same():
    """The encoder sees the whole text: what stands in tenth place changes the weights of a recurrent model."""
    read = default_token_mask(ragged(LONG))
    ids = read.ids.copy()
    ids[12] = ids[12] % 20 + 2
    other = Data(TokenArray(ids, read.words, read.starts, read.cut))
    model = cached_classifier("bilstm")
    assert not torch.allclose(model(batch(other, [0])).weights, model(batch(Data(read), [0])).weights)


def test_words_are_seated_in_their_order():
    """Places 1, 3 and 4 of a text of five tokens; of a text without any, nothing."""
    weights = torch.tensor([[9.0, 0.2, 9.0, 0.5, 0.3], [9.0, 9.0, 9.0, 9.0, 9.0]])
    mask = torch.tensor([[False, True, False, True, True], [False] * 5])
    result, kept = default_token_positions(weights, mask)
    assert_close(result, torch.tensor([[0.2, 0.5, 0.3, *[0.0] * 6], [0.0] * 9]), torch.float32)
    assert kept.tolist() == [[True] * 3 + [False] * 6, [False] * 9]
    few, _ = default_token_positions(weights, mask, 2)
    assert_close(few, torch.tensor([[0.2, 0.5], [0.0, 0.0]]), torch.float32)
