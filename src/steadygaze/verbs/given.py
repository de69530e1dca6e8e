"""A corpus as verbs take it and tell of it; where an unfinished run is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadygaze.corpus import Corpus
from steadygaze.types import Example, Label


def unfinished(out: Path) -> Path:
    """Where a run is kept until its model is whole."""
    whole = out.absolute()
    return whole.with_name(whole.name + ".unfinished")


def describe(corpus: Corpus) -> str:
    """One line: how much there is, and what was left out."""
    sizes = ", ".join(f"{size:,} {split}" for split, size in corpus.sizes.items())
    return f"{corpus.name}: {sizes}" + "".join(f"; {why}: {count:,} left out" for why, count in corpus.dropped.items())


def columns(examples: Sequence[Example]) -> tuple[list[Any], list[Label | None]]:
    """(X, y) as an estimator takes them."""
    return texts(examples), [example.label for example in examples]


def texts(examples: Sequence[Example]) -> list[Any]:
    return [e.text if e.question is None else (e.text, e.question) for e in examples]
