"""Which tokens of a vocabulary end a sentence.

A full stop, an exclamation or question mark, an ellipsis, or a run of these, whatever mark a vocabulary of pieces puts
before it: ".", "...", "?!", "Ġ!", "##.".  The same signs of scripts that write them otherwise count too.

A full stop that belongs to a word is part of its token (u.s., 3.5) in our own vocabularies.  Where one stands alone it
ends a sentence, after "Mr" as well; a quotation mark after it begins the next.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadygaze.tokens.synonyms import GOES_ON, STARTS

SIGNS = frozenset(".!?…‥。．！？｡؟۔।॥")


def sentence_ends(vocabulary: Sequence[str]) -> NDArray[np.bool_]:
    """(V,) True on an id whose token ends a sentence."""
    return np.array([_ends(token) for token in vocabulary], np.bool_)


def _ends(token: str) -> bool:
    for mark in (*STARTS, GOES_ON):
        token = token.removeprefix(mark)
    return bool(token) and SIGNS.issuperset(token)
