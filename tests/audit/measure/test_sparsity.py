"""On how many words an attention rests."""

import math

import pytest
import torch

from steadygaze.audit.measure import sparsity
from steadygaze.maths import collapse


def test_half_of_four_words_is_half_as_even_as_all_four():
    """H(½, ½) / ln 4 = ln 2 / (2 ln 2) = ½."""
    w = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.25] * 4])
    assert sparsity.evenness(w, torch.ones(2, 4, dtype=torch.bool)).tolist() == pytest.approx([0.5, 1.0])


def test_the_distance_of_all_weight_on_one_word_grows_to_ln_2_with_the_text():
    """One-hot against 1/n: m = (1 + 1/n)/2 on the word.  At n = 2: ½ ln(4/3) + ½(½ ln(2/3) + ½ ln 2)."""
    near = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    expected = (math.log(4 / 3) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    assert sparsity.from_uniform(near, torch.ones(1, 2, dtype=torch.bool)).item() == pytest.approx(expected)
    far = torch.zeros(1, 10_000, dtype=torch.float64)
    far[0, 5] = 1
    distance = sparsity.from_uniform(far, torch.ones(1, 10_000, dtype=torch.bool)).item()
    assert 0.999 * math.log(2) < distance < math.log(2)


def test_they_are_the_ones_that_judge_collapse():
    assert (sparsity.evenness, sparsity.from_uniform) == (collapse.evenness, collapse.from_uniform)
