"""Weights that make labels independent of masks, of labels that are certain and of probabilities."""

import pytest
import torch

from steadygaze.core.maths import label_leakage

HALF = torch.tensor([0.5, 0.5], dtype=torch.float64)


def soft(first: float) -> torch.Tensor:
    return torch.tensor([[first, 1 - first], [1 - first, first]], dtype=torch.float64)


def test_where_the_mask_decides_certain_labels_all_weights_are_one() -> None:
    """P(y|m) = 1 of every label that is seen: ½ / 1 each, which average ½."""
    label = soft(1.0)
    inputs = label_leakage.mask_neutral_weights(HALF, soft(1 - 1e-12).log(), label)
    torch.testing.assert_close((inputs * label).sum(-1), torch.ones(2, dtype=torch.float64), atol=1e-9, rtol=0)


def test_where_the_mask_decides_probabilities_it_is_worth_nothing() -> None:
    """p = (.9, .1): w = (.5/.9, .5/.1) = (.556, 5), so that w p = (.5, .5), the prior."""
    target = soft(0.9)
    inputs = label_leakage.mask_neutral_weights(HALF, target.log(), target)
    torch.testing.assert_close(inputs, torch.tensor([[5 / 9, 5.0], [5.0, 5 / 9]], dtype=torch.float64))
    torch.testing.assert_close(inputs * target, torch.full((2, 2), 0.5, dtype=torch.float64))


def test_a_clip_leaves_the_code_of_a_sure_black_box_as_it_is() -> None:
    """p = (.999, .001): w = (.5005, 500) is cut to (.5005, 10), and w p = (.5, .01), scaled to a sum of one."""
    target = soft(0.999)
    cut = label_leakage.mask_neutral_weights(HALF, target.log(), target)[0] * target[0]
    torch.testing.assert_close(cut, torch.tensor([0.5, 0.01], dtype=torch.float64) / 0.51)
    wide = label_leakage.mask_neutral_weights(HALF, target.log(), target, 1e-6, 1e6)[0] * target[0]
    torch.testing.assert_close(wide, torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_examples_of_a_batch_weigh_one_on_average() -> None:
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(50, 3, generator=generator, dtype=torch.float64).softmax(-1)
    inputs = torch.rand(50, 3, generator=generator, dtype=torch.float64).log_softmax(-1)
    result = label_leakage.mask_neutral_weights(torch.full((3,), 1 / 3, dtype=torch.float64), inputs, target)
    assert float((result * target).sum(-1).mean()) == pytest.approx(1.0, abs=1e-12)
