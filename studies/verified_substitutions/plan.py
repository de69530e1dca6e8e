"""Corpora, tables and drawing rule of the rated substitutions; rules.md has the rules of the ratings."""

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

CORPORA = {
    "sst2": "SST-2",
    "rotten_tomatoes": "Rotten Tomatoes",
    "tweet_emotion": "TweetEval emotion",
    "ag_news": "AG News",
}
"""The lists of words were written with draws from the training texts of these corpora."""
NEW_CORPORA = {"yelp_polarity": "Yelp", "tweet_hate": "TweetEval hate"}
"""Corpora that nothing was chosen on."""
SOURCES = {"today": 25, "filter": 25, "added": 25, "verified": 75, "both": 0}
"""Table -> rated substitutions of each corpus.

today      WordNet, unverified
filter     WordNet, verified by its lexical and contextual filters
added      the pairs of `filter` whose word is in no list
verified   the lists: `everyday`, and `chat` for tweets
both       `verified` and `added`, not rated
"""
BEFORE, AFTER = 10, 8
"""Words of a window before and after the substituted word."""
MAX_SYNONYMS = 8
LENGTHS = (10, 20, 40)
"""Longest number of words of each group of texts but the last."""
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
Rows = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Draw:
    """A substitution in a text."""

    word: str
    substitute: str
    window: str


def without_seen(texts: Sequence[str], seen: Collection[str]) -> list[str]:
    """The texts whose letters are those of no seen text: Rotten Tomatoes and SST-2 share most sentences."""
    keys = set(map(_letters, seen))
    return [text for text in texts if _letters(text) not in keys]


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.lower()))


def draw(rows: Rows, texts: Sequence[str], number: int, seed: int) -> list[Draw]:
    """Substitutions, each in another text."""
    generator = random.Random(seed)
    usable = {word: row[:MAX_SYNONYMS] for word, row in rows.items() if row}
    draws: list[Draw] = []
    for text in generator.sample(texts, len(texts)):
        places = list(WORD.finditer(text))
        usable_places = [index for index, place in enumerate(places) if place.group().lower() in usable]
        if not usable_places or len(draws) == number:
            continue
        index = generator.choice(usable_places)
        word = places[index].group()
        substitute = generator.choice(usable[word.lower()])
        draws.append(Draw(word.lower(), substitute, _window(text, places, index, substitute)))
    return draws


def by_length(texts: Sequence[str]) -> dict[str, list[str]]:
    """Number of words -> texts; every group is named by its bounds."""
    groups: dict[str, list[str]] = {}
    for first, last in zip((1, *(length + 1 for length in LENGTHS)), (*LENGTHS, None), strict=True):
        name = f"{first}+" if last is None else f"{first}-{last}"
        groups[name] = [text for text in texts if first <= len(WORD.findall(text)) <= (last or len(text))]
    return groups


def _window(text: str, places: Sequence[re.Match[str]], index: int, substitute: str) -> str:
    """The words around a word, which is written [word>substitute]."""
    start, end = places[index].span()
    first, last = places[max(0, index - BEFORE)].start(), places[min(len(places) - 1, index + AFTER)].end()
    return " ".join(f"{text[first:start]}[{text[start:end]}>{substitute}]{text[end:last]}".split())
