"""Words and sentence templates of the planted reviews, read from lexicon.toml, which describes them."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

TEMPLATES: dict[str, tuple[str, ...]] = {
    name: tuple(parts) for name, parts in _FILE["templates"].items() if name != "own_closers"
}
CLOSERS: dict[str, tuple[str, ...]] = {
    aspect: (*TEMPLATES["closers"], *own) for aspect, own in _FILE["templates"]["own_closers"].items()
}
"""Aspect -> closers of its sentences."""
NOUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    aspect: tuple(map(tuple, rows)) for aspect, rows in _FILE["nouns"].items()
}
ASPECTS = tuple(NOUNS)
NEGATORS: dict[str, tuple[str, ...]] = {slot: tuple(phrases) for slot, phrases in _FILE["negators"].items()}
"""Slot -> phrases; each reverses the opinion of its clause."""
NEUTRAL: dict[str, tuple[str, ...]] = {
    **{slot: tuple(words) for slot, words in _FILE["neutral"].items()},
    "brewery": tuple(
        f"{brewer} {emblem}" for brewer in _FILE["breweries"]["brewers"] for emblem in _FILE["breweries"]["emblems"]
    ),
}
"""Slot -> neutral words."""

_SHARED: dict[str, list[list[str]]] = _FILE["shared_opinions"]
_OWN: dict[str, list[str]] = _FILE["own_adjectives"]
_PAIRS = [pair for pairs in (*_SHARED.values(), list(_OWN.values())) for pair in pairs]


def _side(pairs: Iterable[list[str]], positive: bool) -> tuple[str, ...]:
    return tuple(word for praise, blame in pairs for word in (praise if positive else blame).split())


OPINIONS = {slot: {praise: _side(pairs, praise) for praise in (True, False)} for slot, pairs in _SHARED.items()}
"""Slot -> is it praise? -> opinions on any aspect."""
OWN_ADJECTIVES = {aspect: {praise: _side([pair], praise) for praise in (True, False)} for aspect, pair in _OWN.items()}
"""Aspect -> is it praise? -> adjectives of this aspect only."""
POLARITY = {word: praise for praise in (True, False) for word in _side(_PAIRS, praise)}
ASPECT_OF = {noun: aspect for aspect, rows in NOUNS.items() for row in rows for noun in row}
_ROWS = [*(row for rows in NOUNS.values() for row in rows), *(tuple(side.split()) for pair in _PAIRS for side in pair)]
SYNONYMS = {word: tuple(synonym for synonym in row if synonym != word) for row in _ROWS for word in row}
"""Opinion word or aspect noun -> words that may replace it without changing any label."""
