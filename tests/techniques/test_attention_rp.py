"""Attention RP: as long as Attention AT, in a direction that belongs to the text alone."""

import math

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey
from steadygaze.techniques.attention_rp import AttentionRP
from steadygaze.techniques.technique import LossContext
from techniques.byhand import EVEN, by_hand, handed, real_model, shift_of, texts, without_padding


class Chosen(RandomKey):
    """Nothing is random."""

    def normal(self, rows, *shape, dtype=torch.float32):
        return torch.tensor([[-3.0, 4.0, 7.0]], dtype=dtype)


def test_two_words_by_hand():
    """Words (0, 4 ln 3), (0, 0) and a pad; n = (−3, 4, 7), of which 7 falls on the pad: r = ε (−3, 4, 0)/5.

    ε = (5/7) ln 3: r_2 − r_1 = (7/5) ε = ln 3, weights (¼, ¾), z = (0, ln 3), ℓ = ln(4/3).
    """
    model, batch = by_hand(EVEN), texts([1, 2, 0])
    terms = AttentionRP(epsilon=5 / 7 * math.log(3)).loss(model, batch, LossContext(key=Chosen()))
    assert terms["task"].item() == pytest.approx(math.log(10 / 9), abs=1e-12)
    assert terms["adversarial"].item() == pytest.approx(math.log(4 / 3), abs=1e-12)


def test_the_perturbation_has_length_epsilon_and_leaves_specials_and_padding_alone():
    model, batch = real_model()
    r, _ = shift_of(AttentionRP(epsilon=0.7), model, batch)
    words = batch.mask.any(-1)
    assert_close(torch.linalg.vector_norm(r, dim=-1), 0.7 * words.double())
    assert (r[~batch.mask] == 0).all()


def test_a_text_has_the_same_noise_whatever_the_batch():
    model, batch = real_model()
    whole, _ = shift_of(AttentionRP(), model, batch)
    for row in range(len(batch)):
        alone = without_padding(batch, row)
        r, _ = shift_of(AttentionRP(), real_model()[0], alone)
        assert_close(r[0], whole[row, : r.shape[1]])


def test_texts_and_steps_have_noise_of_their_own_in_all_directions():
    """Over 4,000 texts of three words the mean direction is 0 and each coordinate's share of the length a third."""
    model, batch = by_hand([(0, 1), (0, 2), (0, 3)]), texts(*[[1, 2, 3]] * 4000)
    technique = AttentionRP(epsilon=1.0)
    r, _ = shift_of(technique, model, batch)
    assert r.unique(dim=0).shape == r.shape
    assert r.mean(0).abs().max() < 0.04
    assert (r.square().mean(0) - 1 / 3).abs().max() < 0.02
    inputs = handed(technique, model, batch)
    later = LossContext(key=inputs.key.child(1), epoch_tables=inputs.epoch_tables)
    terms, other = technique.loss(model, batch, inputs), technique.loss(model, batch, later)
    assert (terms["adversarial"] != other["adversarial"]).float().mean() > 0.99
