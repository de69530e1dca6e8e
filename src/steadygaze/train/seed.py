"""Seeds: every stream of chance is derived from the run's seed and from what it is for."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(*parts: int) -> int:
    """A seed for one purpose.  (31 bits: what every generator takes)"""
    counted = len(parts), *parts  # a SeedSequence does not hear zeros at the end: (0,) and (0, 0) would be one stream
    return int(np.random.SeedSequence(counted).generate_state(1)[0]) >> 1


@contextmanager
def own_chance() -> Iterator[None]:
    """What is drawn inside (dropout draws from torch's own generators) leaves them as the caller had them."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        yield


def generator_states() -> dict[str, torch.Tensor]:
    """Where torch's own generators stand, from which dropout draws."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_generator_states(states: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(states["torch"])
    for i in range(len(states) - 1):
        torch.cuda.set_rng_state(states[f"cuda{i}"], i)
