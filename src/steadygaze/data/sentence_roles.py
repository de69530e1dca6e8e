"""The role of each token of a vocabulary at the end of sentences (core/maths/sentence_ends.py).

A sentence ends with a full stop, an exclamation or question mark, an ellipsis, or a run of these: ".", "...", "?!".
They count after the mark of a subword, too: "Ġ!", "##.".  Closing marks and quotes can follow in the same token: ".)",
'?"'.  The signs of other scripts and their byte-level spelling count too: "âĢ¦" is "…".

A full stop that belongs to a word is part of its token (u.s., 3.5) in our own vocabularies.  Abbreviations that are
also common words or often end a sentence are not listed: rep, gen, etc.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers.pre_tokenizers import ByteLevel

from steadygaze.core.maths.sentence_ends import SentenceRole
from steadygaze.data.text_tokenizer import Kind
from steadygaze.data.vocabulary_lexicon import CONTINUES, STARTS, vocabulary_lexicon

_WORDS = {
    SentenceRole.ABBREVIATION: "dr mr mrs ms mx messrs mme mlle prof st jr sr capt lt sgt vs inc ltd corp bros dept "
    "approx cf viz al ph mt",
    SentenceRole.NUMBERED: "no nos nr fig figs vol pp pg ch sec art eq jan feb aug sept oct nov dec",
    SentenceRole.SUFFIX: "com org edu io uk html php pdf txt csv jpg png py",
}
WORDS = {role: frozenset(words.split()) for role, words in _WORDS.items()}
NOT_INITIALS = frozenset("aAiIяЯ")
"""Letters that are words."""
NUMBER = re.compile(r"\d+|qqq")
QUOTES = "\"'"
"""Straight quotation marks, which close a sentence only in one token with its end: '."'."""
BYTES = ByteLevel(add_prefix_space=False, use_regex=False)


def _signs(signs: str) -> str:
    """A pattern for one of the signs, also in byte-level spelling."""
    spelled = [*signs, *(BYTES.pre_tokenize_str(sign)[0][0] for sign in signs)]
    return f"(?:{'|'.join(map(re.escape, spelled))})"


_MARK = f"(?:{'|'.join([*STARTS, CONTINUES])})*"
_CLOSING = ")]}”’»」』）】》〉"
PATTERNS = {
    SentenceRole.FULL_STOP: re.compile(rf"{_MARK}\.{_signs(_CLOSING)}*"),
    SentenceRole.END: re.compile(f"{_MARK}{_signs('.!?…‥。．！？｡؟۔।॥')}+{_signs(_CLOSING + QUOTES)}*"),
    SentenceRole.CLOSING: re.compile(f"{_MARK}{_signs(_CLOSING)}+"),
    SentenceRole.QUOTE: re.compile(f'{_MARK}"'),
    SentenceRole.LOW_QUOTE: re.compile(f"{_MARK}{_signs('„')}"),
    SentenceRole.LEFT_QUOTE: re.compile(f"{_MARK}{_signs('“')}"),
}


def sentence_roles(vocabulary: Sequence[str], kind: Kind = "words") -> NDArray[np.uint8]:
    """(V,) the SentenceRole of each token."""
    lexicon = vocabulary_lexicon(vocabulary, kind)
    roles = [
        _role(token, name, bool(continues))
        for token, name, continues in zip(vocabulary, lexicon.names, lexicon.continues, strict=True)
    ]
    return np.array(roles, np.uint8)


def _role(token: str, name: str, continues: bool) -> SentenceRole:
    for role, pattern in PATTERNS.items():
        if pattern.fullmatch(token):
            return SentenceRole.END_QUOTE if role == SentenceRole.END and token.count('"') % 2 else role
    if continues and not name[:1].isupper():  # at the start of a text, a word has no mark in a byte-level vocabulary
        return SentenceRole.OTHER
    if NUMBER.fullmatch(name):
        return SentenceRole.NUMBER
    if len(name) == 1 and name.lower() != name.upper() and name not in NOT_INITIALS:
        return SentenceRole.ABBREVIATION
    return next((role for role, words in WORDS.items() if name.lower() in words), SentenceRole.OTHER)
