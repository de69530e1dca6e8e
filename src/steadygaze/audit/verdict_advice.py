"""Advice for verdicts: what would decide an undecided one, and what to try after a no.

The width of an interval falls with the square root of the number of texts.  A score decides with n (h / d)² texts: d is
its distance from the threshold, and h the part of its interval towards the threshold.  A score between both thresholds
decides with no number of texts.
"""

import math
from collections.abc import Mapping, Sequence

from steadygaze.audit.measures.shortcut_measures import FEWEST as TEXTS_PER_CLASS
from steadygaze.results.formatting import number, plain_label, short_number
from steadygaze.results.leakage_warnings import GAP, MITIGATION
from steadygaze.results.row import Row

FEWEST = 8
"""Minimum number of texts for a verdict."""
MOST = 100_000
"""Numbers of texts above this one are not advised."""
Limits = Mapping[str, tuple[float, float]]
"""Measure -> thresholds of yes and of no."""
SAME_TEXTS = "which one step of FGM shifts by"
"""In the note of PGD, if it ran on fewer texts than FGM."""
NO_SYNONYM_TABLE = "there is no synonym table"
FEW_TEXTS_OF_A_CLASS = "the position leak needs two classes"
"""Reasons why a measure is missing; the protocols begin their sentences with them."""
MISSING = {
    NO_SYNONYM_TABLE: "build a synonym table with steadygaze synonyms build wordnet --out synonyms.jsonl "
    "(English; extra wordnet), and pass it with --synonyms (synonyms=)",
    FEW_TEXTS_OF_A_CLASS: f"audit more texts, with at least {TEXTS_PER_CLASS} of each predicted class",
}
"""Reason in the note of a missing measure -> advice."""
CONSTANT_MODEL = (
    "compare the model with the most frequent label (steadygaze evaluate MODEL --data DATA), then train it for more "
    "epochs, with --balanced or with --vectors"
)
"""For a model whose prediction hardly depends on the words."""
OTHER_EXPLAINERS = {
    "integrated-gradients": "leave-one-out",
    "leave-one-out": "lime",
    "lime": "kernel-shap",
    "kernel-shap": "leave-one-out",
}
"""Explainer -> the one to audit next, which a black box has as well; all others: integrated-gradients."""
RATIONALE, ATTENTION = "rationale", "attention"


def advise_after_no(measure: str, explainer: str) -> str:
    """What to try if this measure leads to a no for this explainer, as a sentence with a command.

    >>> advise_after_no("kendall/randomized", "attention")
    'Audit another explainer of this model: steadygaze audit MODEL --data DATA --explainer integrated-gradients.'
    """
    if measure == GAP and explainer != RATIONALE:
        fit = f"fit-explainer MODEL --data DATA --explainer {explainer} --mitigation {MITIGATION} --out DIR"
        return f"Fit the explainer again with a mitigation: steadygaze {fit}."
    technique = _technique(measure, explainer)
    if technique:
        return f"Train a classifier with {technique} --out DIR."
    other = OTHER_EXPLAINERS.get(explainer, "integrated-gradients")
    return f"Audit another explainer of this model: steadygaze audit MODEL --data DATA --explainer {other}."


def _technique(measure: str, explainer: str) -> str:
    """The technique against this problem, with the command; empty if another explainer is the better advice."""
    if explainer == RATIONALE:
        name = "fresh" if measure == GAP else "a2r"
        return f"another rationalizer: steadygaze train DATA --technique {name}"
    if explainer != ATTENTION:
        return ""
    if measure.startswith("jensen-shannon/"):
        return "stable attention: steadygaze train DATA --technique consensus --set synonyms=TABLE"
    if measure in ("position-leak/shuffled", "default-mass/above-share"):
        return "a technique against shortcuts: steadygaze train DATA --technique random-pretraining"
    return ""


def deciding_texts(row: Row, good: float, bad: float) -> float:
    """The number of texts with which a score like this one decides; infinite between the thresholds."""
    sign, (low, high) = (1 if good > bad else -1), row.interval or (-math.inf, math.inf)
    reach = (row.value - low, high - row.value)[::sign]
    for inside, width in ((sign * (row.value - good), reach[0]), (sign * (bad - row.value), reach[1])):
        if inside > 0:
            return row.n * (width / inside) ** 2
    return math.inf


def advise(
    undecided: Sequence[Row],
    limits: Limits,
    audited: int,
    available: int | None = None,
    missing: str = "",
    first: str = "",
) -> str:
    """What would decide a verdict, as a sentence.

    `undecided`: rows without an answer.  `audited` texts were read, and `available` is the number of texts in the data.
    `missing`: the note of a missing measure that a yes needs.  `first`: other advice, which comes first.
    """
    parts = [first, *(advice for reason, advice in MISSING.items() if reason in missing)]
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
