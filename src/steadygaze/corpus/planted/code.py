"""Texts in which a label can be said in code: a test of explainers that select words.

    heads heads heads heads heads tails tails tails tails tails   dapo fime … rusa

Every text begins with the same ten words, which say nothing.  Of the `length` words after them five are opinions, out
of 600 that praise or 600 that blame; the label is what all of them do (or most, where `agreement` is below 1).  The
others are neutral.  All of these are made-up words, so that only texts can teach what a word says.

Whoever selects words and knows the label can say it by taking heads for praise and tails for blame.  A guess from what
is selected is then always right, and explains nothing: what was guessed from says nothing to the model that is
explained.  The opinions on the label's side are the evidence.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from steadygaze.corpus.planted.grammar import MOST_EXAMPLES, SPLITS
from steadygaze.errors import UserError
from steadygaze.types import Example

SIZES = (8_000, 1_000, 2_000)
SAME = ("heads",) * 5 + ("tails",) * 5
OPINIONS, NEUTRAL = 600, 2000
"""Words that praise, and as many that blame; words that do neither."""
MANY = 5
"""Opinions in a text."""
LABELS = ("blame", "praise")


def planted_code(
    seed: int = 0, *, length: int = 30, agreement: float = 1.0, sizes: Sequence[int] = SIZES
) -> dict[str, list[Example]]:
    """Splits of texts labelled "blame" or "praise"; `length` is how many words follow the ten that say nothing.

    `agreement` is the chance that an opinion is drawn from the side that was drawn for the text.  A smaller split is
    the beginning of a larger one.
    """
    if not 0.5 <= agreement <= 1:
        raise UserError(f"agreement is a chance from 0.5 to 1; found {agreement}.")
    if length < MANY:
        raise UserError(f"length is at least {MANY}, which is how many opinions a text has; found {length}.")
    if len(sizes) != len(SPLITS) or min(sizes) < 0 or max(sizes) > MOST_EXAMPLES:
        raise UserError(
            f"sizes are three numbers from 0 to {MOST_EXAMPLES:,} for {', '.join(SPLITS)}; found {sizes!r}."
        )
    words = np.random.default_rng((seed, 0)).permutation(_made_up()).tolist()
    return {
        split: [_text(np.random.default_rng((seed, number, row)), words, length, agreement) for row in range(many)]
        for number, (split, many) in enumerate(zip(SPLITS, sizes, strict=True), start=1)
    }


def _text(random: np.random.Generator, words: list[str], length: int, agreement: float) -> Example:
    praised = random.random() < 0.5
    sides = np.where(random.random(MANY) < agreement, praised, not praised)
    label = int(sides.sum() * 2 > MANY)
    drawn = 2 * OPINIONS + random.integers(NEUTRAL, size=length)
    places = random.permutation(length)[:MANY]
    drawn[places] = random.integers(OPINIONS, size=MANY) + OPINIONS * sides
    chosen = [*SAME, *(words[i] for i in drawn)]
    ends = np.cumsum([len(word) + 1 for word in chosen])
    reason = sorted(int(place) + len(SAME) for place in places[sides == label])
    evidence = tuple((int(ends[i]) - 1 - len(chosen[i]), int(ends[i]) - 1) for i in reason)
    return Example(" ".join(chosen), LABELS[label], evidence=evidence)


def _made_up() -> list[str]:
    """Different words of two syllables, none of them SAME's."""
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    return ["".join(parts) for parts in product(syllables, repeat=2)][: 2 * OPINIONS + NEUTRAL]
