"""Which pairs of a synonym table may be substituted for each other.

A table is filtered once, when it is read.  A pair is dropped where

    closed class   either word is a function word or a negation (tokens/function_words.py)
    spelling       either word holds a digit, or is a single letter
    negation       one word is the other with a negative affix: happy, unhappy; hopeful, hopeless
    suffix         one word carries a suffix, and the other is a base that takes the same one: films → movie, loved →
                   adore, quickly → rapid, happiness → glad; -ed and -ing count as one here: thwarting → abort
    inflection     both carry an inflection, but not the same: motivated → motivating, misused → abuses
    adverb         one carries -ly, and the other is a base that takes -s, -ed or -ing: blankly → stare

Suffixes are recognized by the table's own words: "loved" carries -ed because "love" is in the table, "adore" takes -ed
because "adored" is.  So a small table loses nothing for lack of evidence.

Not covered: words of different classes without such evidence (film, shoot), irregular forms (went, children), other
languages than English, and names, which a vocabulary in lower case does not show.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from steadygaze.tokens.function_words import FUNCTION_WORDS

SUFFIXES = ("s", "ed", "ing", "ly", "er", "est", "ness", "ment", "ful", "less", "able", "ity", "ion")
INFLECTIONS = frozenset(("s", "ed", "ing", "ly", "er", "est"))
PARTICIPLES = frozenset(("ed", "ing"))
OPEN = frozenset(("s", "ed", "ing"))
"""Suffixes of nouns and verbs."""
NEGATIVE = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Form:
    """What a table's words show of one of them."""

    carried: frozenset[str]
    """Suffixes with which another word of the table makes this one."""
    taken: frozenset[str]
    """Suffixes with which this one makes another."""


def substitutable(table: Mapping[str, Sequence[str]], *, classes: bool = True) -> dict[str, list[str]]:
    """The pairs that may be substituted; words that keep no synonym are left out.

    `classes`: whether suffixes are compared; False: function words, negations and numbers alone are dropped.

    >>> substitutable({"film": ["movie", "movies", "the"], "films": ["movies"], "never": ["rarely"]})
    {'film': ['movie'], 'films': ['movies']}
    """
    known = {name.lower() for word, others in table.items() for name in (word, *others)}
    bare = Form(frozenset(), frozenset())
    forms = {
        name: Form(_carried(name, known), _taken(name, known)) if classes else bare
        for name in known
        if _is_content(name)
    }

    def allowed(one: str, other: str) -> bool:
        if one not in forms or other not in forms or _negates(one, other) or _negates(other, one):
            return False
        return not (_clash(forms[one], forms[other]) or _clash(forms[other], forms[one]))

    found = {word: [o for o in others if allowed(word.lower(), o.lower())] for word, others in table.items()}
    return {word: others for word, others in found.items() if others}


def _clash(one: Form, other: Form) -> bool:
    """Whether `one` is known to be of another class, or another inflection, than `other`."""
    only = one.carried - other.carried
    inflected = one.carried & INFLECTIONS, other.carried & INFLECTIONS
    return bool(
        only & other.taken
        or (all(inflected) and not inflected[0] & inflected[1])
        or (only & PARTICIPLES and other.taken & PARTICIPLES and not other.carried & PARTICIPLES)
        or ("ly" in only and other.taken & OPEN)
    )


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and not any(letter.isdigit() for letter in word)


def _negates(one: str, other: str) -> bool:
    """Whether `one` is `other` with a negative affix."""
    if any(one == prefix + other for prefix in NEGATIVE):
        return True
    return one.endswith("less") and one.removesuffix("less") in (other, other.removesuffix("ful"))


def _carried(word: str, known: Collection[str]) -> frozenset[str]:
    """The suffixes with which a known word makes this one."""
    return frozenset(
        suffix
        for suffix in SUFFIXES
        if word.endswith(suffix) and any(base in known for base in _bases(word.removesuffix(suffix), suffix))
    )


def _taken(word: str, known: Collection[str]) -> frozenset[str]:
    """The suffixes with which this word makes a known one."""
    return frozenset(suffix for suffix in SUFFIXES if any(form in known for form in _forms(word, suffix)))


def _forms(word: str, suffix: str) -> Iterator[str]:
    """How a word may be written with a suffix: lov-ed, stop-ped, happ-ier, box-es, simp-ly, tru-ly."""
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
    """What a word without its suffix may have been; at least two letters."""
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
