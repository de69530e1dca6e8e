"""Plan: what an audit does to the texts, and how thoroughly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from steadygaze.errors import UserError
from steadygaze.perturb.words import Synonyms

Removal = Literal["delete", "pad", "zero"]


@dataclass(frozen=True)
class Plan:
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
    skewed: int = 10
    """Epochs that the predictor of a rationaliser which is trained again learns from the first sentence alone."""
    thorough: bool = False
    """Whether what reads a text hundreds of times is asked too."""
    seed: int = 0
    batch_size: int = 256
    most_tokens: int = 1 << 13
    """Read at once where words are erased: this bounds the memory."""

    def __post_init__(self) -> None:
        for name in ("k", "sample", "skewed", "batch_size", "most_tokens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, found {getattr(self, name)}")
        if not self.radius >= 0:
            raise UserError(f"radius must be 0 or more, found {self.radius}")
