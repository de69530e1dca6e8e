"""Texts of a small vocabulary, all their rewrites by a table, and models that many rewrites change."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

import steadygaze as sg
from estimator.tiny import NOUNS, SMALL, tiny

Table = Mapping[str, Sequence[str]]


@cache
def unsure(encoder: str = "bilstm", settings: tuple[tuple[str, str], ...] = (), epochs: int = 6) -> sg.TextClassifier:
    """A model of three classes whose predictions many substitutions change."""
    opinions = (("good", "fine"), ("bad", "dull"), ("good", "bad"))
    texts = [f"a {first} {noun} , {second} i thought" for noun in NOUNS for first, second in opinions]
    labels = ["pos", "neg", "mixed"] * len(NOUNS)
    values = {**SMALL, "learning_rate": 0.05, **dict(settings)}
    return tiny(encoder, epochs=epochs, batch_size=4, settings=values).fit(texts, labels)


def mixed_texts(table: Table, count: int, most: int) -> list[str]:
    """Texts of less than `most` words, most of them of the table."""
    random = np.random.default_rng(0)
    words = [*table, "a", "i", ",", "cast"]
    return [" ".join(random.choice(words, random.integers(1, most))) for _ in range(count)]


def all_rewrites(text: str, table: Table, changes: int | None = None) -> list[str]:
    """Every rewrite of a text of words in lower case."""
    words = text.split()
    rows = product(*([word, *table.get(word, [])] for word in words))
    most = len(words) if changes is None else changes
    return [" ".join(row) for row in rows if sum(a != b for a, b in zip(row, words, strict=True)) <= most]
