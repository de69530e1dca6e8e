"""Corpora, sources and drawing rule of the rated substitutions; rules.md has the rules of the ratings."""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

CORPORA = {
    "sst2": "SST-2",
    "rotten_tomatoes": "Rotten Tomatoes",
    "tweet_emotion": "TweetEval emotion",
    "ag_news": "AG News",
}
SOURCES = {"today": 50, "senses": 25, "verified": 50}
"""Source -> pairs of each corpus.

today      the unverified table of WordNet
senses     pairs that pass all filters but the contextual one
verified   the verified table
"""
BEFORE, AFTER = 6, 5
"""Words of a window before and after the substituted word: 12 in all."""
MAX_SYNONYMS = 8
PUBLISHED_HALF = 1
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
Rows = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Draw:
    """A substitution in a text."""

    word: str
    substitute: str
    window: str


def half(word: str) -> int:
    """The half of a word: thresholds are chosen on 0, precision is published on 1."""
    return hashlib.sha256(word.encode()).digest()[0] % 2


def draw(rows: Rows, texts: Sequence[str], number: int, seed: int) -> list[Draw]:
    """Substitutions of words of the published half, each in another text."""
    generator = random.Random(seed)
    usable = {word: row[:MAX_SYNONYMS] for word, row in rows.items() if row and half(word) == PUBLISHED_HALF}
    draws: list[Draw] = []
    for text in generator.sample(texts, len(texts)):
        places = list(WORD.finditer(text))
        found = [index for index, place in enumerate(places) if place.group().lower() in usable]
        if not found or len(draws) == number:
            continue
        index = generator.choice(found)
        word = places[index].group()
        substitute = generator.choice(usable[word.lower()])
        draws.append(Draw(word.lower(), substitute, _window(text, places, index, substitute)))
    return draws


def _window(text: str, places: Sequence[re.Match[str]], index: int, substitute: str) -> str:
    """The words around a word, which is written [word>substitute]."""
    start, end = places[index].span()
    first, last = places[max(0, index - BEFORE)].start(), places[min(len(places) - 1, index + AFTER)].end()
    return " ".join(f"{text[first:start]}[{text[start:end]}>{substitute}]{text[end:last]}".split())
