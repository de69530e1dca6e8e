"""Stacked recurrences against torch.nn's networks with the same weights: values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from contract.tiny import assert_close
from steadygaze.models.stacking.recurrence import recur

NETWORKS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
PARAMETERS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def networks(kind: str, groups: int, size: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [NETWORKS[kind](3, size, batch_first=True).double() for _ in range(groups)]


def stacked_parameters(group: list[nn.Module]) -> list[Tensor]:
    return [torch.stack([getattr(net, name).detach() for net in group]).requires_grad_() for name in PARAMETERS]


def ragged_mask(lengths: list[list[int]]) -> Tensor:
    """(G,S,B)"""
    sizes = torch.tensor(lengths)
    return torch.arange(int(sizes.max()))[None, :, None] < sizes[:, None]


@pytest.mark.parametrize("kind", NETWORKS)
@settings(max_examples=8, deadline=None)
@given(lengths=st.lists(st.lists(st.integers(1, 6), min_size=3, max_size=3), min_size=1, max_size=3))
def test_states_and_gradients_are_those_of_torchs_networks(kind, lengths):
    group, mask = networks(kind, len(lengths), 4), ragged_mask(lengths)
    values = torch.randn(*mask.shape, 3, dtype=torch.float64, requires_grad=True)
    w_x, w_h, b_x, b_h = parameters = stacked_parameters(group)
    states = recur(kind, torch.einsum("gsbe,gne->gsbn", values, w_x) + b_x[:, None, None], w_h, b_h, mask)
    outputs = [net(values[g].transpose(0, 1))[0].transpose(0, 1) for g, net in enumerate(group)]
    expected = torch.stack(outputs) * mask.unsqueeze(-1)
    assert_close(states, expected)
    scale = torch.randn_like(states)
    gradients = torch.autograd.grad((states * scale).sin().sum(), [values, *parameters])
    own = [getattr(net, name) for name in PARAMETERS for net in group]
    right = torch.autograd.grad((expected * scale).sin().sum(), [values, *own])
    assert_close(gradients[0], right[0])
    for number, gradient in enumerate(gradients[1:]):
        assert_close(gradient, torch.stack(right[1 + number * len(group) :][: len(group)]))


def test_steps_before_the_text_leave_the_state_at_zero():
    """A backward direction reads padding first."""
    group = networks("lstm", 1, 4)
    w_x, w_h, b_x, b_h = stacked_parameters(group)
    values = torch.randn(1, 5, 1, 3, dtype=torch.float64)
    mask = torch.tensor([False, False, True, True, True]).view(1, 5, 1)
    states = recur("lstm", torch.einsum("gsbe,gne->gsbn", values, w_x) + b_x[:, None, None], w_h, b_h, mask)
    assert not states[:, :2].any()
    assert_close(states[0, 2:, 0], group[0](values[0, 2:].transpose(0, 1))[0][0])
