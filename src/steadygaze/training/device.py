"""Device and precision of training, through `accelerate`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils.environment import get_int_from_env

from steadygaze.core.errors import UserError
from steadygaze.models.inference import best_device, check_device

PROCESSES = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")
"""Environment variables with the number of processes, set by launchers."""


@contextmanager
def accelerator(device: str, precision: str) -> Iterator[Accelerator]:
    """Provide an accelerator for this run, inside the block."""
    check_device(device)
    if get_int_from_env(PROCESSES, 1) > 1:
        raise UserError("training runs in one process: start it without `accelerate launch`, torchrun or mpirun")
    if precision == "fp16" and best_device(device).type == "cpu":
        raise UserError("precision 'fp16' needs a GPU; use --set precision=bf16, or no")
    with own_state():
        yield Accelerator(cpu=device == "cpu", mixed_precision=precision)


def check_lstm(device: str, precision: str) -> None:
    """Refuse a precision in which this machine cannot run an LSTM."""
    if precision == "bf16" and best_device(device).type == "cpu" and not lstm_runs_in_bfloat16():
        raise UserError("precision 'bf16': this CPU cannot run an LSTM in bfloat16; leave precision out, or use a GPU")


@cache
def lstm_runs_in_bfloat16() -> bool:
    """True if this CPU supports an LSTM in bfloat16; some CPUs do not."""
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(2, 2)(torch.zeros(1, 1, 2))
    except RuntimeError:
        return False
    return True


@contextmanager
def own_state() -> Iterator[None]:
    """Isolate the state of `accelerate`, which is global to the process, inside the block."""
    kinds = (PartialState, AcceleratorState, GradientState)
    states = [vars(kind)["_shared_state"] for kind in kinds]
    for kind in kinds:
        kind._shared_state = {}
    try:
        yield
    finally:
        for kind, state in zip(kinds, states, strict=True):
            kind._shared_state = state
