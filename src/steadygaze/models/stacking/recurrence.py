"""Recurrent layers of several models: batched matrix products and one fused cell per step.

    G groups: models × directions   S steps   B texts   n gates   H hidden units

    a_s = x_s + h_{s−1} Wᵀ + b        x_s: the input's part of the gates, computed for all steps at once
    h_s = m_s · cell(a_s, state)      m_s: 1 on a real token, 0 on padding, so that a state is 0 outside its text

A direction that reads backward gets its steps in reverse order: padding comes
first, and its state stays 0.
A group is one matrix of a batched product.  cuDNN has no call for several networks with different weights.

The backward pass goes through the steps once; the gradients of the weights are products over all steps.
On CUDA a cell is one Triton kernel (fused_cells.py); elsewhere it is written in PyTorch (cells.py).
Equal to torch.nn.LSTM, GRU and RNN: tests/models/stacking/test_recurrence.py.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from steadygaze.models.stacking import cells
from steadygaze.models.stacking.cells import GATES, Step, StepGradient


def _cells(tensor: Tensor) -> ModuleType:
    """Return the implementation of the cells for the device of a tensor."""
    if tensor.is_cuda and find_spec("triton") is not None:
        from steadygaze.models.stacking import fused_cells

        return fused_cells
    return cells


class Recurrence(torch.autograd.Function):
    """(G,S,B,nH), (G,nH,H), (G,nH), (G,S,B) -> (G,S,B,H)"""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor, kind: str) -> Tensor:
        groups, steps, texts, _ = x.shape
        size = weight.shape[-1]
        zeros = x.new_zeros((groups, 1, texts, size))
        hidden = x.new_empty((groups, steps, texts, size))
        cell = torch.empty_like(hidden) if kind == "lstm" else zeros.expand_as(hidden)
        saved = hidden if kind == "rnn" else x.new_empty((groups, steps, texts, 4 * size))
        buffers = mask.to(x.dtype), saved, cell, hidden
        u = x.new_empty((groups, texts, x.shape[-1]))
        transposed, device_cells = weight.transpose(1, 2), _cells(x)
        for s in range(steps):
            step = _step(s, buffers, zeros)
            torch.bmm(step.earlier, transposed, out=u)
            device_cells.forward_cell(kind, x[:, s], u, bias, step)
        ctx.save_for_backward(weight, *buffers)
        ctx.kind = kind
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor | None, ...]:
        weight, *buffers = ctx.saved_tensors
        kind, hidden = ctx.kind, buffers[-1]
        groups, steps, texts, size = hidden.shape
        zeros = hidden.new_zeros((groups, 1, texts, size))
        d_x = hidden.new_empty((groups, steps, texts, GATES[kind] * size))
        d_u = torch.empty_like(d_x) if kind == "gru" else d_x
        d_hidden, d_cell, direct = (torch.zeros_like(zeros[:, 0]) for _ in range(3))
        device_cells = _cells(hidden)
        for s in reversed(range(steps)):
            gradient = StepGradient(d_x[:, s], d_u[:, s], direct)
            device_cells.backward_cell(kind, d_output[:, s], d_hidden, d_cell, _step(s, buffers, zeros), gradient)
            if kind == "gru":
                torch.baddbmm(direct, gradient.u, weight, out=d_hidden)
            else:
                torch.bmm(gradient.u, weight, out=d_hidden)
        # The state before the first step is 0.
        later, earlier = (values.flatten(1, 2) for values in (d_u[:, 1:], hidden[:, :-1]))
        return d_x, torch.bmm(later.transpose(1, 2), earlier), d_u.sum((1, 2)), None, None


def _step(s: int, buffers: Sequence[Tensor], zeros: Tensor) -> Step:
    """Return the buffers of a step."""
    mask, saved, cell, hidden = buffers
    earlier = (cell[:, s - 1], hidden[:, s - 1]) if s else (zeros[:, 0], zeros[:, 0])
    return Step(mask[:, s], saved[:, s], cell[:, s], hidden[:, s], *earlier)


def recur(kind: str, x: Tensor, weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    """Return the hidden states of every step.

    x (G,S,B,nH): the input's part of the gates, with its bias; weight (G,nH,H) and bias (G,nH) of the state; mask
    (G,S,B): True on real tokens.  -> (G,S,B,H)
    """
    hidden: Tensor = Recurrence.apply(x, weight, bias, mask, kind)  # type: ignore[no-untyped-call]
    return hidden
