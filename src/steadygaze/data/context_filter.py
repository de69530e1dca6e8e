"""The contextual filter: keep the substitutions that change the meaning of a word in its texts least.

    similarity(w, s)  =  mean over occurrences of w  cos(state of w in its context, state of s in the same context)

Contexts are the WINDOW tokens around an occurrence, of up to OCCURRENCES texts, evenly spread over the texts with the
word.  A local encoder gives the states (models/encoders/word_states.py).  The filter reads no dictionary, so that it
works in every language that the encoder knows.

A verified table depends on words, not on texts: probes, training and certificates substitute the same words, and an
audit needs no further forward pass.  A word of several senses loses synonyms that are right in some texts only.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadygaze.data.synonym_rewriting import LONGEST, match_case
from steadygaze.data.word_tokenizer import SPECIALS, tokenizer_of_words

WINDOW = 8
"""Tokens on each side of a word: words and punctuation."""
OCCURRENCES = 4
"""Texts that a substitution is tried in."""


class Context(NamedTuple):
    """A word in its context, and a substitute with the case of the word."""

    text: str
    start: int
    end: int
    substitute: str


Similarity = Callable[[Sequence[Context]], NDArray[np.float64]]
"""Contexts -> the cosine of the states of the word and of its substitute."""


def pair_similarity(
    rows: Mapping[str, Sequence[str]], texts: Sequence[str], similarity: Similarity
) -> dict[tuple[str, str], float]:
    """The mean similarity of every pair whose word occurs in a text."""
    contexts = [
        (word, synonym, Context(text, start, end, match_case(text[start:end], synonym)))
        for word, places_of in occurrences(texts, list(rows)).items()
        for text, start, end in places_of
        for synonym in rows[word]
    ]
    values: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for (word, synonym, _), value in zip(contexts, similarity([item for *_, item in contexts]), strict=True):
        values[word, synonym].append(float(value))
    return {pair: float(np.mean(row)) for pair, row in values.items()}


def occurrences(texts: Sequence[str], words: Sequence[str]) -> dict[str, list[tuple[str, int, int]]]:
    """Word -> (context, start, end) in up to OCCURRENCES texts."""
    tokenized = tokenizer_of_words(words, max_length=LONGEST).place(texts)
    ids, starts = tokenized.ragged.ids - len(SPECIALS), tokenized.ragged.starts
    places_of: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    known = np.flatnonzero(tokenized.ragged.words & (ids >= 0))
    rows = np.searchsorted(starts, known, side="right") - 1
    for position, row in zip(known.tolist(), rows.tolist(), strict=True):
        places = places_of[words[ids[position]]]
        if not places or places[-1][0] != row:  # the first of a text
            places.append((row, position - int(starts[row]) - 1))
    return {
        word: [_context(texts[row], tokenized.spans[row], index) for row, index in _spread(places)]
        for word, places in places_of.items()
    }


def _spread(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Up to OCCURRENCES of them, evenly spread."""
    number = min(OCCURRENCES, len(places))
    return [places[i * len(places) // number] for i in range(number)]


def _context(text: str, spans: Sequence[tuple[int, int]], index: int) -> tuple[str, int, int]:
    start, end = spans[index]
    first, last = spans[max(0, index - WINDOW)][0], spans[min(len(spans) - 1, index + WINDOW)][1]
    return text[first:last], start - first, end - first
