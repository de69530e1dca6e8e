"""Words of other texts, to put in the place of erased ones: the text keeps its length and reads like the others.

If a word follows a, the new word is drawn from those that follow a in another text; if there are none, from all
words of other texts.  Each word has one replacement, so that all erasures of a text differ only in what they erase.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.integer[Any]]
TRIES = 8
"""Draws for a word; the last one that is another word of another text counts."""


def words_of_other_texts(ids: Ids, words: NDArray[np.bool_], lengths: Ids, seed: int) -> Ids:
    """A replacement for each word of N texts, whose tokens are concatenated; other tokens stay.  (M,), (M,), (N,)

    A word without another word in other texts stays as well.
    """
    random = np.random.default_rng(seed)
    text = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.r_[True, text[1:] != text[:-1]]
    before = np.where(starts, -1, np.r_[-1, ids[:-1]])
    places = np.flatnonzero(words)
    chosen = ids.copy()
    if not len(places):
        return chosen
    by_context = places[np.argsort(before[places], kind="stable")]
    contexts = before[by_context]
    first, last = (np.searchsorted(contexts, before[places], side) for side in ("left", "right"))
    missing = np.ones(len(places), bool)
    for pool_start, pool_end in ((first, last), (np.zeros_like(first), np.full_like(last, len(by_context)))):
        for _ in range(TRIES):
            drawn = by_context[pool_start + (random.random(len(places)) * (pool_end - pool_start)).astype(np.int64)]
            fits = missing & (text[drawn] != text[places]) & (ids[drawn] != ids[places])
            chosen[places[fits]] = ids[drawn[fits]]
            missing &= ~fits
    return chosen
