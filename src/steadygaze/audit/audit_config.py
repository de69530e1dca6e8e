"""Plan: what an audit does to the texts, and how thoroughly.

SHA-256 of what a number depends on, for its signature.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch

from steadygaze.core import arguments
from steadygaze.core.types import Example
from steadygaze.techniques.perturbations.word_substitution import Synonyms

Removal = Literal["delete", "pad", "zero"]


@dataclass(frozen=True)
class ProbeConfig:
    radius: float = 0.1
    """How far entries of word vectors move, in standard deviations of all of them."""
    synonyms: Mapping[str, tuple[Synonyms, int]] = field(default_factory=dict)
    """Name of a probe -> a table, and how many words are exchanged."""
    removal: Removal = "delete"
    """How words are erased."""
    k: int = 7
    """How many of the heaviest words are compared."""
    sample: int = 100
    """Texts that expensive explainers and probes are asked about."""
    skewed_epochs: int = 10
    """Epochs that the predictor of a rationaliser which is trained again learns from the first sentence alone."""
    thorough: bool = False
    """Whether what reads a text hundreds of times is asked too."""
    seed: int = 0
    batch_size: int = 256
    max_tokens: int = 1 << 13
    """Read at once where words are erased: this bounds the memory."""

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))


def _tables(name: str, value: object) -> object:
    """Probes by name."""
    pairs = list(value.values()) if isinstance(value, Mapping) else [None]
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], Synonyms) for pair in pairs):
        raise arguments.argument_error(name, "a mapping of names to (Synonyms, number of words)", value)
    return value


CHECKS: dict[str, arguments.Check] = {
    "radius": arguments.number(least=0),
    "synonyms": _tables,
    "removal": arguments.choice(*get_args(Removal)),
    "k": arguments.integer(1),
    "sample": arguments.integer(1),
    "skewed_epochs": arguments.integer(1),
    "thorough": arguments.flag,
    "seed": arguments.integer(0),
    "batch_size": arguments.integer(1),
    "max_tokens": arguments.integer(1),
}


def fingerprint(examples: Sequence[Example]) -> str:
    """Of everything in them, in order."""
    digest = hashlib.sha256()
    for one in examples:
        digest.update(json.dumps([one.text, one.question, one.label, one.rationales, one.sentences]).encode())
    return digest.hexdigest()


def origin(synonyms: Synonyms) -> str:
    """Which words may stand for which: the digest of a table.

    >>> table, one = torch.tensor([[0, 0], [2, 0], [1, 0]]), torch.tensor([0, 1, 1])
    >>> origin(Synonyms(table, one, torch.zeros(3, dtype=torch.bool)))[:6]
    'table-'
    >>> origin(Synonyms(table, one, torch.zeros(3, dtype=torch.bool), origin="none"))
    'none'
    """
    if synonyms.origin != "table":
        return synonyms.origin
    table, count = synonyms.table.cpu(), synonyms.count.cpu()
    told = table.masked_fill(torch.arange(table.shape[1]) >= count.unsqueeze(-1), -1)
    return f"table-{hashlib.sha256(told.contiguous().numpy().tobytes()).hexdigest()[:12]}"
