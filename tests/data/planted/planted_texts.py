"""What the tests of planted texts look for in them."""

import re

from steadygaze.core.types import Example
from steadygaze.data.planted.lexicon import ASPECT_OF, ASPECTS
from steadygaze.data.planted.reviews import planted_reviews

WORD = re.compile(r"[\w'-]+")


def some_examples(n: int = 40, seed: int = 5) -> list[Example]:
    """Reviews of each aspect."""
    return [example for aspect in ASPECTS for example in planted_reviews(seed, aspect=aspect, sizes=(0, 0, n))["test"]]


def words(example: Example) -> list[str]:
    """The known reason, word by word."""
    return [example.text[start:end] for start, end in example.rationales or ()]


def sentences(example: Example) -> list[str]:
    return [example.text[start:end] for start, end in example.sentences or ()]


def aspect_of(example: Example) -> str:
    """The aspect that the reason is about."""
    return next(ASPECT_OF[word.lower()] for word in words(example) if word.lower() in ASPECT_OF)


def aspects_in(text: str) -> list[str]:
    return [ASPECT_OF[word] for word in WORD.findall(text.lower()) if word in ASPECT_OF]
