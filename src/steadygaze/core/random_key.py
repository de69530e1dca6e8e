"""Chance: random numbers that belong to a text, not to a batch.

A number is a pure function of (key, row, place): what a text draws does not depend on the texts beside it, on padding,
on the order of calls or on the device.  Nothing is consumed, so nothing need be saved to go on after an interruption.

    u(key, row, place) = mix(mix((mix(key + γ) ⊕ row) + γ) + place·γ)

SplitMix64: Steele, Lea & Flood 2014, "Fast Splittable Pseudorandom Number Generators"; γ is the golden ratio·2^64.

Seeds: every stream of chance is derived from the run's seed and from what it is for.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_WORD = 1 << 64


def _signed(value: int) -> int:
    """As torch's 64-bit whole numbers have it, which wrap around as the method wants."""
    value %= _WORD
    return value - _WORD if value >= _WORD // 2 else value


_GOLDEN, _FIRST, _SECOND = (_signed(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class RandomKey:
    key: int = 0

    def child(self, *parts: int) -> "RandomKey":
        """A stream of its own for each purpose, step or probe."""
        key = self.key
        for part in parts:
            key = _mixed((_mixed(key + _GOLDEN) ^ part) + _GOLDEN)
        return RandomKey(key)

    def uniform(self, rows: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """In [0, 1); half precision may round to 1.  Of `shape` only the first entry may depend on padding."""
        digits = 53 if dtype == torch.float64 else 24
        bits = _shifted(self._bits(rows, math.prod(shape)), 64 - digits)
        return _fraction(bits, digits, dtype).view(len(rows), *shape).to(dtype)

    def normal(self, rows: Tensor, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """N(0, 1), by Box and Muller 1958."""
        digits = 32 if dtype == torch.float64 else 24  # of the radius at one end of the word, of the angle at the other
        bits = self._bits(rows, math.prod(shape)).view(len(rows), *shape)
        radius, angle = _shifted(bits, 64 - digits), bits & ((1 << digits) - 1)
        length = _fraction(radius, digits, dtype).neg_().log1p_().mul_(-2).sqrt_()
        return (length * _fraction(angle, digits, dtype).mul_(2 * math.pi).cos_()).to(dtype)

    def scramble(self, numbers: Tensor) -> Tensor:
        """Whole numbers turned into others that look random, the same ones into the same.  (…) -> (…)"""
        # The key is mixed first: otherwise row 1 of key 0 would draw what row 0 of key 1 draws.
        return _mix((numbers.long() ^ _mixed(self.key + _GOLDEN)) + _GOLDEN)

    def _bits(self, rows: Tensor, count: int) -> Tensor:
        """(B,) -> (B,count)"""
        own = self.scramble(rows).unsqueeze(1)
        return _mix(own + torch.arange(1, count + 1, device=rows.device) * _GOLDEN)


def _mix(z: Tensor) -> Tensor:
    """In place where it can: a fresh tensor of 64-bit numbers for every step would cost twice the time."""
    z = (z ^ _shifted(z, 30)).mul_(_FIRST)
    z = z.bitwise_xor_(_shifted(z, 27)).mul_(_SECOND)
    return z.bitwise_xor_(_shifted(z, 31))


def _shifted(z: Tensor, by: int) -> Tensor:
    """To the right, zeros coming in from the left."""
    return (z >> by).bitwise_and_((1 << (64 - by)) - 1)


def _fraction(bits: Tensor, digits: int, dtype: torch.dtype) -> Tensor:
    """In [0, 1), in full precision: in half of it a number may round to 1, whose logarithm is infinite below."""
    return bits.to(torch.float64 if dtype == torch.float64 else torch.float32).mul_(2.0**-digits)


def _mixed(z: int) -> int:
    """The same of one number, without a tensor's ceremony: asked in every step."""
    z %= _WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _WORD
    return _signed(z ^ (z >> 31))


def derive_seed(*parts: int) -> int:
    """A seed for one purpose.  (31 bits: what every generator takes)"""
    counted = len(parts), *parts  # a SeedSequence does not hear zeros at the end: (0,) and (0, 0) would be one stream
    return int(np.random.SeedSequence(counted).generate_state(1)[0]) >> 1


@contextmanager
def forked_generators() -> Iterator[None]:
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
