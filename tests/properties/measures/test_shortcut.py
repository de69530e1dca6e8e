"""Weight on nothing, and weight on a place, by hand."""

import pytest
import torch

from steadygaze.properties.measures.shortcut_measures import (
    default_mass,
    default_mass_above_share,
    first_sentence_pick,
    first_sentence_share,
)


def tokens(*rows: str) -> torch.Tensor:
    """`x` is True: a row of words at a glance."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])


ALL = tokens("xxxxxx")


def test_the_default_mass_is_the_weight_on_tokens_with_nothing_to_read():
    """0.1 + 0.3 of 1.  Signs do not count: (1 + 3) / 8.  Of no weight at all, none is anywhere."""
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0, 0], [1.0, 2, -3, -2, 0, 0], [0.0] * 6], dtype=torch.float64)
    blank = tokens("x.x...").expand(3, 6)
    assert default_mass(weights, blank, ALL.expand(3, 6)).tolist() == pytest.approx([0.4, 0.5, 0.0])


def test_even_weights_give_tokens_with_nothing_to_read_their_share_and_no_more():
    """Two of five words.  Even weights: 0.4 − 0.4.  All the weight: 1 − 0.4.  None: −0.4."""
    mask = tokens("xxxxx.").expand(3, 6)
    weights = torch.tensor([[0.2] * 5 + [9], [0.5, 0.5, 0, 0, 0, 9], [0, 0, 0.3, 0.3, 0.4, 9]], dtype=torch.float64)
    result = default_mass_above_share(weights, tokens("xx...x").expand(3, 6), mask)
    assert result.tolist() == pytest.approx([0.0, 0.6, -0.4])


def test_the_first_sentence_share_of_weights_and_of_choices():
    """Sentence 1 is words 0 to 2.  Weights: 0.6 of 1.  Chosen: 1 of 3, all of 2, and nothing of nothing."""
    first = tokens("xxx...")
    assert first_sentence_share(torch.tensor([[0.1, 0.2, 0.3, 0.4, 0, 0]]), first, ALL).item() == pytest.approx(0.6)
    chosen = tokens("x..xx.", ".xx...", "......")
    share = first_sentence_share(chosen, first.expand(3, 6), ALL.expand(3, 6))
    assert share.tolist() == pytest.approx([1 / 3, 1, 0])


def test_the_pick_is_the_sentence_of_the_top_word_not_of_the_largest_sum():
    """0.4 stands in sentence 2 though sentence 1 has 0.6; then 0.5 in sentence 1; then −0.9, which is heavy too."""
    weights = torch.tensor([[0.3, 0.3, 0.0, 0.4, 0, 0], [0.0, 0.5, 0, 0.3, 0.2, 0], [0.5, 0, 0, -0.9, 0, 0]])
    assert first_sentence_pick(weights, tokens("xxx...").expand(3, 6), ALL.expand(3, 6)).tolist() == [0, 1, 0]


def test_of_equally_heavy_words_none_comes_first():
    """Even weights choose no sentence: two of six words are in the first.  Of two top words, one is."""
    weights = torch.tensor([[1.0] * 6, [0.4, 0, 0, 0, 0.4, 0.2]])
    result = first_sentence_pick(weights, tokens("xx....").expand(2, 6), ALL.expand(2, 6))
    assert result.tolist() == pytest.approx([1 / 3, 1 / 2])
