"""LIME: the same line as scikit-learn's and Captum's on the same subsets, and right where the answer is known."""

import math

import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge
from sklearn.linear_model import Ridge

from contract.tiny import assert_close, batch, cached_classifier, split
from explainers.worked import WORTH, Line, captum_weights, game, random_texts, row, subsets_of, texts
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers.lime import Lime, regression, subsets


def test_lime_without_ridge_recovers_a_linear_model():
    """Without a ridge the fit is exact, whatever was drawn: short texts (all subsets) and a long one (some)."""
    words = texts([1, 2, 4], [6, 3], [1, 2, 3, 4, 5, 6, 1, 2, 3])
    result = Lime(ridge=0, samples=64).explain(Line(), words, torch.tensor([1, 0, 1])).weights
    expected = torch.tensor(WORTH, dtype=torch.float64)[words.ids] * torch.tensor([[1.0], [-1.0], [1.0]]) * words.mask
    assert_close(result, expected, torch.float32)


def test_a_ridge_draws_all_weights_to_0_in_the_right_order_and_sign():
    words = texts([1, 2, 4, 6, 5])
    exact, drawn = (Lime(ridge=ridge).explain(Line(), words, torch.tensor([1])).weights[0] for ridge in (0.0, 1.0))
    assert torch.equal(exact.sign(), drawn.sign())
    assert torch.equal(exact.argsort(), drawn.argsort())
    assert (drawn.abs() < exact.abs()).all()
    assert (drawn.abs() > 0.9 * exact.abs()).all()


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
def test_a_short_text_gets_the_line_of_scikit_learn_through_all_its_subsets(encoder):
    """Every size is as likely, so a subset of k of n words counts 1000 / (n+1) / C(n,k), times its nearness."""
    model, words = cached_classifier(encoder), batch(split())
    result = Lime().explain(model, words, torch.full((len(words),), 1)).weights
    for place in (0, 2, 5):
        text = row(words, place)
        n, value = int(text.mask.sum()), game(model, text, 1)
        kept = subsets_of(n)
        z = np.array([[t in some for t in range(n)] for some in kept], float)
        near = [math.exp(-((1 - math.sqrt(len(some) / n)) ** 2) / 0.125) for some in kept]
        weight = [1000 / (n + 1) / math.comb(n, len(some)) * near for some, near in zip(kept, near, strict=True)]
        line = Ridge(alpha=1.0).fit(z, [value(some) for some in kept], sample_weight=weight)
        np.testing.assert_allclose(result[place][words.mask[place]].numpy(), line.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_captum_makes_the_same_line_of_the_same_subsets_of_a_long_text():
    """Captum keeps inputs, answers and weights in single precision."""
    model, words = cached_classifier("bilstm"), random_texts(12)
    result = Lime(samples=200).explain(model, words, torch.tensor([2])).weights[0, 1:]
    drawn = subsets(words, lambda k, _: torch.ones_like(k), 200, RandomKey(0).child(1)).masks[0]
    value = game(model, words, 2)

    def near(_, __, z):
        return math.exp(-((1 - math.sqrt(z.sum().item() / 12)) ** 2) / 0.125)

    theirs = captum_weights(value, drawn.double(), SkLearnRidge(alpha=1.0), near)
    torch.testing.assert_close(result, theirs.double(), rtol=1e-3, atol=1e-6)


def test_more_subsets_bring_two_seeds_together():
    model, words = cached_classifier("bilstm"), random_texts(14)
    few, many = (
        (Lime(samples=n, seed=1).explain(model, words).weights - Lime(samples=n).explain(model, words).weights).norm()
        for n in (64, 4096)
    )
    assert many < few / 3


def test_a_place_that_never_varies_gets_nothing():
    z = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    assert_close(
        regression(z, torch.tensor([[3.0, 1.0]]).double(), torch.ones(1, 2).double(), 0.0),
        torch.tensor([[2.0, 0.0]]).double(),
    )
