"""Coverage: how much of the given texts a model reads, and how much of that is in its vocabulary."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadygaze.tokens.ragged import Ragged

MOSTLY = 0.5
"""Share of unknown tokens from which on a model is warned about: it reads more unknown tokens than known ones."""


@dataclass(frozen=True, slots=True)
class Coverage:
    texts: int = 0
    truncated: int = 0
    """Texts that are longer than the model reads."""
    tokens: int = 0
    unknown: int = 0
    """Tokens that are not in the vocabulary: the model reads the same placeholder for all of them."""
    max_length: int = 0

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(
            self.texts + other.texts,
            self.truncated + other.truncated,
            self.tokens + other.tokens,
            self.unknown + other.unknown,
            max(self.max_length, other.max_length),
        )

    @property
    def unknown_share(self) -> float:
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def facts(self) -> dict[str, str]:
        """For a report."""
        return {
            "truncated texts": f"{self.truncated:,} of {self.texts:,}",
            "unknown tokens": f"{self.unknown_share:.1%} of {self.tokens:,}",
        }

    def warnings(self) -> Iterator[str]:
        if self.truncated:
            most = self.max_length
            yield (
                f"{self.truncated:,} of {self.texts:,} texts are longer than {most} tokens: "
                f"the model reads only their first {most} tokens"
            )
        if self.unknown_share > MOSTLY:
            yield (
                f"{self.unknown_share:.0%} of the tokens are not in the model's vocabulary: "
                "its predictions for these texts are not reliable. Check the language and the text column"
            )


def coverage(tokens: Any, read: Ragged) -> Coverage:
    """Of texts that `tokens` has split."""
    unknown = getattr(tokens, "unknown_id", None)
    words = read.ids[read.words]
    return Coverage(
        len(read),
        int(read.cut.sum()),
        len(words),
        0 if unknown is None else int(np.count_nonzero(words == unknown)),
        int(getattr(tokens, "max_length", 0)),
    )
