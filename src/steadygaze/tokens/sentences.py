"""Which tokens of a vocabulary end a sentence.

A full stop, an exclamation or question mark, an ellipsis, or a run of these, whatever mark a vocabulary of pieces puts
before it: ".", "...", "?!", "Ġ!", "##.".  The same signs of scripts that write them otherwise count too, and as a
vocabulary of bytes spells them: "âĢ¦" is "…".

A full stop that belongs to a word is part of its token (u.s., 3.5) in our own vocabularies.  Where one stands alone it
ends a sentence, after "Mr" as well; a quotation mark after it begins the next.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers.pre_tokenizers import ByteLevel

from steadygaze.tokens.synonyms import GOES_ON, STARTS

SIGNS = ".!?…‥。．！？｡؟۔।॥"
BYTES = ByteLevel(add_prefix_space=False, use_regex=False)
SPELT = [*SIGNS, *(BYTES.pre_tokenize_str(sign)[0][0] for sign in SIGNS)]
ENDS = re.compile(f"(?:{'|'.join([*STARTS, GOES_ON])})*(?:{'|'.join(map(re.escape, SPELT))})+")


def sentence_ends(vocabulary: Sequence[str]) -> NDArray[np.bool_]:
    """(V,) True on an id whose token ends a sentence."""
    return np.array([ENDS.fullmatch(token) is not None for token in vocabulary], np.bool_)
