"""Recurrent cells as Triton kernels: one launch per step instead of ten.

The same functions as in cells.py.  A program computes some hidden units of one text of one group.
"""

from typing import Any

import triton  # type: ignore[import-not-found]
import triton.language as tl  # type: ignore[import-not-found]
from torch import Tensor

from steadygaze.models.stacking.cells import Step, StepGradient


@triton.jit
def _sigmoid(a):  # type: ignore[no-untyped-def]
    return 1 / (1 + tl.exp(-a))


@triton.jit
def _tanh(a):  # type: ignore[no-untyped-def]
    e = tl.exp(-2 * tl.abs(a))
    return tl.where(a < 0, -1.0, 1.0) * (1 - e) / (1 + e)


@triton.jit  # type: ignore[untyped-decorator]
def _lstm_forward(  # type: ignore[no-untyped-def]
    x, u, bias, mask, saved, cell, hidden, earlier,
    x_g, x_b, u_g, u_b, m_g, m_b, s_g, s_b, c_g, c_b, h_g, h_b, e_g, e_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    x_row, u_row, bias_row = x + g * x_g + b * x_b + k, u + g * u_g + b * u_b + k, bias + g * 4 * size + k
    i = _sigmoid(tl.load(x_row, inside, 0) + tl.load(u_row, inside, 0) + tl.load(bias_row, inside, 0))
    f = _sigmoid(
        tl.load(x_row + size, inside, 0) + tl.load(u_row + size, inside, 0) + tl.load(bias_row + size, inside, 0)
    )
    n = _tanh(
        tl.load(x_row + 2 * size, inside, 0)
        + tl.load(u_row + 2 * size, inside, 0)
        + tl.load(bias_row + 2 * size, inside, 0)
    )
    o = _sigmoid(
        tl.load(x_row + 3 * size, inside, 0)
        + tl.load(u_row + 3 * size, inside, 0)
        + tl.load(bias_row + 3 * size, inside, 0)
    )
    c = (f * tl.load(earlier + g * e_g + b * e_b + k, inside, 0) + i * n) * m
    saved_row = saved + g * s_g + b * s_b + k
    tl.store(saved_row, i, inside)
    tl.store(saved_row + size, f, inside)
    tl.store(saved_row + 2 * size, n, inside)
    tl.store(saved_row + 3 * size, o, inside)
    tl.store(cell + g * c_g + b * c_b + k, c, inside)
    tl.store(hidden + g * h_g + b * h_b + k, o * _tanh(c) * m, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _lstm_backward(  # type: ignore[no-untyped-def]
    d_output, d_hidden, d_cell, mask, saved, cell, earlier, d_x,
    o_g, o_b, h_g, h_b, q_g, q_b, m_g, m_b, s_g, s_b, c_g, c_b, e_g, e_b, x_g, x_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    row = saved + g * s_g + b * s_b + k
    i, f = tl.load(row, inside, 0), tl.load(row + size, inside, 0)
    n, o = tl.load(row + 2 * size, inside, 0), tl.load(row + 3 * size, inside, 0)
    tanh = _tanh(tl.load(cell + g * c_g + b * c_b + k, inside, 0))
    d_h = tl.load(d_output + g * o_g + b * o_b + k, inside, 0) + tl.load(d_hidden + g * h_g + b * h_b + k, inside, 0)
    d_h = d_h * m
    q = d_cell + g * q_g + b * q_b + k
    d_c = (tl.load(q, inside, 0) + d_h * o * (1 - tanh * tanh)) * m
    out = d_x + g * x_g + b * x_b + k
    tl.store(out, d_c * n * i * (1 - i), inside)
    tl.store(out + size, d_c * tl.load(earlier + g * e_g + b * e_b + k, inside, 0) * f * (1 - f), inside)
    tl.store(out + 2 * size, d_c * i * (1 - n * n), inside)
    tl.store(out + 3 * size, d_h * tanh * o * (1 - o), inside)
    tl.store(q, d_c * f, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _gru_forward(  # type: ignore[no-untyped-def]
    x, u, bias, mask, saved, hidden, earlier,
    x_g, x_b, u_g, u_b, m_g, m_b, s_g, s_b, h_g, h_b, e_g, e_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    x_row, u_row, bias_row = x + g * x_g + b * x_b + k, u + g * u_g + b * u_b + k, bias + g * 3 * size + k
    r = _sigmoid(tl.load(x_row, inside, 0) + tl.load(u_row, inside, 0) + tl.load(bias_row, inside, 0))
    z = _sigmoid(
        tl.load(x_row + size, inside, 0) + tl.load(u_row + size, inside, 0) + tl.load(bias_row + size, inside, 0)
    )
    u_n = tl.load(u_row + 2 * size, inside, 0) + tl.load(bias_row + 2 * size, inside, 0)
    n = _tanh(tl.load(x_row + 2 * size, inside, 0) + r * u_n)
    saved_row = saved + g * s_g + b * s_b + k
    tl.store(saved_row, r, inside)
    tl.store(saved_row + size, z, inside)
    tl.store(saved_row + 2 * size, n, inside)
    tl.store(saved_row + 3 * size, u_n, inside)
    h = (1 - z) * n + z * tl.load(earlier + g * e_g + b * e_b + k, inside, 0)
    tl.store(hidden + g * h_g + b * h_b + k, h * m, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _gru_backward(  # type: ignore[no-untyped-def]
    d_output, d_hidden, mask, saved, earlier, d_x, d_u, d_earlier,
    o_g, o_b, h_g, h_b, m_g, m_b, s_g, s_b, e_g, e_b, x_g, x_b, u_g, u_b, p_g, p_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    row = saved + g * s_g + b * s_b + k
    r, z = tl.load(row, inside, 0), tl.load(row + size, inside, 0)
    n, u_n = tl.load(row + 2 * size, inside, 0), tl.load(row + 3 * size, inside, 0)
    d_h = tl.load(d_output + g * o_g + b * o_b + k, inside, 0) + tl.load(d_hidden + g * h_g + b * h_b + k, inside, 0)
    d_h = d_h * m
    d_n = d_h * (1 - z) * (1 - n * n)
    d_r = d_n * u_n * r * (1 - r)
    d_z = d_h * (tl.load(earlier + g * e_g + b * e_b + k, inside, 0) - n) * z * (1 - z)
    x_row, u_row = d_x + g * x_g + b * x_b + k, d_u + g * u_g + b * u_b + k
    tl.store(x_row, d_r, inside)
    tl.store(x_row + size, d_z, inside)
    tl.store(x_row + 2 * size, d_n, inside)
    tl.store(u_row, d_r, inside)
    tl.store(u_row + size, d_z, inside)
    tl.store(u_row + 2 * size, d_n * r, inside)
    tl.store(d_earlier + g * p_g + b * p_b + k, d_h * z, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _rnn_forward(  # type: ignore[no-untyped-def]
    x, u, bias, mask, hidden,
    x_g, x_b, u_g, u_b, m_g, m_b, h_g, h_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    a = tl.load(x + g * x_g + b * x_b + k, inside, 0) + tl.load(u + g * u_g + b * u_b + k, inside, 0)
    a = a + tl.load(bias + g * size + k, inside, 0)
    tl.store(hidden + g * h_g + b * h_b + k, _tanh(a) * m, inside)


@triton.jit  # type: ignore[untyped-decorator]
def _rnn_backward(  # type: ignore[no-untyped-def]
    d_output, d_hidden, mask, hidden, d_x,
    o_g, o_b, h_g, h_b, m_g, m_b, s_g, s_b, x_g, x_b,
    texts, size: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    g, b = tl.program_id(0) // texts, tl.program_id(0) % texts
    k = tl.program_id(1) * block + tl.arange(0, block)
    inside = k < size
    m = tl.load(mask + g * m_g + b * m_b)
    d_h = tl.load(d_output + g * o_g + b * o_b + k, inside, 0) + tl.load(d_hidden + g * h_g + b * h_b + k, inside, 0)
    h = tl.load(hidden + g * s_g + b * s_b + k, inside, 0)
    tl.store(d_x + g * x_g + b * x_b + k, d_h * m * (1 - h * h), inside)


def forward_cell(kind: str, x: Tensor, u: Tensor, bias: Tensor, step: Step) -> None:
    kernel, further = {
        "lstm": (_lstm_forward, (step.mask, step.saved, step.cell, step.hidden, step.earlier_cell)),
        "gru": (_gru_forward, (step.mask, step.saved, step.hidden, step.earlier)),
        "rnn": (_rnn_forward, (step.mask, step.hidden)),
    }[kind]
    _launch(kernel, step.hidden, (x, u, bias, *further), (x, u, *further))


def backward_cell(kind: str, d_output: Tensor, d_hidden: Tensor, d_cell: Tensor, step: Step, d: StepGradient) -> None:
    kernel, further = {
        "lstm": (_lstm_backward, (d_cell, step.mask, step.saved, step.cell, step.earlier_cell, d.x)),
        "gru": (_gru_backward, (step.mask, step.saved, step.earlier, d.x, d.u, d.earlier)),
        "rnn": (_rnn_backward, (step.mask, step.hidden, d.x)),
    }[kind]
    values = d_output, d_hidden, *further
    _launch(kernel, step.hidden, values, values)


def _launch(kernel: Any, hidden: Tensor, tensors: tuple[Tensor, ...], strided: tuple[Tensor, ...]) -> None:
    """Start one program per group, text and block of hidden units; the last axis of every tensor is contiguous."""
    groups, texts, size = hidden.shape
    block = min(triton.next_power_of_2(size), 256)
    strides = [stride for tensor in strided for stride in tensor.stride()[:2]]
    kernel[(groups * texts, triton.cdiv(size, block))](*tensors, *strides, texts, size=size, block=block, num_warps=2)
