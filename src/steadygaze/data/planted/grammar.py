"""How a planted review is drawn and written out: templates, sentences, reviews.

A template (opener, core and closer joined, their slots empty; the first and the last may be missing) belongs to exactly
one split, by a hash of its text: splits share cores and words, but no combination of opener, core and closer.  Draws
use `Random.random` alone, the one method whose sequence Python promises to keep.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar

from steadygaze.core.types import Span
from steadygaze.data.planted import frames
from steadygaze.data.planted.lexicon import ASPECTS, NEGATORS, NEUTRAL, NOUNS, OPINIONS, OWN_ADJECTIVES

SPLITS = ("train", "validation", "test")
MOST_EXAMPLES = 10_000_000
"""Examples of a generated split."""
NEGATION = 0.15
"""How often an opinion is said by denying its opposite."""
APPEARANCE_FIRST = 0.95
"""How often the first sentence is the one about the appearance."""
BARE = 0.8
"""How often a sentence has no opener, and how often no closer: most sentences of real reviews are plain."""

_TRAIN, _VALIDATION = 0.6, 0.75  # of all templates: train up to the first, validation up to the second, test the rest
_TRUTH = {"noun", *OPINIONS, *NEGATORS}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReviewHabits:
    """How reviewers write."""

    negation: float = NEGATION
    """How often an opinion is said by denying its opposite."""
    agreement: float = 0.5
    """The chance that an aspect fares as the beer does, praised or blamed as a whole; one half: each by itself."""
    own: int = 2
    """How many times as likely an adjective that is said of one aspect alone is as one that is said of all."""


HABITS = ReviewHabits()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A template, its core, and the words that fill its slots, in order; `aspect` is None in a neutral sentence."""

    template: str
    core: str
    words: tuple[str, ...]
    aspect: str | None = None
    positive: bool = False

    def written(self, ending: str = ".") -> tuple[str, tuple[Span, ...]]:
        """Its text, and the characters of each word that carries the truth."""
        literals, slots = _parsed(self.template)
        text = literals[0]
        rationales: list[Span] = []
        for slot, word, literal in zip(slots, self.words, literals[1:], strict=True):
            if slot in _TRUTH:
                rationales += [(len(text) + a, len(text) + b) for a, b in _each_word(word)]
            text += word + literal
        return text[0].upper() + text[1:] + ending, tuple(rationales)


def join(parts: Iterable[tuple[str, tuple[Span, ...]]]) -> tuple[str, tuple[Span, ...], tuple[Span, ...]]:
    """Sentences and the rationales in each -> the text, its rationales, its sentences."""
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
    """The one split whose texts may use this template."""
    share = int.from_bytes(hashlib.sha256(template.encode()).digest()[:4]) / 2**32
    return "train" if share < _TRAIN else "validation" if share < _VALIDATION else "test"


def draw_review(
    rng: Random, split: str, appearance_first: float, habits: ReviewHabits = HABITS
) -> tuple[Sentence, ...]:
    """One sentence on each aspect and two to four neutral ones, in their order; no two share a core."""
    drawn: dict[str, Sentence] = {}
    praise = 0.5
    if habits.agreement != praise:
        praise = habits.agreement if rng.random() < 0.5 else 1 - habits.agreement
    for aspect in (*ASPECTS, *(None,) * (2 + int(3 * rng.random()))):
        sentence = draw_sentence(rng, split, aspect, praise, habits)
        while sentence.core in drawn:
            sentence = draw_sentence(rng, split, aspect, praise, habits)
        drawn[sentence.core] = sentence
    appearance, *others = drawn.values()
    first, *rest = _shuffled(rng, others)
    if rng.random() < appearance_first:
        return (appearance, first, *rest)
    return (first, *_shuffled(rng, [appearance, *rest]))


def draw_sentence(
    rng: Random, split: str, aspect: str | None, praise: float = 0.5, habits: ReviewHabits = HABITS
) -> Sentence:
    """A sentence that praises an aspect with a chance of `praise`, and else blames it; or one that says nothing."""
    if aspect is None:
        template, core = _draw_template(rng, split, (frames.FILLER_OPENERS, frames.FILLERS, frames.FILLER_CLOSERS))
        return Sentence(template, core, _fill(rng, template, {}))
    positive, negated = rng.random() < praise, rng.random() < habits.negation
    cores = frames.NEGATED if negated else frames.AFFIRMED
    template, core = _draw_template(rng, split, (frames.OPENERS, cores, frames.CLOSERS[aspect]))
    choices = _choices(aspect, positive != negated, habits.own)
    return Sentence(template, core, _fill(rng, template, choices), aspect, positive)


def draw_question(rng: Random, split: str, aspect: str) -> Sentence:
    """A question about an aspect; it uses the general names of the aspect, not those of its details."""
    template, core = _draw_template(rng, split, (frames.QUESTION_OPENERS, frames.QUESTIONS, frames.QUESTION_CLOSERS))
    return Sentence(template, core, _fill(rng, template, {"noun": NOUNS[aspect][0]}), aspect)


@cache
def _choices(aspect: str, praise: bool, own: int) -> dict[str, tuple[str, ...]]:
    """Slot -> words, to praise or blame an aspect; an adjective of its own is `own` times as likely as a shared one."""
    opinions = {slot: words[praise] for slot, words in OPINIONS.items()}
    opinions["adjective"] += own * OWN_ADJECTIVES[aspect][praise]
    return {"noun": sum(NOUNS[aspect], ()), **opinions}


def _draw_template(
    rng: Random, split: str, parts: tuple[Sequence[str], Sequence[str], Sequence[str]]
) -> tuple[str, str]:
    """A template of the split, and its core."""
    openers, cores, closers = parts
    while True:
        opener = "" if rng.random() < BARE else _pick(rng, openers)
        closer = "" if rng.random() < BARE else _pick(rng, closers)
        core = _pick(rng, cores)
        template = opener + core + closer
        if split_of(template) == split:
            return template, core


def _shuffled(rng: Random, items: Iterable[T]) -> list[T]:
    return sorted(items, key=lambda _: rng.random())


def _fill(rng: Random, template: str, truth: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A word for each slot, from the last to the first because "a" or "an" depends on what follows."""
    words: list[str] = []
    following = ""
    for slot in reversed(_parsed(template)[1]):
        if slot == "a":
            following = "an" if following[0] in "aeiouAEIOU" else "a"
        else:
            choices = truth.get(slot) or NEGATORS.get(slot) or NEUTRAL[slot]
            following = _pick(rng, choices)
            while following in words:
                following = _pick(rng, choices)
        words.append(following)
    return tuple(reversed(words))


def _pick(rng: Random, choices: Sequence[T]) -> T:
    return choices[int(rng.random() * len(choices))]


@cache
def _parsed(template: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is fixed in a template (one more than there are slots), and its slots."""
    pieces = re.split(r"{(.+?)}", template)
    return tuple(pieces[::2]), tuple(pieces[1::2])


@cache
def _each_word(phrase: str) -> tuple[Span, ...]:
    return tuple(found.span() for found in re.finditer(r"\S+", phrase))
