"""What every attention map promises: a distribution over the words, exactly 0 elsewhere, blind to all but the words."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.tiny import assert_close
from steadygaze.models.attention_layers import ATTENTIONS

ATTENTION = pytest.mark.parametrize("name", ATTENTIONS)
FEW = settings(max_examples=30, deadline=None)
DEAF = {"uniform"}
"""Maps that listen to no score."""


@st.composite
def masked_scores(draw):
    """(B,T) scores of up to ±50 and a mask of any shape, rows without words among them."""
    size = draw(st.tuples(st.integers(1, 4), st.integers(1, 7)))
    seed, scale = draw(st.integers(0, 2**31)), draw(st.sampled_from([0.1, 1.0, 50.0]))
    random = torch.Generator().manual_seed(seed)
    scores = (2 * torch.rand(size, generator=random, dtype=torch.float64) - 1) * scale
    return scores, torch.rand(size, generator=random) < draw(st.sampled_from([0.2, 0.6, 1.0]))


@ATTENTION
@FEW
@given(masked_scores())
def test_weights_sum_to_one_over_the_words_and_are_exactly_zero_elsewhere(name, drawn):
    scores, mask = drawn
    weights = ATTENTIONS[name]()(scores, mask)
    assert weights.shape == scores.shape
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    assert_close(weights.sum(-1), mask.any(-1).double())


@ATTENTION
@FEW
@given(masked_scores())
def test_masked_scores_are_as_if_they_were_not_there(name, drawn):
    scores, mask = drawn
    weights = ATTENTIONS[name]()(scores, mask)
    for row, real, result in zip(scores, mask, weights, strict=True):
        alone = row[real].unsqueeze(0)
        if real.any():
            assert_close(result[real], ATTENTIONS[name]()(alone, torch.ones_like(alone, dtype=torch.bool))[0])


@ATTENTION
@FEW
@given(masked_scores(), st.randoms(use_true_random=False))
def test_it_commutes_with_a_permutation_of_the_tokens(name, drawn, random):
    scores, mask = drawn
    order = torch.tensor(random.sample(range(scores.shape[1]), scores.shape[1]))
    attention = ATTENTIONS[name]()
    assert_close(attention(scores[:, order], mask[:, order]), attention(scores, mask)[:, order])


@ATTENTION
@FEW
@given(masked_scores(), st.floats(-30, 30))
def test_a_constant_added_to_all_scores_changes_nothing_and_order_is_kept(name, drawn, shift):
    scores, mask = drawn
    weights = ATTENTIONS[name]()(scores, mask)
    torch.testing.assert_close(ATTENTIONS[name]()(scores + shift, mask), weights, rtol=1e-10, atol=1e-10)
    higher = (scores[:, :, None] > scores[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    assert (weights[:, :, None] - weights[:, None, :])[higher].ge(0).all()


@ATTENTION
def test_the_gradient_through_the_mask_is_right_and_zero_outside_it(name):
    mask = torch.tensor([[True, True, False, True, False], [False] * 5, [False, False, True, False, False], [True] * 5])
    scores = torch.rand(4, 5, dtype=torch.float64).div(3).requires_grad_()  # so close that no map leaves a word out
    attention = ATTENTIONS[name]()
    assert torch.autograd.gradcheck(lambda s: attention(s, mask), scores)
    (gradient,) = torch.autograd.grad((attention(scores, mask) * torch.randn(4, 5)).sum(), scores)
    assert not gradient[~mask].any()
    assert gradient[0].any() == (name not in DEAF)


@ATTENTION
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_low_precision_and_huge_scores_stay_finite(name, dtype):
    scores = torch.tensor([[3e4, -3e4, 3e4, 0.0], [-3e4, -3e4, 3e4, 0.0]], dtype=dtype).requires_grad_()
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    weights = ATTENTIONS[name]()(scores, mask)
    first = [1 / 3] * 3 if name in DEAF else [0.5, 0, 0.5]
    torch.testing.assert_close(weights.double(), torch.tensor([[*first, 0], [0.5, 0.5, 0, 0]]).double())
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()


@ATTENTION
def test_one_word_gets_all_and_equal_scores_share_alike(name):
    attention = ATTENTIONS[name]()
    assert attention(torch.tensor([[5.0, -3.0]]), torch.tensor([[False, True]])).tolist() == [[0.0, 1.0]]
    assert attention(torch.zeros(1, 5), torch.tensor([[True] * 4 + [False]])).tolist() == [[0.25] * 4 + [0.0]]
