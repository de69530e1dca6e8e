"""The convolution of the networks for texts is that of torch."""

import pytest
import torch
from torch import nn

from steadygaze.explainers.learned.text_networks import WIDTH, _convolved


@pytest.mark.parametrize("words", [1, 2, 7])
def test_the_matrix_product_of_windows_equals_conv1d_with_its_gradients(words: int) -> None:
    torch.manual_seed(0)
    kernel = nn.Conv1d(5, 4, WIDTH, padding="same").double()
    hidden = torch.randn(3, words, 5, dtype=torch.float64, requires_grad=True)
    present = torch.rand(3, words) < 0.7
    weights = torch.randn(3, words, 4, dtype=torch.float64)
    expected = kernel(hidden.transpose(1, 2)).relu().transpose(1, 2) * present.unsqueeze(-1)
    ours = _convolved(kernel, hidden, present)
    torch.testing.assert_close(ours, expected)
    inputs = [hidden, *kernel.parameters()]
    for gradient, reference in zip(
        torch.autograd.grad((ours * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(gradient, reference)
