"""On how many words an attention rests."""

import math

import pytest
import torch

from steadygaze.core.maths import collapse
from steadygaze.properties.measures import stability_measures


def test_half_of_four_words_is_half_as_even_as_all_four():
    """H(½, ½) / ln 4 = ln 2 / (2 ln 2) = ½."""
    w = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.25] * 4])
    assert stability_measures.normalized_entropy(w, torch.ones(2, 4, dtype=torch.bool)).tolist() == pytest.approx(
        [0.5, 1.0]
    )


def test_the_distance_of_all_weight_on_one_word_grows_to_ln_2_with_the_text():
    """One-hot against 1/n: m = (1 + 1/n)/2 on the word.  At n = 2: ½ ln(4/3) + ½(½ ln(2/3) + ½ ln 2)."""
    near = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    expected = (math.log(4 / 3) + (math.log(2 / 3) + math.log(2)) / 2) / 2
    assert stability_measures.distance_to_uniform(near, torch.ones(1, 2, dtype=torch.bool)).item() == pytest.approx(
        expected
    )
    far = torch.zeros(1, 10_000, dtype=torch.float64)
    far[0, 5] = 1
    distance = stability_measures.distance_to_uniform(far, torch.ones(1, 10_000, dtype=torch.bool)).item()
    assert 0.999 * math.log(2) < distance < math.log(2)


def test_they_are_the_numbers_that_detect_collapse():
    assert (stability_measures.normalized_entropy, stability_measures.distance_to_uniform) == (
        collapse.normalized_entropy,
        collapse.distance_to_uniform,
    )


@pytest.mark.parametrize(("kind", "expected"), [("even", 1.0), ("first", 1.0), ("last", 1.0), ("free", 0.0)])
def test_weights_that_do_not_depend_on_the_text_have_collapsed(kind, expected):
    """Twelve texts of two to thirteen words: all alike, all on the first word, all on the last, or as it comes."""
    mask = torch.arange(13) < torch.arange(2, 14).unsqueeze(-1)
    scores = torch.zeros(12, 13, dtype=torch.float64) if kind != "free" else 3 * torch.randn(12, 13).double()
    if kind in ("first", "last"):
        scores.scatter_(-1, (mask.sum(-1, keepdim=True) - 1) * (kind == "last"), 9.0)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    assert stability_measures.attention_collapse(weights, mask, torch.randint(9, mask.shape)) == expected


def test_copies_of_one_text_cannot_show_constant_attention():
    """Twelve texts with all weight on the first word: constant if the texts differ, unknown if they are copies."""
    mask = torch.ones(12, 6, dtype=torch.bool)
    weights = torch.tensor([0.9, *[0.02] * 5], dtype=torch.float64).repeat(12, 1)
    texts = torch.arange(72).view(12, 6)
    assert stability_measures.attention_collapse(weights, mask, texts) == 1
    assert stability_measures.attention_collapse(weights, mask, texts[:1].repeat(12, 1)) == 0


def test_texts_of_one_word_cannot_collapse():
    weights = torch.ones(3, 1)
    with pytest.raises(ValueError, match="at least two words"):
        stability_measures.attention_collapse(weights, weights.bool(), weights.long())
