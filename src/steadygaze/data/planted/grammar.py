"""Generation of planted reviews: templates, sentences, reviews.

A template is an opener, a core and a closer with empty slots; opener and closer are optional.  A hash of its text
assigns it to exactly one split: splits share cores and words, but no combination of opener, core and closer.  Draws use
only `Random.random`, the one method whose sequence Python guarantees.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar

from steadygaze.core.types import Span
from steadygaze.data.planted.lexicon import (
    ASPECTS,
    CLOSERS,
    NEGATORS,
    NEUTRAL,
    NOUNS,
    OPINIONS,
    OWN_ADJECTIVES,
    TEMPLATES,
)

SPLITS = ("train", "validation", "test")
MOST_EXAMPLES = 10_000_000
"""Examples of a generated split."""
NEGATION = 0.15
"""Probability that an opinion is expressed by negating its opposite."""
APPEARANCE_FIRST = 0.95
"""Probability that the first sentence is about the appearance."""
BARE = 0.8
"""Probability that a sentence has no opener, and that it has no closer."""

_TRAIN, _VALIDATION = 0.6, 0.75  # cumulative shares of the templates
_LABEL_SLOTS = {"noun", *OPINIONS, *NEGATORS}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReviewHabits:
    """Probabilities of the generator."""

    negation: float = NEGATION
    """Probability that an opinion is expressed by negating its opposite."""
    agreement: float = 0.5
    """Probability that an aspect has the sentiment of the whole beer; one half: aspects are independent."""
    own: int = 2
    """Probability of an adjective of one aspect, relative to that of a shared adjective."""


HABITS = ReviewHabits()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A template, its core, and the words in its slots, in order; `aspect` is None in a neutral sentence."""

    template: str
    core: str
    words: tuple[str, ...]
    aspect: str | None = None
    positive: bool = False

    def written(self, ending: str = ".") -> tuple[str, tuple[Span, ...]]:
        """Text, and the character spans of the words that determine the label."""
        literals, slots = _parsed(self.template)
        text = literals[0]
        rationales: list[Span] = []
        for slot, word, literal in zip(slots, self.words, literals[1:], strict=True):
            if slot in _LABEL_SLOTS:
                rationales += [(len(text) + a, len(text) + b) for a, b in _word_spans(word)]
            text += word + literal
        return text[0].upper() + text[1:] + ending, tuple(rationales)


def join(parts: Iterable[tuple[str, tuple[Span, ...]]]) -> tuple[str, tuple[Span, ...], tuple[Span, ...]]:
    """Join sentences with their rationales -> text, rationales, sentences."""
    texts: list[str] = []
    rationales: list[Span] = []
    sentences: list[Span] = []
    at = 0
    for text, spans in parts:
        texts.append(text)
        rationales += ((at + a, at + b) for a, b in spans)
        sentences.append((at, at + len(text)))
        at += len(text) + 1
    return " ".join(texts), tuple(rationales), tuple(sentences)


@cache
def split_of(template: str) -> str:
    share = int.from_bytes(hashlib.sha256(template.encode()).digest()[:4]) / 2**32
    return "train" if share < _TRAIN else "validation" if share < _VALIDATION else "test"


def draw_review(
    rng: Random, split: str, appearance_first: float, habits: ReviewHabits = HABITS
) -> tuple[Sentence, ...]:
    """Draw one sentence on each aspect and two to four neutral ones, in order; no two share a core."""
    sentences: dict[str, Sentence] = {}
    praise = 0.5
    if habits.agreement != praise:
        praise = habits.agreement if rng.random() < 0.5 else 1 - habits.agreement
    for aspect in (*ASPECTS, *(None,) * (2 + int(3 * rng.random()))):
        sentence = draw_sentence(rng, split, aspect, praise, habits)
        while sentence.core in sentences:
            sentence = draw_sentence(rng, split, aspect, praise, habits)
        sentences[sentence.core] = sentence
    appearance, *other_sentences = sentences.values()
    first, *remaining = _shuffled(rng, other_sentences)
    if rng.random() < appearance_first:
        return (appearance, first, *remaining)
    return (first, *_shuffled(rng, [appearance, *remaining]))


def draw_sentence(
    rng: Random, split: str, aspect: str | None, praise: float = 0.5, habits: ReviewHabits = HABITS
) -> Sentence:
    """Draw a sentence about an aspect, positive with probability `praise`, or a neutral sentence."""
    if aspect is None:
        template, core = _draw_template(rng, split, ("filler_openers", "fillers", "filler_closers"))
        return Sentence(template, core, _fill(rng, template, {}))
    positive, negated = rng.random() < praise, rng.random() < habits.negation
    template, core = _draw_template(rng, split, ("openers", "negated" if negated else "affirmed", aspect))
    choices = _choices(aspect, positive != negated, habits.own)
    return Sentence(template, core, _fill(rng, template, choices), aspect, positive)


def draw_question(rng: Random, split: str, aspect: str) -> Sentence:
    """Draw a question about an aspect, by its general nouns."""
    template, core = _draw_template(rng, split, ("question_openers", "questions", "question_closers"))
    return Sentence(template, core, _fill(rng, template, {"noun": NOUNS[aspect][0]}), aspect)


@cache
def _choices(aspect: str, praise: bool, own: int) -> dict[str, tuple[str, ...]]:
    """Slot -> words that praise or blame an aspect; its own adjectives are `own` times as likely as shared ones."""
    opinions = {slot: words[praise] for slot, words in OPINIONS.items()}
    opinions["adjective"] += own * OWN_ADJECTIVES[aspect][praise]
    return {"noun": sum(NOUNS[aspect], ()), **opinions}


def _draw_template(rng: Random, split: str, parts: tuple[str, str, str]) -> tuple[str, str]:
    """Draw a template of the split from the named parts; return it and its core."""
    openers, cores, closers = (TEMPLATES.get(part) or CLOSERS[part] for part in parts)
    while True:
        opener = "" if rng.random() < BARE else _pick(rng, openers)
        closer = "" if rng.random() < BARE else _pick(rng, closers)
        core = _pick(rng, cores)
        template = opener + core + closer
        if split_of(template) == split:
            return template, core


def _shuffled(rng: Random, items: Iterable[T]) -> list[T]:
    return sorted(items, key=lambda _: rng.random())


def _fill(rng: Random, template: str, opinions: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Draw a word for each slot, last slot first because "a" or "an" depends on the next word."""
    words: list[str] = []
    following = ""
    for slot in reversed(_parsed(template)[1]):
        if slot == "a":
            following = "an" if following[0] in "aeiouAEIOU" else "a"
        else:
            choices = opinions.get(slot) or NEGATORS.get(slot) or NEUTRAL[slot]
            following = _pick(rng, choices)
            while following in words:
                following = _pick(rng, choices)
        words.append(following)
    return tuple(reversed(words))


def _pick(rng: Random, choices: Sequence[T]) -> T:
    return choices[int(rng.random() * len(choices))]


@cache
def _parsed(template: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Fixed parts of a template (one more than slots), and its slots."""
    pieces = re.split(r"{(.+?)}", template)
    return tuple(pieces[::2]), tuple(pieces[1::2])


@cache
def _word_spans(phrase: str) -> tuple[Span, ...]:
    return tuple(match.span() for match in re.finditer(r"\S+", phrase))
