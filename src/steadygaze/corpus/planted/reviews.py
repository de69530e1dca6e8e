"""The two generators: reviews labelled by one aspect, and pairs of a review and a question."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from steadygaze.corpus.planted.grammar import (
    APPEARANCE_FIRST,
    HABITS,
    MOST_EXAMPLES,
    SPLITS,
    Habits,
    Sentence,
    draw_question,
    draw_review,
    join,
)
from steadygaze.corpus.planted.lexicon import ASPECTS
from steadygaze.corpus.planted.oracle import LABELS
from steadygaze.errors import UserError, unknown
from steadygaze.types import Example

SIZES = (10_000, 1_000, 2_000)

_ASKED = {"aroma": 0.55, "appearance": 0.85, "palate": 1.0}  # cumulative; why they differ: the package's docstring


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
    """Splits of reviews labelled "negative" or "positive" by what they say about one aspect.

    `appearance_first` is how often the first sentence is the one about the appearance; `sizes` are those of train,
    validation and test.  A smaller split is the beginning of a larger one.

    `agreement` is the chance that an aspect fares as the beer as a whole does, one half that each fares by itself;
    `negation` how often an opinion is said by denying its opposite; `own` how many times as likely an adjective of one
    aspect alone is as one that is said of all; `noise` how often the label is not what the review says, in every split.
    """
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    shares = {"appearance_first": appearance_first, "agreement": agreement, "negation": negation, "noise": noise}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise UserError(f"{name} is a share from 0 to 1; found {share}.")
    if own < 0:
        raise UserError(f"own is how many times as likely a word is, 0 or more; found {own}.")
    habits = Habits(negation, agreement, own)

    def draw(rng: Random, split: str) -> Example:
        example = _example(draw_review(rng, split, appearance_first, habits), aspect)
        # A coin of the text's own: with noise and without, the texts are the same.
        wrong = noise and Random(f"{seed}/{aspect}/{example.text}").random() < noise
        return replace(example, label=LABELS[example.label == LABELS[0]]) if wrong else example

    return _splits(draw, seed, sizes)


def planted_pairs(seed: int = 0, *, sizes: Sequence[int] = SIZES) -> dict[str, list[Example]]:
    """Splits of reviews with a question about one aspect, labelled by what the review says about it."""

    def draw(rng: Random, split: str) -> Example:
        share = rng.random()
        aspect = next(aspect for aspect, up_to in _ASKED.items() if share < up_to)
        question, _ = draw_question(rng, split, aspect).written("?")
        return replace(_example(draw_review(rng, split, APPEARANCE_FIRST), aspect), question=question)

    return _splits(draw, seed, sizes)


def _splits(draw: Callable[[Random, str], Example], seed: int, sizes: Sequence[int]) -> dict[str, list[Example]]:
    """Each split from a stream of its own, without repeated texts."""
    if len(sizes) != len(SPLITS) or min(sizes) < 0 or max(sizes) > MOST_EXAMPLES:
        wanted = f"three numbers from 0 to {MOST_EXAMPLES:,}, for {', '.join(SPLITS)}"
        raise UserError(f"sizes are {wanted}; found {sizes!r:.80}.")
    splits: dict[str, dict[str, Example]] = {split: {} for split in SPLITS}
    for (split, examples), size in zip(splits.items(), sizes, strict=True):
        rng = Random(f"{seed}/{split}")
        while len(examples) < size:
            example = draw(rng, split)
            examples.setdefault(example.text, example)
    return {split: list(examples.values()) for split, examples in splits.items()}


def _example(review: Sequence[Sentence], aspect: str) -> Example:
    """A review written out, labelled by what it says about one aspect."""
    label = next(LABELS[sentence.positive] for sentence in review if sentence.aspect == aspect)
    written = ((sentence.aspect, *sentence.written()) for sentence in review)
    text, evidence, sentences = join((text, spans if about == aspect else ()) for about, text, spans in written)
    return Example(text, label, evidence=evidence, sentences=sentences)
