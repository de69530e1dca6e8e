"""MEASURES: the description of each measure, for the tests, the report and `steadygaze list measures`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from steadygaze.audit.measures import (
    correctness_measures,
    faithfulness_measures,
    plausibility_measures,
    shortcut_measures,
    stability_measures,
)

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: its function, range, direction and citation."""

    function: Callable[..., Any]
    bounds: tuple[float, float]
    """Of the reported number: a mean over texts, or one number for a whole set."""
    direction: Better
    """`neither`: the sign depends on the probe, or the measure is descriptive."""
    sentence: str
    citation: str = "—"
    identical: float | None = None
    """The value for identical first two arguments; None if they cannot be identical."""
    symmetric: bool = False
    """Whether the first two arguments may be swapped."""
    per_example: bool = True
    """False: one number for a whole set."""


def measure_of(name: str) -> Measure:
    """The measure of a finding such as jensen-shannon/noise: its own entry, else the one before the slash."""
    return MEASURES.get(name) or MEASURES[name.partition("/")[0]]


_LN2 = math.log(2)
_UNIT, _SIGNED = (0.0, 1.0), (-1.0, 1.0)
_ERASER, _SEAT, _JAIN = "DeYoung et al. 2020", "Hu et al. 2022", "Jain & Wallace 2019"
_BAI, _YU, _YIN, _ADEBAYO = "Bai et al. 2021", "Yu et al. 2021", "Yin et al. 2022", "Adebayo et al. 2018"
_YEH = "Yeh et al. 2019"
_FAR = faithfulness_measures.LARGEST
# Settings that several measures share.
_shift = partial(Measure, bounds=_UNIT, direction="neither", identical=0, symmetric=True)
_correlation = partial(Measure, bounds=_SIGNED, direction="higher", identical=1, symmetric=True)
_erasure = partial(Measure, bounds=_SIGNED, direction="higher", citation=_ERASER, identical=0)
_position = partial(Measure, bounds=_UNIT, direction="neither", citation=_YU, identical=1)
_agreement = partial(Measure, bounds=_UNIT, direction="higher", citation=_ERASER, identical=1)
_micro = partial(_agreement, per_example=False)

MEASURES: dict[str, Measure] = {
    # Is the label right?
    "accuracy": Measure(correctness_measures.accuracy, _UNIT, "higher", "How often the predicted class is the label."),
    "macro-f1": Measure(
        correctness_measures.macro_f1,
        _UNIT,
        "higher",
        "F1 averaged over classes, with equal weight for each class.",
        per_example=False,
    ),
    "expected-calibration-error": Measure(
        correctness_measures.expected_calibration_error,
        _UNIT,
        "lower",
        "Mean difference between the confidence and the accuracy, over bins of confidence.",
        "Guo et al. 2017",
        per_example=False,
    ),
    # Does it hold still?
    "jensen-shannon": _shift(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        sentence="Shift of the explanation: Jensen–Shannon divergence in nats.",
        citation="Lin 1991",
    ),
    "jensen-shannon/adversarial": _shift(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        direction="lower",
        sentence="Largest divergence in nats of an attention that leaves the prediction unchanged.",
        citation=_JAIN,
    ),
    "jensen-shannon/randomised": _shift(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        direction="higher",
        sentence="Divergence in nats from the explanation of a model with random parameters.",
        citation=_ADEBAYO,
    ),
    "total-variation": _shift(
        stability_measures.total_variation, sentence="Share of the weight that shifted to other words."
    ),
    "top-k-overlap": _shift(
        stability_measures.top_k_overlap,
        sentence="Share of the top-k words that stay in the top k.",
        citation=_SEAT,
        identical=1,
    ),
    "prediction-change": _shift(
        stability_measures.prediction_change,
        sentence="Change of the predicted probabilities: total variation.",
        citation=_JAIN,
    ),
    "prediction-change/permuted": _shift(
        stability_measures.prediction_change,
        direction="higher",
        sentence="Change of the prediction when the weights are permuted; 0 if the model does not use them.",
        citation=_JAIN,
    ),
    "label-flip": _shift(stability_measures.label_flip, sentence="Share of texts whose predicted class changes."),
    "words-substituted": _shift(
        stability_measures.words_substituted, bounds=(0, math.inf), sentence="Number of substituted words."
    ),
    "normalized-entropy": Measure(
        stability_measures.normalized_entropy,
        _UNIT,
        "neither",
        "1: all words have the same weight; 0: one word has all the weight.",
    ),
    "distance-to-uniform": Measure(
        stability_measures.distance_to_uniform,
        (0, _LN2),
        "neither",
        "Divergence of the weights from uniform weights, in nats.",
        "Lin 1991",
    ),
    "collapsed": Measure(
        stability_measures.attention_collapse,
        _UNIT,
        "lower",
        "1: the weights do not depend on the text, so they are stable but explain nothing.",
        per_example=False,
    ),
    # Does it matter to the prediction?
    "comprehensiveness": _erasure(
        faithfulness_measures.comprehensiveness,
        sentence="Drop of the predicted probability when the top-weighted words are erased.",
    ),
    "sufficiency": _erasure(
        faithfulness_measures.sufficiency,
        direction="lower",
        sentence="Drop of the predicted probability when only the top-weighted words are left.",
    ),
    "post-hoc-accuracy": _erasure(
        faithfulness_measures.post_hoc_accuracy,
        bounds=_UNIT,
        sentence="How often the label stays the same when only the top-weighted words are left.",
        citation="Chen et al. 2018",
        identical=1,
    ),
    "flip-radius": Measure(
        faithfulness_measures.flip_radius,
        (0, _FAR),
        "lower",
        "Smallest change of the top-weighted words' embeddings that flips the label, in mean embedding norms.",
        _YIN,
    ),
    "flip-radius/above-random": Measure(
        faithfulness_measures.flip_radius_above_random,
        (-_FAR, _FAR),
        "lower",
        "Flip radius of the top-weighted words minus that of random words; below 0: better than random.",
        _YIN,
        0,
    ),
    "infidelity": Measure(
        faithfulness_measures.infidelity,
        _UNIT,
        "lower",
        "Mean squared error between the summed weights of removed words and the drop of the prediction.",
        _YEH,
        0,
    ),
    "max-sensitivity": Measure(
        faithfulness_measures.max_sensitivity,
        (0, math.inf),
        "lower",
        "Largest relative change of the explanation under small changes of the embeddings.",
        _YEH,
    ),
    "seat-sensitivity": Measure(
        faithfulness_measures.seat_sensitivity,
        (0, sum(faithfulness_measures.RADII) / len(faithfulness_measures.RADII) / 4),
        "lower",
        "Error of the prediction under the worst small change of all words; it ignores the explanation.",
        _SEAT,
    ),
    "pearson": _correlation(
        faithfulness_measures.pearson,
        sentence="Pearson correlation of two explanations over the words.",
        citation="Kitada & Iyatomi 2021",
    ),
    "kendall": _correlation(
        faithfulness_measures.kendall,
        sentence="Kendall rank correlation of two explanations over the words.",
        citation=_JAIN,
    ),
    "kendall/randomised": _correlation(
        faithfulness_measures.kendall,
        direction="lower",
        sentence="Rank correlation with the explanation of a model with random parameters.",
        citation=_ADEBAYO,
    ),
    # Is it more than position or a shortcut?
    "position-leak": Measure(
        shortcut_measures.position_leak,
        _SIGNED,
        "lower",
        "How much better the label can be predicted from the positions of the weight than from the text length.",
        _BAI,
        per_example=False,
    ),
    "default-mass": _position(
        shortcut_measures.default_mass,
        direction="lower",
        sentence="Share of the weight on tokens without content.",
        citation=_BAI,
    ),
    "default-mass/above-share": Measure(
        shortcut_measures.default_mass_above_share,
        _SIGNED,
        "lower",
        "Share of the weight on tokens without content, minus the share under uniform weights.",
        _BAI,
    ),
    "class-gap": Measure(
        shortcut_measures.class_gap,
        _UNIT,
        "lower",
        "Distance between the mean attentions of the classes, over positions that every text has.",
        _BAI,
        per_example=False,
    ),
    "independent-reader-accuracy": _agreement(
        shortcut_measures.independent_reader_accuracy,
        sentence="How often a classifier trained on random words predicts the same class from the selected words.",
        citation=_BAI,
    ),
    "leakage-gap": Measure(
        shortcut_measures.leakage_gap,
        _SIGNED,
        "lower",
        "How much more often a classifier trained on the selections predicts the same class.",
        _BAI,
        0,
    ),
    "first-sentence-share": _position(
        shortcut_measures.first_sentence_share,
        sentence="Share of the weight in the first sentence.",
    ),
    "first-sentence-share/above-rationale": Measure(
        shortcut_measures.first_sentence_above_rationale,
        _SIGNED,
        "lower",
        "Share of the weight in the first sentence, minus the share of the human rationale there.",
        _YU,
    ),
    "first-sentence-pick": _position(
        shortcut_measures.first_sentence_pick, sentence="How often the top-weighted word is in the first sentence."
    ),
    "first-sentence": _position(
        plausibility_measures.first_sentence,
        sentence="How often a word of the first sentence is selected (X₁), in texts with several sentences.",
    ),
    "selected-share": Measure(
        plausibility_measures.share, _UNIT, "neither", "Share of the words that are selected.", _YU
    ),
    "selected-spans": Measure(
        plausibility_measures.spans, (0, math.inf), "neither", "Number of separate selected spans.", _YU
    ),
    # Do people agree?
    "token-precision": _agreement(
        plausibility_measures.token_precision, sentence="Share of the chosen words that are in the human rationale."
    ),
    "token-recall": _agreement(
        plausibility_measures.token_recall, sentence="Share of the human rationale that is chosen."
    ),
    "token-f1": _agreement(
        plausibility_measures.token_f1, sentence="F1 of the chosen words against the human rationale."
    ),
    "token-precision-micro": _micro(
        plausibility_measures.token_precision_micro,
        sentence="Share of the chosen words that are in the human rationale, pooled over all texts.",
    ),
    "token-recall-micro": _micro(
        plausibility_measures.token_recall_micro,
        sentence="Share of the human rationales that is chosen, pooled over all texts.",
    ),
    "token-f1-micro": _micro(
        plausibility_measures.token_f1_micro, sentence="F1 of the chosen words, pooled over all texts."
    ),
    "iou-f1": _agreement(plausibility_measures.iou_f1, sentence="F1 of spans that overlap by half or more."),
    "rationale-mass": _agreement(
        plausibility_measures.rationale_mass,
        sentence="Share of the weight on the human rationale.",
        citation="—",
    ),
    "average-precision": _agreement(
        plausibility_measures.average_precision,
        sentence="How well the weights rank the human rationale first: mean precision at its words.",
        citation="—",
    ),
    "auprc": _agreement(
        plausibility_measures.auprc,
        sentence="How well the weights rank the human rationale first: area under the precision–recall curve.",
    ),
    "average-precision/above-random": _agreement(
        plausibility_measures.average_precision_above_random,
        bounds=_SIGNED,
        sentence="Average precision minus that of a random order of the words.",
        identical=None,
    ),
}
