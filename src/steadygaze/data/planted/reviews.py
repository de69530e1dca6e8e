"""Generators of texts with known rationales: reviews, pairs of a review and a question, and codes.

Reviews: a sentence with a noun of the aspect has one opinion word; a negator in the same clause reverses it.  Clauses
end at a comma or a full stop; negators in other clauses reverse nothing.  `read_planted_review` reads the label by
these rules, from lexicon and grammar alone.

Codes: texts in which a selection of words can encode the label, a test of explainers that select words.

    heads heads heads heads heads tails tails tails tails tails   dapo fime … rusa

Every text begins with the same ten words, which carry no information.  Five of the `length` words after them are
opinions, out of 600 that praise or 600 that blame; the label is their majority.  The others are neutral.  All are
invented words, so their meaning can be learned only from the texts.  An explainer that knows the label can encode it by
selecting heads for praise and tails for blame.  The opinions on the label's side are the rationales.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Example
from steadygaze.data.planted.grammar import (
    APPEARANCE_FIRST,
    HABITS,
    MOST_EXAMPLES,
    SPLITS,
    ReviewHabits,
    Sentence,
    draw_question,
    draw_review,
    join,
)
from steadygaze.data.planted.lexicon import ASPECT_OF, ASPECTS, NEGATORS, POLARITY

LABELS = ("negative", "positive")

_WORD = re.compile(r"[\w'-]+")
_NEGATOR = re.compile(rf"\b({'|'.join(sorted({phrase for slot in NEGATORS.values() for phrase in slot}))})\b")


def read_planted_review(text: str, aspect: str) -> str:
    """The label of a planted text for an aspect."""
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    aspect_sentences = [
        sentence for sentence in re.split(r"(?<=[.?!]) ", text.lower()) if _aspects(sentence) == {aspect}
    ]
    clauses = [clause for sentence in aspect_sentences for clause in sentence.split(",") if _opinions(clause)]
    if len(clauses) != 1 or len(_opinions(clauses[0])) != 1:
        raise UserError(f"a planted text must have one opinion on its {aspect}; found {len(clauses)} in {text[:60]!r}.")
    reversed_opinion = len(_NEGATOR.findall(clauses[0])) % 2 == 1
    return LABELS[_opinions(clauses[0])[0] != reversed_opinion]


def question_aspect(question: str) -> str:
    """The aspect of a planted question."""
    aspects = _aspects(question.lower())
    if len(aspects) != 1:
        raise UserError(f"a planted question must name one aspect of {', '.join(ASPECTS)}; found {question!r}.")
    return aspects.pop()


def _aspects(text: str) -> set[str]:
    return {ASPECT_OF[word] for word in _WORD.findall(text) if word in ASPECT_OF}


def _opinions(clause: str) -> list[bool]:
    return [POLARITY[word] for word in _WORD.findall(clause) if word in POLARITY]


SIZES = (10_000, 1_000, 2_000)

_QUESTION_SHARES = {"aroma": 0.55, "appearance": 0.85, "palate": 1.0}
"""Cumulative; the docstring of the package explains them."""


def planted_reviews(
    seed: int = 0,
    *,
    aspect: str = "aroma",
    appearance_first: float = APPEARANCE_FIRST,
    agreement: float = HABITS.agreement,
    negation: float = HABITS.negation,
    own: int = HABITS.own,
    noise: float = 0.0,
    sizes: Sequence[int] = SIZES,
) -> dict[str, list[Example]]:
    """Splits of reviews labeled "negative" or "positive" by their opinion on one aspect.

    `sizes` are those of train, validation and test.  A smaller split is the beginning of a larger one.  Probabilities:
    `appearance_first`, that the first sentence is about the appearance; `agreement`, that an aspect has the sentiment
    of the whole beer (one half: aspects are independent); `negation`, that an opinion is expressed by negating its
    opposite; `noise`, that the label is wrong, in every split.  `own` is the probability of an adjective of one aspect,
    relative to that of a shared adjective.
    """
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    shares = {"appearance_first": appearance_first, "agreement": agreement, "negation": negation, "noise": noise}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UserError(f"{name} must be from 0 to 1; found {share}.")
    if own < 0:
        raise UserError(f"own must be at least 0; found {own}.")
    habits = ReviewHabits(negation, agreement, own)

    def draw(rng: Random, split: str) -> Example:
        example = _example(draw_review(rng, split, appearance_first, habits), aspect)
        # A separate generator: noise does not change the texts.
        is_flipped = noise and Random(f"{seed}/{aspect}/{example.text}").random() < noise
        return replace(example, label=LABELS[example.label == LABELS[0]]) if is_flipped else example

    return _splits(draw, seed, sizes)


def planted_pairs(seed: int = 0, *, sizes: Sequence[int] = SIZES) -> dict[str, list[Example]]:
    """Splits of reviews with a question about one aspect, labeled by the opinion on it."""

    def draw(rng: Random, split: str) -> Example:
        share = rng.random()
        aspect = next(aspect for aspect, up_to in _QUESTION_SHARES.items() if share < up_to)
        question, _ = draw_question(rng, split, aspect).written("?")
        return replace(_example(draw_review(rng, split, APPEARANCE_FIRST), aspect), question=question)

    return _splits(draw, seed, sizes)


def _splits(draw: Callable[[Random, str], Example], seed: int, sizes: Sequence[int]) -> dict[str, list[Example]]:
    """Draw each split from its own generator, without repeated texts."""
    _check_sizes(sizes)
    splits: dict[str, dict[str, Example]] = {split: {} for split in SPLITS}
    for (split, examples), size in zip(splits.items(), sizes, strict=True):
        rng = Random(f"{seed}/{split}")
        while len(examples) < size:
            example = draw(rng, split)
            examples.setdefault(example.text, example)
    return {split: list(examples.values()) for split, examples in splits.items()}


def _check_sizes(sizes: Sequence[int]) -> None:
    if len(sizes) != len(SPLITS) or min(sizes) < 0 or max(sizes) > MOST_EXAMPLES:
        expected = f"three numbers from 0 to {MOST_EXAMPLES:,}, for {', '.join(SPLITS)}"
        raise UserError(f"sizes must be {expected}; found {sizes!r:.80}.")


def _example(review: Sequence[Sentence], aspect: str) -> Example:
    """A review as text, labeled by its opinion on one aspect."""
    label = next(LABELS[sentence.positive] for sentence in review if sentence.aspect == aspect)
    parts = ((sentence.aspect, *sentence.written()) for sentence in review)
    text, rationales, sentences = join(
        (text, spans if sentence_aspect == aspect else ()) for sentence_aspect, text, spans in parts
    )
    return Example(text, label, rationales=rationales, sentences=sentences)


CODE_SIZES = (8_000, 1_000, 2_000)
CONSTANT_WORDS = ("heads",) * 5 + ("tails",) * 5
OPINIONS, NEUTRAL = 600, 2000
"""Number of words that praise and of words that blame; number of neutral words."""
OPINIONS_PER_TEXT = 5
"""Opinions in a text."""
CODE_LABELS = ("blame", "praise")


def planted_code(
    seed: int = 0, *, length: int = 30, agreement: float = 1.0, sizes: Sequence[int] = CODE_SIZES
) -> dict[str, list[Example]]:
    """Splits of texts labeled "blame" or "praise"; `length` is the number of words after the ten constant ones.

    `agreement` is the probability that an opinion has the sentiment of its text.  A smaller split is the beginning of a
    larger one.
    """
    if not 0.5 <= agreement <= 1:
        raise UserError(f"agreement must be from 0.5 to 1; found {agreement}.")
    if length < OPINIONS_PER_TEXT:
        raise UserError(
            f"length must be at least {OPINIONS_PER_TEXT}, the number of opinions in a text; found {length}."
        )
    _check_sizes(sizes)
    words = np.random.default_rng((seed, 0)).permutation(_invented_words()).tolist()
    return {
        split: [_text(np.random.default_rng((seed, number, row)), words, length, agreement) for row in range(size)]
        for number, (split, size) in enumerate(zip(SPLITS, sizes, strict=True), start=1)
    }


def _text(random: np.random.Generator, words: list[str], length: int, agreement: float) -> Example:
    praised = random.random() < 0.5
    sides = np.where(random.random(OPINIONS_PER_TEXT) < agreement, praised, not praised)
    label = int(sides.sum() * 2 > OPINIONS_PER_TEXT)
    word_ids = 2 * OPINIONS + random.integers(NEUTRAL, size=length)
    places = random.permutation(length)[:OPINIONS_PER_TEXT]
    word_ids[places] = random.integers(OPINIONS, size=OPINIONS_PER_TEXT) + OPINIONS * sides
    text_words = [*CONSTANT_WORDS, *(words[i] for i in word_ids)]
    ends = np.cumsum([len(word) + 1 for word in text_words])
    reason = sorted(int(place) + len(CONSTANT_WORDS) for place in places[sides == label])
    rationales = tuple((int(ends[i]) - 1 - len(text_words[i]), int(ends[i]) - 1) for i in reason)
    return Example(" ".join(text_words), CODE_LABELS[label], rationales=rationales)


def _invented_words() -> list[str]:
    """Distinct words of two syllables, without those of CONSTANT_WORDS."""
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    return ["".join(parts) for parts in product(syllables, repeat=2)][: 2 * OPINIONS + NEUTRAL]
