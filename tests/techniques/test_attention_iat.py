"""Attention iAT: each reading of Eq. 18 against the printed T×T formula, by automatic differentiation over α."""

import math

import pytest
import torch
from torch import Tensor

from contract.tiny import ENCODER_NAMES, assert_close
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.attention_iat import AttentionIAT, iat_direction
from techniques.byhand import EVEN, LN3, PEAKED, by_hand, loss, real_model, shift_of, task, texts

EPSILON = 0.6


def printed(model, batch) -> tuple[Tensor, Tensor]:
    """d̃ of Eq. 14 in loops, and G = ∂ℓ/∂α at α = 0 of Eq. 15–18.  (B,T,T) each"""
    scores = model(batch).scores.detach()
    d = torch.zeros(*scores.shape, scores.shape[1], dtype=torch.float64)
    for row in range(len(batch)):
        words = batch.mask[row].nonzero().flatten().tolist()
        for t in words:
            differences = [float(scores[row, t] - scores[row, k]) for k in words]
            length = math.sqrt(sum(value * value for value in differences))
            for k, value in zip(words, differences, strict=True):
                d[row, t, k] = value / length if length else 0.0
    alpha = torch.zeros_like(d).requires_grad_()
    (gradient,) = torch.autograd.grad(task(model, batch, shift=(alpha * d).sum(-1)).sum(), alpha)
    return d, gradient


def frobenius(g: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(g, dim=(1, 2), keepdim=True)
    return g / length.masked_fill(length == 0, 1.0)


@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_sentence_is_the_printed_formula_and_that_is_attention_at(encoder):
    """α = ε G/‖G‖_F, r_t = Σ_k α_tk d̃_tk."""
    model, batch = real_model(encoder)
    d, g = printed(model, batch)
    r, terms = shift_of(AttentionIAT(epsilon=EPSILON), model, batch)
    assert_close(r, EPSILON * (frobenius(g) * d).sum(-1))
    same = loss(AttentionAT(epsilon=EPSILON), real_model(encoder)[0], batch)
    assert torch.equal(terms["adversarial"], same["adversarial"])
    assert (r != 0).any()


@pytest.mark.parametrize("encoder", ["average", "bilstm"])
def test_word_is_the_formula_with_a_ball_for_each_word_and_that_is_a_sign(encoder):
    """α_t = ε G_t/‖G_t‖, so r_t = ε g_t ‖d̃_t‖²/|g_t| = ε sign(g_t).

    Undefined, 0/0, if all scores of a text are equal; there and in a text of one word only the sign is tested.
    """
    model, batch = real_model(encoder)
    d, g = printed(model, batch)
    length = torch.linalg.vector_norm(g, dim=2, keepdim=True)
    r, _ = shift_of(AttentionIAT(epsilon=EPSILON, variant="word"), model, batch)
    assert_close(r, EPSILON * (g / length.masked_fill(length == 0, 1.0) * d).sum(-1))
    words = batch.mask & (batch.mask.sum(-1, keepdim=True) > 1)
    assert_close(r.abs(), EPSILON * words.double())


@pytest.mark.parametrize("encoder", ["average", "bilstm"])
def test_literal_is_the_formula_that_gives_r_the_sum_of_g(encoder):
    """r_t = ε Σ_k G_tk / ‖G‖_F."""
    model, batch = real_model(encoder)
    _, g = printed(model, batch)
    r, _ = shift_of(AttentionIAT(epsilon=EPSILON, variant="literal"), model, batch)
    assert_close(r, EPSILON * frobenius(g).sum(-1))
    assert (r.sign() != g.sum(-1).sign()).sum() == 0
    assert r.abs().max() > 0


def test_released_lowers_the_loss_by_what_at_raises_it_to_first_order():
    model, batch = real_model()
    raised = loss(AttentionAT(epsilon=1e-4), model, batch)
    lowered = loss(AttentionIAT(epsilon=1e-4, variant="released"), model, batch)
    rise, fall = raised["adversarial"] - raised["task"], lowered["adversarial"] - lowered["task"]
    several = batch.mask.sum(-1) > 1
    assert (fall[several] < 0).all()
    torch.testing.assert_close(fall, -rise, rtol=1e-3, atol=1e-9)


def test_two_words_by_hand():
    """The model of test_attention_at: g is a multiple of (−1, 1), clean loss ln(10/9).

    word       ε = ½ ln 3: r = (−½ ln 3, ½ ln 3), weights (¼, ¾), ℓ = ln(4/3)
    released   ε = ln 3/√2: r = (½ ln 3, −½ ln 3), weights (¾, ¼), z = (0, 3 ln 3), ℓ = ln(28/27)
    literal    of two words d̃ = (0, 1) and (−1, 0), or both 0/0 where the scores are equal: r is 0, or a shift of both
               scores by the same, which changes nothing.  Here with scores (ln 3, 0): weights (¾, ¼), ℓ = ln(28/27)
    """
    batch = texts([1, 2])
    model = by_hand(EVEN)
    expected = {"word": (LN3 / 2, 4 / 3), "released": (LN3 / 2**0.5, 28 / 27), "literal": (5.0, 10 / 9)}
    for variant, (epsilon, value) in expected.items():
        terms = loss(AttentionIAT(epsilon=epsilon, variant=variant), model, batch)
        assert terms["adversarial"].item() == pytest.approx(math.log(value), abs=1e-12)
    uneven = by_hand(PEAKED)
    r, terms = shift_of(AttentionIAT(epsilon=5.0, variant="literal"), uneven, batch)
    assert_close(r, torch.full((1, 2), -5 / 2**0.5, dtype=torch.float64))
    assert terms["adversarial"].item() == pytest.approx(math.log(28 / 27), abs=1e-12)


def test_how_far_a_score_leans_by_hand():
    """Scores (0, 0, 3): d_1 = d_2 = (0, 0, −3), Σ d̃ = −1; d_3 = (3, 3, 0), Σ d̃ = 6/√18 = √2.  Padding has
    no effect."""
    scores = torch.tensor([[0.0, 0.0, 3.0, 9.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]])
    assert_close(iat_direction(scores, mask), torch.tensor([[-1, -1, 2**0.5, 0]], dtype=torch.float64))


@pytest.mark.parametrize("score", [0.1, 1e6 / 3, -7.7])
@pytest.mark.parametrize("words", [0, 1, 2, 3, 7])
def test_equal_scores_lean_nowhere(score, words):
    """0.1 + 0.1 + 0.1 is not 0.3: what a mean's rounding leaves must not pass for a difference."""
    scores = torch.full((1, 8), score, dtype=torch.float64)
    assert (iat_direction(scores, torch.arange(8).unsqueeze(0) < words) == 0).all()
