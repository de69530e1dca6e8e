"""Advice for an undecided verdict: more texts, or the measure that is missing.

The width of an interval falls with the square root of the number of texts.  A score decides with n (h / d)² texts:
d is its distance from the threshold, and h the part of its interval towards the threshold.  A score between both
thresholds decides with no number of texts.
"""

import math
from collections.abc import Mapping, Sequence

from steadygaze.results.formatting import number, plain_label, short_number
from steadygaze.results.row import Row

FEWEST = 8
"""Minimum number of texts for a verdict."""
MOST = 100_000
"""Numbers of texts above this one are not advised."""
Limits = Mapping[str, tuple[float, float]]
"""Measure -> thresholds of yes and of no."""
MISSING = {
    "there is no synonym table": "build a synonym table with steadygaze synonyms build wordnet --out synonyms.jsonl "
    "(English; extra wordnet), and pass it with --synonyms (synonyms=)",
    "the position leak needs": "audit more texts, with at least 20 of each predicted class",
}
"""Part of the note of a missing measure -> advice."""


def deciding_texts(row: Row, good: float, bad: float) -> float:
    """The number of texts with which a score like this one decides; infinite between the thresholds."""
    sign, (low, high) = (1 if good > bad else -1), row.interval or (-math.inf, math.inf)
    reach = (row.value - low, high - row.value)[::sign]
    for inside, width in ((sign * (row.value - good), reach[0]), (sign * (bad - row.value), reach[1])):
        if inside > 0:
            return row.n * (width / inside) ** 2
    return math.inf


def advise(
    undecided: Sequence[Row], limits: Limits, audited: int, available: int | None = None, missing: str = ""
) -> str:
    """What would decide a verdict, as a sentence.

    `undecided`: rows without an answer.  `audited` texts were read, and `available` is the number of texts in the data.
    `missing`: the note of a missing measure that a yes needs.
    """
    parts = [advice for reason, advice in MISSING.items() if reason in missing]
    parts += [_more_texts(undecided, limits, audited, available)] if undecided else []
    sentence = "; ".join(filter(None, parts))
    return sentence and f"{sentence[:1].upper()}{sentence[1:]}."


def _more_texts(rows: Sequence[Row], limits: Limits, audited: int, available: int | None) -> str:
    if any(row.n < FEWEST or row.interval is None for row in rows):
        return f"audit more texts: a verdict needs at least {FEWEST}"
    needed = {row.measure: deciding_texts(row, *limits[row.measure]) for row in rows}
    no = [row for row in rows if _leans_to_no(row, *limits[row.measure]) and needed[row.measure] <= MOST]
    row = min(no, key=lambda item: needed[item.measure]) if no else max(rows, key=lambda item: needed[item.measure])
    if needed[row.measure] > MOST:
        good, bad = limits[row.measure]
        label = plain_label(row.measure)
        return (
            f"more texts are unlikely to decide it, because one score lies between the thresholds of yes and no, "
            f"{short_number(good)} and {short_number(bad)}, or close to one of them: {label[:1].lower()}{label[1:]}, "
            f"{number(row.value)}"
        )
    texts = _rounded_up(needed[row.measure])
    sampled = f"--sample {texts}" if row.n < audited else ""
    options = " ".join(filter(None, [f"--limit {texts}" if texts > audited else "", sampled]))
    if available is not None and texts > available:
        options = f"the data have {available:,}: label more texts, or hold out more with train --test-share"
    return f"audit about {texts:,} texts instead of {row.n:,} ({options})"


def _leans_to_no(row: Row, good: float, bad: float) -> bool:
    return row.value < bad if good > bad else row.value > bad


def _rounded_up(value: float) -> int:
    """
    >>> _rounded_up(231.2), _rounded_up(9)
    (240, 9)
    """
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step
