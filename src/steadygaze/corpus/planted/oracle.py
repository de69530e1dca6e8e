"""Reads a planted review by its public lexicon and grammar alone: the text itself determines every label.

The sentence that holds a noun of the aspect holds one opinion word; its praise or blame is turned round by a negator in
the same clause.  Clauses end at a comma or a full stop; negators in other clauses turn nothing round.
"""

import re

from steadygaze.corpus.planted.lexicon import ASPECT_OF, ASPECTS, NEGATORS, POLARITY
from steadygaze.errors import UserError, unknown

LABELS = ("negative", "positive")

_WORD = re.compile(r"[\w'-]+")
_NEGATOR = re.compile(rf"\b({'|'.join(sorted({phrase for slot in NEGATORS.values() for phrase in slot}))})\b")


def read(text: str, aspect: str) -> str:
    """The label that a planted text has for an aspect."""
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    about = [sentence for sentence in re.split(r"(?<=[.?!]) ", text.lower()) if _aspects(sentence) == {aspect}]
    clauses = [clause for sentence in about for clause in sentence.split(",") if _opinions(clause)]
    if len(clauses) != 1 or len(_opinions(clauses[0])) != 1:
        raise UserError(f"a planted text says one thing about its {aspect}; found {len(clauses)} in {text[:60]!r}.")
    turned = len(_NEGATOR.findall(clauses[0])) % 2 == 1
    return LABELS[_opinions(clauses[0])[0] != turned]


def asked_aspect(question: str) -> str:
    """The aspect that a planted question asks about."""
    found = _aspects(question.lower())
    if len(found) != 1:
        raise UserError(f"a planted question names one aspect of {', '.join(ASPECTS)}; found {question!r}.")
    return found.pop()


def _aspects(text: str) -> set[str]:
    return {ASPECT_OF[word] for word in _WORD.findall(text) if word in ASPECT_OF}


def _opinions(clause: str) -> list[bool]:
    return [POLARITY[word] for word in _WORD.findall(clause) if word in POLARITY]
