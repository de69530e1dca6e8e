"""Random: numbers from the random key of the text, uniform and different from each other."""

import pytest
import torch

from contract.tiny import batch, cached_classifier, split
from steadygaze.explainers.random import Random

MANY = 400


def drawn(seed: int = 0) -> torch.Tensor:
    """The numbers of 400 texts of five words."""
    texts = batch(split(["wwwww"] * MANY))
    return Random(seed=seed).explain(cached_classifier("average"), texts).weights


def test_numbers_are_spread_evenly_from_0_to_1_in_every_place():
    """Of 400 uniform numbers the mean errs by √(1/12/400) = 0.0144, and each quarter holds 100 ± 8.7."""
    result = drawn()
    assert ((result >= 0) & (result < 1)).all()
    assert ((result.mean(0) - 0.5).abs() < 4 * 0.0144).all()
    for quarter in range(4):
        counts = ((result * 4).floor() == quarter).sum(0)
        assert ((counts - 100).abs() < 4 * 8.7).all()


def test_other_texts_and_other_seeds_draw_other_numbers():
    result = drawn()
    assert len(result.unique()) == result.numel()
    assert not (drawn(1) == result).any()
    agreement = torch.corrcoef(torch.stack([result.flatten(), drawn(1).flatten()]))[0, 1]
    assert agreement.item() == pytest.approx(0, abs=4 / (5 * MANY) ** 0.5)


def test_the_prediction_is_not_used():
    texts = batch(split())
    weights, other = (Random().explain(cached_classifier(kind), texts).weights for kind in ("bilstm", "cnn"))
    assert torch.equal(weights, other)
