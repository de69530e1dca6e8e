"""The words of the texts themselves, for a model that reads text and not tokens.

A piece is a word and the characters up to the next, so that the pieces of a text put end to end are the text:

    "  A good film."   ->   "  " | "A " | "good " | "film" | "."       the first is no word, and is never erased
                                                                       without "good ": "  A film."

Every piece that was ever met has an id, and no piece loses it; those of one call get theirs by alphabet, whatever the
order of the texts.  Words are split as our own vocabularies split them.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import ClassVar

import numpy as np
from torch import Tensor

from steadygaze.tokens.ragged import Placed, Ragged, starts_of
from steadygaze.tokens.tokenizer import Kind
from steadygaze.tokens.words import build_words
from steadygaze.types import Span

NOTHING = ""
"""The piece of padding; its id is 0."""
LONGEST = 2**31 - 1
"""Words read of a text: a black box reads it to its end."""


class TextWords:
    kind: ClassVar[Kind] = "words"

    def __init__(self) -> None:
        self._split = build_words([], max_length=LONGEST)
        self._pieces = [NOTHING]
        self._ids = {NOTHING: 0}

    @property
    def vocabulary(self) -> list[str]:
        """The piece of each id, so far."""
        return list(self._pieces)

    def encode(self, texts: Sequence[str], *, question: bool = False) -> Ragged:
        return self.place(texts).ragged

    def place(self, texts: Sequence[str], *, question: bool = False) -> Placed:
        spans = self._split.place(texts).spans
        rows = [_cut(text, places) for text, places in zip(texts, spans, strict=True)]
        starts = starts_of(np.array([len(row) for row in rows], np.int64))
        words = np.ones(starts[-1], np.bool_)
        leads = np.array([len(row) > len(places) for row, places in zip(rows, spans, strict=True)], np.bool_)
        words[starts[:-1][leads]] = False
        ids = np.array(self.learn(chain.from_iterable(rows)), np.int32)
        ragged = Ragged(ids, words, starts, np.zeros(len(texts), np.bool_))
        return Placed(ragged, spans, [range(len(places)) for places in spans])

    def learn(self, pieces: Iterable[str]) -> list[int]:
        """The id of each, a new one where it was never met."""
        given = list(pieces)
        for piece in sorted(set(given) - self._ids.keys()):
            self._ids[piece] = len(self._pieces)
            self._pieces.append(piece)
        return [self._ids[piece] for piece in given]

    def join(self, ids: Tensor, present: Tensor) -> list[str]:
        """The texts that these pieces make.  (B,T), (B,T)"""
        rows = ids.masked_fill(~present, 0).tolist()
        return ["".join(map(self._pieces.__getitem__, row)) for row in rows]


def _cut(text: str, spans: Sequence[Span]) -> list[str]:
    """The text in pieces; what stands before the first word is one of its own."""
    edges = [0, *(start for start, _ in spans), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    return pieces if pieces[0] else pieces[1:]
