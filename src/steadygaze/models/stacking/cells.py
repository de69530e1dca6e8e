"""Recurrent cells of several groups of networks in PyTorch, and their gradients.

    lstm   i, f, o = σ(a), g = tanh(a);   c = f·c′ + i·g;   h = o·tanh(c)
    gru    r, z = σ(x + u), n = tanh(x + r·u), u = h′Wᵀ + b;   h = (1 − z)·n + z·h′
    rnn    h = tanh(a)

    G groups   B texts   n gates   H hidden units   a = x + u: the parts of the input and of the earlier state h′

Gates are in the order of `torch.nn`.  h and c are 0 on padding.  fused_cells.py has the same functions in Triton.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass(frozen=True)
class Step:
    """Buffers of one step; the forward pass writes `saved`, `cell` and `hidden`."""

    mask: Tensor  # (G,B)
    saved: Tensor  # (G,B,4H): values for the backward pass
    cell: Tensor  # (G,B,H); lstm only
    hidden: Tensor  # (G,B,H)
    earlier_cell: Tensor  # (G,B,H)
    earlier: Tensor  # (G,B,H): the hidden state before the step


@dataclass(frozen=True)
class StepGradient:
    """Gradients of one step, which the backward pass writes."""

    x: Tensor  # (G,B,nH)
    u: Tensor  # (G,B,nH); the same tensor as `x`, except in a GRU
    earlier: Tensor  # (G,B,H): of the earlier hidden state without the part through `u`; gru only


def forward_cell(kind: str, x: Tensor, u: Tensor, bias: Tensor, step: Step) -> None:
    """x, u (G,B,nH): the parts of the input and of the state, without `bias` (G,nH) of the state."""
    u = u + bias.unsqueeze(1)
    mask = step.mask.unsqueeze(-1)
    if kind == "rnn":
        step.hidden.copy_((x + u).tanh() * mask)
        return
    if kind == "gru":
        (r, z), (x_n, u_n) = (a.sigmoid() for a in (x + u).chunk(3, -1)[:2]), (a.chunk(3, -1)[2] for a in (x, u))
        n = (x_n + r * u_n).tanh()
        step.saved.copy_(torch.cat([r, z, n, u_n], -1))
        step.hidden.copy_(((1 - z) * n + z * step.earlier) * mask)
        return
    i, f, g, o = (x + u).chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    step.saved.copy_(torch.cat([i, f, g, o], -1))
    step.cell.copy_((f * step.earlier_cell + i * g) * mask)
    step.hidden.copy_(o * step.cell.tanh() * mask)


def backward_cell(kind: str, d_output: Tensor, d_hidden: Tensor, d_cell: Tensor, step: Step, d: StepGradient) -> None:
    """Write the gradients of a step, and update `d_cell`.

    d_output + d_hidden, d_cell (G,B,H): the gradients of the states after the step.
    """
    mask = step.mask.unsqueeze(-1)
    d_hidden = (d_output + d_hidden) * mask
    if kind == "rnn":
        d.x.copy_(d_hidden * (1 - step.hidden.square()))
        return
    if kind == "gru":
        r, z, n, u_n = step.saved.chunk(4, -1)
        d_n = d_hidden * (1 - z) * (1 - n * n)
        d_r = d_n * u_n * r * (1 - r)
        d_z = d_hidden * (step.earlier - n) * z * (1 - z)
        d.x.copy_(torch.cat([d_r, d_z, d_n], -1))
        d.u.copy_(torch.cat([d_r, d_z, d_n * r], -1))
        d.earlier.copy_(d_hidden * z)
        return
    i, f, g, o = step.saved.chunk(4, -1)
    tanh = step.cell.tanh()
    d_c = (d_cell + d_hidden * o * (1 - tanh * tanh)) * mask
    d_i, d_f = d_c * g * i * (1 - i), d_c * step.earlier_cell * f * (1 - f)
    d_g, d_o = d_c * i * (1 - g * g), d_hidden * tanh * o * (1 - o)
    d.x.copy_(torch.cat([d_i, d_f, d_g, d_o], -1))
    d_cell.copy_(d_c * f)
