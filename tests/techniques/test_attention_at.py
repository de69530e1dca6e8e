"""Attention AT: worked by hand, uphill to first order, the clean loss counted once."""

import math

import pytest
import torch

from contract.tiny import ENCODER_NAMES, assert_close
from steadygaze.techniques.attention_at import AttentionAT
from techniques.byhand import EVEN, LN3, by_hand, real_model, shift_of, texts


def test_two_words_by_hand():
    """Words (0, 4 ln 3) and (0, 0): scores (0, 0), weights (½, ½), z = (0, 2 ln 3), p = 9/10, ℓ = ln(10/9).

    dz/ds_t = w_t (x_t − c) = ½ (± 2 ln 3), so that g is a multiple of (−1, 1): away from the word for the
    label.  ε = ln 3/√2 makes r = (−½ ln 3, ½ ln 3): weights (¼, ¾), z = (0, ln 3), p = 3/4, ℓ = ln(4/3).
    """
    model, batch = by_hand(EVEN), texts([1, 2])
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


def test_a_prediction_that_is_all_but_certain_is_still_moved():
    """p = 1 − 1e-13: the slope is tiny, its direction as good as any."""
    model, batch = by_hand([(0, 60.0), (0, 0)]), texts([1, 2])
    r, _ = shift_of(AttentionAT(epsilon=1.0), model, batch)
    assert_close(r, torch.tensor([[-(0.5**0.5), 0.5**0.5]], dtype=torch.float64))
