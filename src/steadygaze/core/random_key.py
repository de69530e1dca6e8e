"""Random keys: random numbers that depend on a text, not on its batch.

A number is a pure function of (key, row, position).  It does not depend on other texts, padding, the order of calls or
the device.  Resuming a run needs no saved state.

    u(key, row, position) = mix(mix((mix(key + γ) ⊕ row) + γ) + position·γ)

SplitMix64: Steele, Lea & Flood 2014, "Fast Splittable Pseudorandom Number Generators"; γ is the golden ratio·2^64.

All seeds are derived from the seed of the run and their purpose.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.types import Batch

_WORD = 1 << 64


def _signed(value: int) -> int:
    """Convert to a signed 64-bit integer, which wraps around as the method requires."""
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


_GOLDEN, _FIRST, _SECOND = (_signed(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class RandomKey:
    """Random numbers that depend on the key and the row of a text, not on its batch.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([3, 7])
    >>> numbers = RandomKey(0).child(1).uniform(rows, 4)  # 4 numbers for each of the texts 3 and 7
    >>> bool((numbers[1] == RandomKey(0).child(1).uniform(rows[1:], 4)[0]).all())
    True
    """

    key: Any = 0
    """An integer, a tensor (), or a tensor (B,): one key for each row."""

    def child(self, *parts: int) -> "RandomKey":
        """Return a separate key for a purpose, step or probe.

        Parameters
        ----------
        *parts : int
            Numbers that identify the purpose.

        Returns
        -------
        RandomKey
            A key whose numbers are independent of this one's.
        """
        key = self.key
        for part in parts:
            key = _mixed((_mixed(key + _GOLDEN) ^ part) + _GOLDEN)
        return RandomKey(key)

    def uniform(self, rows: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Sample from [0, 1); half precision can round to 1.

        Parameters
        ----------
        rows : Tensor
            Row of each text, (B,), such as `batch.index`.
        *shape : int
            Numbers per text.  Only the first entry may depend on padding.
        dtype : torch.dtype, default=torch.float32
            Type of the numbers.

        Returns
        -------
        Tensor
            Random numbers, (B,…).
        """
        digits = 53 if dtype == torch.float64 else 24
        bits = _shift_right(self._bits(rows, math.prod(shape)), 64 - digits)
        return _fraction(bits, digits, dtype).view(len(rows), *shape).to(dtype)

    def normal(self, rows: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Sample from N(0, 1), by Box and Muller 1958.

        Parameters
        ----------
        rows : Tensor
            Row of each text, (B,), such as `batch.index`.
        *shape : int
            Numbers per text.  Only the first entry may depend on padding.
        dtype : torch.dtype, default=torch.float32
            Type of the numbers.

        Returns
        -------
        Tensor
            Random numbers, (B,…).
        """
        digits = 32 if dtype == torch.float64 else 24  # high bits: radius; low bits: angle
        bits = self._bits(rows, math.prod(shape)).view(len(rows), *shape)
        radius, angle = _shift_right(bits, 64 - digits), bits & ((1 << digits) - 1)
        length = _fraction(radius, digits, dtype).neg_().log1p_().mul_(-2).sqrt_()
        return (length * _fraction(angle, digits, dtype).mul_(2 * math.pi).cos_()).to(dtype)

    def scramble(self, numbers: Tensor) -> Tensor:
        """Hash integers with the key.

        Parameters
        ----------
        numbers : Tensor
            Integers of any shape.

        Returns
        -------
        Tensor
            64-bit integers of the same shape.
        """
        # The key is mixed first: otherwise row 1 of key 0 would equal row 0 of key 1.
        return _mix((numbers.long() ^ _mixed(self.key + _GOLDEN)) + _GOLDEN)

    def _bits(self, rows: Tensor, count: int) -> Tensor:
        """(B,) -> (B,count)"""
        own = self.scramble(rows).unsqueeze(1)
        return _mix(own + torch.arange(1, count + 1, device=rows.device) * _GOLDEN)


def _mix(z: Tensor) -> Tensor:
    """Mix in place, which is twice as fast."""
    z = (z ^ _shift_right(z, 30)).mul_(_FIRST)
    z = z.bitwise_xor_(_shift_right(z, 27)).mul_(_SECOND)
    return z.bitwise_xor_(_shift_right(z, 31))


def _shift_right(z: Tensor, by: int) -> Tensor:
    """Shift right logically."""
    return (z >> by).bitwise_and_((1 << (64 - by)) - 1)


def _fraction(bits: Tensor, digits: int, dtype: torch.dtype) -> Tensor:
    """Return fractions in [0, 1) in at least single precision: half precision can round to 1."""
    return bits.to(torch.float64 if dtype == torch.float64 else torch.float32).mul_(2.0**-digits)


def _mixed(z: int | Tensor) -> Any:
    """Mix one Python integer, without the overhead of a tensor; or a tensor of them."""
    if isinstance(z, Tensor):
        return _mix(z)
    z %= _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
    return _signed(z ^ (z >> 31))


def derive_seed(*parts: int) -> int:
    """Return a 31-bit seed for one purpose."""
    counted = len(parts), *parts  # SeedSequence ignores trailing zeros
    return int(np.random.SeedSequence(counted).generate_state(1)[0]) >> 1


@contextmanager
def forked_generators() -> Iterator[None]:
    """Restore the state of torch's generators, which dropout uses, after the block."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        yield


def generator_states() -> dict[str, torch.Tensor]:
    """Return the states of torch's generators, which dropout uses."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def set_generator_states(states: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(states["torch"])
    for i in range(len(states) - 1):
        torch.cuda.set_rng_state(states[f"cuda{i}"], i)


def text_key(batch: Batch) -> Tensor:
    """Return a hash of each text, independent of split and batch, for its random key.  (B,)"""
    places = torch.arange(1, batch.ids.shape[1] + 1, device=batch.ids.device)
    mixed = RandomKey(1).scramble(batch.permanent_ids * 1_000_003 + places).masked_fill(~batch.present, 0)
    return mixed.sum(-1)  # overflow is intended


def pair_key(batch: Batch) -> Tensor:
    """Return a hash of each text and its question; without questions it is `text_key`.  (B,)"""
    question = batch.question_as_text()
    return text_key(batch) if question is None else text_key(batch) + RandomKey(2).scramble(text_key(question))
