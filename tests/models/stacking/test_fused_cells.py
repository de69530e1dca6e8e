"""Triton kernels against the cells in PyTorch; on a GPU, or with TRITON_INTERPRET=1 and Triton installed."""

import os

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.models.stacking import cells
from steadygaze.models.stacking.cells import GATES, Step, StepGradient

pytest.importorskip("triton", reason="Triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and not os.environ.get("TRITON_INTERPRET"):
    pytest.skip("Triton needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)


def values(*shape: int, steps: bool = False) -> torch.Tensor:
    """Random numbers; `steps`: one of three steps of a larger tensor, as in a recurrence."""
    numbers = torch.randn((shape[0], 3, *shape[1:]) if steps else shape, dtype=torch.float64, device=DEVICE)
    return numbers[:, 1] if steps else numbers


@pytest.mark.parametrize("size", [3, 128, 300])
@pytest.mark.parametrize("kind", GATES)
def test_kernels_compute_what_the_cells_compute(kind, size):
    from steadygaze.models.stacking import fused_cells

    torch.manual_seed(0)
    groups, texts, gates = 2, 5, GATES[kind] * size
    x, u, bias = values(groups, texts, gates, steps=True), values(groups, texts, gates), values(groups, gates)
    mask = (torch.rand(groups, texts, device=DEVICE) < 0.7).double()
    earlier = values(groups, texts, size, steps=True), values(groups, texts, size, steps=True)
    d_output, d_hidden, d_cell = (values(groups, texts, size) for _ in range(3))
    results = []
    for module in (cells, fused_cells):
        written = [torch.zeros(groups, texts, width, dtype=x.dtype, device=DEVICE) for width in (4 * size, size, size)]
        step = Step(mask, *written, *earlier)
        module.forward_cell(kind, x, u, bias, step)
        gradients = [torch.zeros(groups, texts, width, dtype=x.dtype, device=DEVICE) for width in (gates, gates, size)]
        own_d_cell = d_cell.clone()
        module.backward_cell(kind, d_output, d_hidden, own_d_cell, step, StepGradient(*gradients))
        results.append([*written, *gradients, own_d_cell])
    for plain, fused in zip(*results, strict=True):
        assert_close(fused, plain)
