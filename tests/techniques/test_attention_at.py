"""Attention AT: worked by hand, uphill to first order, the clean loss counted once."""

import math

import pytest
import torch

from contract.tiny import ENCODER_NAMES, assert_close
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.vanilla import Vanilla
from techniques.byhand import assert_gradient, by_hand, loss, real_model, shift_of, task, texts

LN3 = math.log(3)


def test_two_words_by_hand():
    """Words (0, 4 ln 3) and (0, 0): scores (0, 0), weights (½, ½), z = (0, 2 ln 3), p = 9/10, ℓ = ln(10/9).

    dz/ds_t = w_t (x_t − c) = ½ (± 2 ln 3), so that g is a multiple of (−1, 1): away from the word for the
    label.  ε = ln 3/√2 makes r = (−½ ln 3, ½ ln 3): weights (¼, ¾), z = (0, ln 3), p = 3/4, ℓ = ln(4/3).
    """
    model, batch = by_hand([(0, 4 * LN3), (0, 0)]), texts([1, 2])
    r, terms = shift_of(AttentionAT(epsilon=LN3 / 2**0.5, weight=2.0), model, batch)
    assert_close(r, torch.tensor([[-LN3 / 2, LN3 / 2]], dtype=torch.float64))
    assert list(terms) == ["task", "adversarial"]
    assert terms["task"].item() == pytest.approx(math.log(10 / 9), abs=1e-12)
    assert terms["adversarial"].item() == pytest.approx(2 * math.log(4 / 3), abs=1e-12)


@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_the_perturbation_has_length_epsilon_and_leaves_specials_and_padding_alone(encoder):
    """A text of one word has no slope: its only weight is 1 whatever its score.  One of none neither."""
    model, batch = real_model(encoder)
    r, _ = shift_of(AttentionAT(epsilon=0.7), model, batch)
    lengths = torch.linalg.vector_norm(r, dim=-1)
    several = batch.mask.sum(-1) > 1
    assert_close(lengths[several], torch.full_like(lengths[several], 0.7))
    assert (lengths[~several] == 0).all()
    assert (r[~batch.mask] == 0).all()


def test_it_raises_the_loss_by_epsilon_times_the_slope_to_first_order():
    """(ℓ(s + r) − ℓ(s))/ε → ‖g‖ as ε → 0, the error falling with ε; and no other direction does better."""
    model, batch = real_model()
    slope = torch.zeros_like(batch.mask, dtype=torch.float64).requires_grad_()
    (g,) = torch.autograd.grad(task(model, batch, shift=slope).sum(), slope)
    steepest = torch.linalg.vector_norm(g, dim=-1)
    assert (steepest > 1e-4).sum() >= 3
    errors = []
    for epsilon in (1e-2, 1e-3):
        terms = loss(AttentionAT(epsilon=epsilon), model, batch)
        errors.append(((terms["adversarial"] - terms["task"]) / epsilon - steepest).abs().max().item())
    assert errors[1] < 0.2 * errors[0] < 1e-2
    terms = loss(AttentionAT(epsilon=1e-2), model, batch)
    for _ in range(20):
        n = torch.randn_like(g).masked_fill(~batch.mask, 0.0)
        n = 1e-2 * n / torch.linalg.vector_norm(n, dim=-1, keepdim=True).clamp_min(1e-30)
        assert (task(model, batch, shift=n) <= terms["adversarial"] + 1e-5).all()


@pytest.mark.parametrize("encoder", ["average", "bilstm"])
def test_the_clean_loss_counts_once_and_the_perturbation_is_a_constant(encoder):
    """The gradient is ∇ℓ(s) + λ ∇ℓ(s + r), r fixed; not 2∇ℓ(s) + λ ∇ℓ(s + r)."""
    model, batch = real_model(encoder)
    r, terms = shift_of(AttentionAT(epsilon=0.8, weight=0.7), model, batch)
    expected = task(model, batch) + 0.7 * task(model, batch, shift=r)
    assert_close(sum(terms.values()), expected)
    assert_gradient(model, sum(terms.values()).sum(), expected.sum())


def test_without_weight_or_length_it_is_vanilla():
    model, batch = real_model()
    plain = loss(Vanilla(), model, batch)["task"]
    without = loss(AttentionAT(weight=0), model, batch)
    assert_close(without["task"], plain)
    assert (without["adversarial"] == 0).all()
    assert_close(loss(AttentionAT(epsilon=0), model, batch)["adversarial"], plain)


def test_a_prediction_that_is_all_but_certain_is_still_moved():
    """p = 1 − 1e-13: the slope is tiny, its direction as good as any."""
    model, batch = by_hand([(0, 60.0), (0, 0)]), texts([1, 2])
    r, _ = shift_of(AttentionAT(epsilon=1.0), model, batch)
    assert_close(r, torch.tensor([[-(0.5**0.5), 0.5**0.5]], dtype=torch.float64))
