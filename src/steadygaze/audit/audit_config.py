"""ProbeConfig: the settings of an audit's probes, and the SHA-256 digests that identify its inputs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import torch

from steadygaze.core import arguments
from steadygaze.core.digests import digest_json
from steadygaze.core.types import Example
from steadygaze.techniques.perturbations.word_removal import Removal
from steadygaze.techniques.perturbations.word_substitution import Synonyms


@dataclass(frozen=True)
class ProbeConfig:
    radius: float = 0.1
    """Radius of embedding perturbations, in standard deviations of the embedding entries."""
    synonyms: Mapping[str, tuple[Synonyms, int]] = field(default_factory=dict)
    """Name of a probe -> a synonym table and the number of substituted words."""
    removal: Removal = "delete"
    """How to erase words."""
    k: int = 7
    """Number of top-weighted words to compare."""
    sample: int = 100
    """Number of texts for expensive explainers and probes."""
    skewed_epochs: int = 10
    """Epochs on the first sentence alone, for the predictor of a retrained rationalizer."""
    thorough: bool = False
    """Whether to run protocols that need hundreds of forward passes per text."""
    seed: int = 0
    batch_size: int = 256
    max_tokens: int = 1 << 13
    """Tokens in one forward pass with erased words; bounds the memory."""

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))


def _tables(name: str, value: object) -> object:
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
    """The digest of all fields of the examples, in order."""
    return digest_json([item.text, item.question, item.label, item.rationales, item.sentences] for item in examples)


def origin(synonyms: Synonyms) -> str:
    """The origin of a synonym table, or the digest of its content.

    >>> table, count = torch.tensor([[0, 0], [2, 0], [1, 0]]), torch.tensor([0, 1, 1])
    >>> origin(Synonyms(table, count, torch.zeros(3, dtype=torch.bool)))[:6]
    'table-'
    >>> origin(Synonyms(table, count, torch.zeros(3, dtype=torch.bool), origin="none"))
    'none'
    """
    if synonyms.origin != "table":
        return synonyms.origin
    table, count = synonyms.table.cpu(), synonyms.count.cpu()
    content = table.masked_fill(torch.arange(table.shape[1]) >= count.unsqueeze(-1), -1)
    return f"table-{hashlib.sha256(content.contiguous().numpy().tobytes()).hexdigest()[:12]}"
