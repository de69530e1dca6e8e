"""Beer reviews whose true reason is known, made from a seed, so that everything runs with no download.

A review has one sentence on each of appearance, aroma and palate, each praised or blamed by a coin of its own, and two
to four neutral sentences.  The label is the sentiment of one aspect: the one asked for, or the one that the question of
a pair names.

    sentence   an opener, a core and a closer (`planted_frames`), filled from word lists (`planted_words`); a template
               belongs to one split, so the test split holds no sentence pattern of the training split
    truth      a noun that says which aspect, an opinion, and in 15 % of sentences a negator (not, hardly, anything but,
               nobody would call …) that turns it round (`planted_lexicon`); most opinions are said of every aspect,
               and negators stand in neutral clauses too
    evidence   those words and no others, one span a word: they are enough to read the label (`planted_oracle`), and
               none can be left out

The first sentence is about the appearance in 95 % of reviews, as in real ones: position is a shortcut to that aspect.

Pairs ask about the aroma in 55 % of questions, the appearance in 30 %, the palate in 15 %.  With equal shares, an
additive-attention model counts the praise in all three sentences and learns texts by heart before it ever looks at the
question (on a draft of these texts: 0.70 after 3 epochs, 0.65 after 14); with unequal ones it uses the question from
the third epoch on.

Measured at the default sizes, seed 0, test split (a coin would get 0.5; counting praise and blame perfectly, 0.75):

                                                                   appearance   aroma   palate   pairs
    oracle: lexicon and grammar                                         1.000   1.000    1.000   1.000
    TF-IDF of 1- and 2-grams, logistic regression                       0.661   0.654    0.647   0.629
    BiLSTM (128 a direction), additive attention                        0.967   0.995    0.990   0.983

The first two by `bench/planted_difficulty.py`; the last trained once from scratch (100 random dimensions a word, Adam
with AMSGrad at 1e-3, batches of 32; 4 epochs, pairs 8; for pairs the question's last states enter score and logits).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from steadygaze.corpus.planted_edit import flip as flip
from steadygaze.corpus.planted_edit import redraw as redraw
from steadygaze.corpus.planted_edit import swap as swap
from steadygaze.corpus.planted_grammar import APPEARANCE_FIRST, SPLITS, Sentence, draw_question, draw_review, join
from steadygaze.corpus.planted_lexicon import ASPECTS
from steadygaze.corpus.planted_lexicon import SYNONYMS as SYNONYMS
from steadygaze.corpus.planted_oracle import LABELS
from steadygaze.corpus.planted_oracle import asked_aspect as asked_aspect
from steadygaze.corpus.planted_oracle import read as read
from steadygaze.errors import UserError, unknown
from steadygaze.types import Example

SIZES = (10_000, 1_000, 2_000)

_ASKED = {"aroma": 0.55, "appearance": 0.85, "palate": 1.0}  # cumulative; why they differ is said above


def planted_reviews(
    seed: int = 0, *, aspect: str = "aroma", appearance_first: float = APPEARANCE_FIRST, sizes: Sequence[int] = SIZES
) -> dict[str, list[Example]]:
    """Splits of reviews labelled "negative" or "positive" by what they say about one aspect.

    `appearance_first` is how often the first sentence is the one about the appearance; `sizes` are those of train,
    validation and test.  A smaller split is the beginning of a larger one.
    """
    if aspect not in ASPECTS:
        raise unknown("aspect", aspect, ASPECTS)
    if not 0 <= appearance_first <= 1:
        raise UserError(f"appearance_first is a share from 0 to 1; found {appearance_first}.")

    def draw(rng: Random, split: str) -> Example:
        return _example(draw_review(rng, split, appearance_first), aspect)

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
    if len(sizes) != len(SPLITS) or min(sizes) < 0:
        raise UserError(f"sizes are three numbers, none below 0, for {', '.join(SPLITS)}; found {sizes!r}.")
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
