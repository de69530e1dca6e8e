"""Suffixes of English words, recognized by the other words of a vocabulary.

"loved" carries -ed because "love" is in the vocabulary, "adore" takes -ed because "adored" is.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

SUFFIXES = ("s", "ed", "ing", "ly", "er", "est", "ness", "ment", "ful", "less", "able", "ity", "ion")
INFLECTIONS = frozenset(("s", "ed", "ing", "ly", "er", "est"))
PARTICIPLES = frozenset(("ed", "ing"))
OPEN = frozenset(("s", "ed", "ing"))
"""Suffixes of nouns and verbs."""
NEGATIVE = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Form:
    """Suffixes of a word, according to the table."""

    carried: frozenset[str]
    """Suffixes that form this word from another word of the table."""
    taken: frozenset[str]
    """Suffixes that form another word of the table from this word."""


def word_form(word: str, vocabulary: Collection[str]) -> Form:
    """The suffixes of a word, according to the vocabulary."""
    return Form(_carried(word, vocabulary), _taken(word, vocabulary))


def clash(first: Form, second: Form) -> bool:
    """Return whether two words have different classes or inflections."""
    only = first.carried - second.carried
    inflected = first.carried & INFLECTIONS, second.carried & INFLECTIONS
    return bool(
        only & second.taken
        or (all(inflected) and not inflected[0] & inflected[1])
        or (only & PARTICIPLES and second.taken & PARTICIPLES and not second.carried & PARTICIPLES)
        or ("ly" in only and second.taken & OPEN)
    )


def negates(word: str, base: str) -> bool:
    """Return whether `word` is `base` with a negative affix."""
    if any(word == prefix + base for prefix in NEGATIVE):
        return True
    return word.endswith("less") and word.removesuffix("less") in (base, base.removesuffix("ful"))


def _carried(word: str, vocabulary: Collection[str]) -> frozenset[str]:
    """Suffixes that form this word from another word of the table."""
    return frozenset(
        suffix
        for suffix in SUFFIXES
        if word.endswith(suffix) and any(base in vocabulary for base in _bases(word.removesuffix(suffix), suffix))
    )


def _taken(word: str, vocabulary: Collection[str]) -> frozenset[str]:
    """Suffixes that form another word of the table from this word."""
    return frozenset(suffix for suffix in SUFFIXES if any(form in vocabulary for form in spelled_forms(word, suffix)))


def spelled_forms(word: str, suffix: str) -> Iterator[str]:
    """Possible spellings of a word with a suffix: lov-ed, stop-ped, happ-ier, box-es, simp-ly, tru-ly."""
    yield word + suffix
    if suffix == "s":
        yield word + "es"
    if word.endswith("y"):
        yield word[:-1] + ("ies" if suffix == "s" else "i" + suffix)
    if word.endswith("le") and suffix == "ly":
        yield word[:-1] + "y"
    if word.endswith("e") and (suffix == "ly" or suffix[0] in VOWELS):
        yield word[:-1] + suffix
    if suffix[0] in VOWELS and len(word) > 2 and word[-1] not in VOWELS and word[-2] in VOWELS:
        yield word + word[-1] + suffix


def _bases(stem: str, suffix: str) -> Iterator[str]:
    """Possible bases of a word without its suffix."""
    candidates = [stem, stem + "e"]
    if stem.endswith("i"):
        candidates.append(stem[:-1] + "y")
    if suffix == "ly":
        candidates.append(stem + "le")
    if suffix == "s" and stem.endswith("ie"):
        candidates.append(stem[:-2] + "y")
    if suffix == "s" and stem.endswith("e"):
        candidates.append(stem[:-1])
    if len(stem) > 2 and stem[-1] == stem[-2]:
        candidates.append(stem[:-1])
    return (base for base in candidates if len(base) > 2)
