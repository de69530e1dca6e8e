"""Plain names of the measures that decide verdicts, for pages and sentences; the technical name stands beside them."""

from collections.abc import Mapping

PLAIN_LABELS: Mapping[str, str] = {
    "collapsed": "Weights that do not depend on the text",
    "jensen-shannon/noise": "Shift under small random noise",
    "jensen-shannon/fgm-label": "Shift under a small change of the input against the predicted label",
    "jensen-shannon/pgd-attention": "Largest shift that a search for a small change of the input finds",
    "jensen-shannon/1-synonym": "Shift when one word is substituted by a synonym",
    "jensen-shannon/3-synonyms": "Shift when three words are substituted by synonyms",
    "jensen-shannon/seeds": "Difference between models trained with other seeds",
    "comprehensiveness/above-random": "Probability lost without the highlighted words, more than without random words",
    "prediction-change/permuted": "Change of the prediction when the weights are permuted",
    "kendall/randomized": "Similarity to the explanation of a model with random parameters",
    "leakage-gap": "Label recovered from the selection alone, more often than by an independent reader",
    "position-leak/shuffled": "Label predicted from the positions of the weight, with shuffled words",
    "default-mass/above-share": "Weight on punctuation and other tokens without content, above their share",
    "first-sentence-share/above-rationale": "Weight on the first sentence, above what its length or people explain",
    "average-precision/above-random": "Agreement with human rationales, above a random order",
}
SCALES: Mapping[str, str] = {
    "jensen-shannon": "0: the same words, 0.69: entirely different words",
    "comprehensiveness": "0.1: ten percentage points of probability",
    "prediction-change": "0.1: ten percentage points of probability",
    "kendall": "0: unrelated, 1: the same order of words",
    "leakage-gap": "0.1: ten percent of the texts",
    "position-leak": "0: no better than guessing, 1: every label",
    "default-mass": "0.1: ten percent of the weight",
    "first-sentence-share": "0.1: ten percent of the weight",
    "average-precision": "0: no better than chance, 1: perfect",
}
"""Measure without its probe -> how to read the number."""


def plain_label(measure: str) -> str:
    """The plain name, or the technical one if there is none."""
    return PLAIN_LABELS.get(measure, measure)


def scale(measure: str) -> str:
    """
    >>> scale("kendall/randomized"), scale("collapsed")
    ('0: unrelated, 1: the same order of words', '')
    """
    return SCALES.get(measure.split("/")[0], "")
