"""MEASURES: what each number is, once.  Read by the tests, the report and `steadygaze list measures`."""

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
    """One measure: the function and the facts about it."""

    function: Callable[..., Any]
    bounds: tuple[float, float]
    """Of the number that is reported: a mean over texts, or one for a whole set."""
    direction: Better
    """Neither: a number that is good under one change and bad under another, or no merit at all."""
    sentence: str
    citation: str = "—"
    identical: float | None = None
    """The value where the first two arguments are identical; None where they cannot be."""
    symmetric: bool = False
    """Whether the first two arguments may change places."""
    per_example: bool = True
    """False: one number for a whole set."""


def measure_of(name: str) -> Measure:
    """Of a finding, such as jensen-shannon/noise: its own facts where it has some, else those before the slash."""
    return MEASURES.get(name) or MEASURES[name.partition("/")[0]]


_LN2 = math.log(2)
_UNIT, _SIGNED = (0.0, 1.0), (-1.0, 1.0)
_ERASER, _SEAT, _JAIN = "DeYoung et al. 2020", "Hu et al. 2022", "Jain & Wallace 2019"
_BAI, _YU, _YIN, _ADEBAYO = "Bai et al. 2021", "Yu et al. 2021", "Yin et al. 2022", "Adebayo et al. 2018"
_YEH = "Yeh et al. 2019"
_FAR = faithfulness_measures.LARGEST
# What many have in common, so that each fact is written once.
_moves = partial(Measure, bounds=_UNIT, direction="neither", identical=0, symmetric=True)
_alike = partial(Measure, bounds=_SIGNED, direction="higher", identical=1, symmetric=True)
_erased = partial(Measure, bounds=_SIGNED, direction="higher", citation=_ERASER, identical=0)
_place = partial(Measure, bounds=_UNIT, direction="neither", citation=_YU, identical=1)
_agreed = partial(Measure, bounds=_UNIT, direction="higher", citation=_ERASER, identical=1)
_micro = partial(_agreed, per_example=False)

MEASURES: dict[str, Measure] = {
    # Is the label right?
    "accuracy": Measure(correctness_measures.accuracy, _UNIT, "higher", "How often the predicted class is the label."),
    "macro-f1": Measure(
        correctness_measures.macro_f1,
        _UNIT,
        "higher",
        "F1 of each class, every class counting alike.",
        per_example=False,
    ),
    "expected-calibration-error": Measure(
        correctness_measures.expected_calibration_error,
        _UNIT,
        "lower",
        "How far the stated confidence is from the share of right answers.",
        "Guo et al. 2017",
        per_example=False,
    ),
    # Does it hold still?
    "jensen-shannon": _moves(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        sentence="How far the explanation moved, in nats.",
        citation="Lin 1991",
    ),
    "jensen-shannon/adversarial": _moves(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        direction="lower",
        sentence="How far another attention can be from this one without the prediction moving, in nats.",
        citation=_JAIN,
    ),
    "jensen-shannon/randomised": _moves(
        stability_measures.jensen_shannon,
        bounds=(0, _LN2),
        direction="higher",
        sentence="How far the explanation of a model of random weights is from this one, in nats.",
        citation=_ADEBAYO,
    ),
    "total-variation": _moves(
        stability_measures.total_variation, sentence="How much of the weight moved to other words."
    ),
    "top-k-overlap": _moves(
        stability_measures.top_k_overlap,
        sentence="Which part of the k heaviest words stayed among them.",
        citation=_SEAT,
        identical=1,
    ),
    "prediction-change": _moves(
        stability_measures.prediction_change,
        sentence="How much of the predicted probability moved to other classes.",
        citation=_JAIN,
    ),
    "prediction-change/permuted": _moves(
        stability_measures.prediction_change,
        direction="higher",
        sentence="How far the prediction moves when the weights are shuffled; not at all where it does not use them.",
        citation=_JAIN,
    ),
    "label-flip": _moves(stability_measures.label_flip, sentence="How often the predicted class changed."),
    "words-substituted": _moves(
        stability_measures.words_substituted, bounds=(0, math.inf), sentence="How many words were exchanged to see it."
    ),
    "normalized-entropy": Measure(
        stability_measures.normalized_entropy,
        _UNIT,
        "neither",
        "1: all words weigh alike; 0: one word has all the weight.",
    ),
    "distance-to-uniform": Measure(
        stability_measures.distance_to_uniform,
        (0, _LN2),
        "neither",
        "How far the weights are from all alike, in nats.",
        "Lin 1991",
    ),
    "collapsed": Measure(
        stability_measures.attention_collapse,
        _UNIT,
        "lower",
        "1: the weights say the same whatever the text, so that they hold still and mean nothing.",
        per_example=False,
    ),
    # Does it matter to the prediction?
    "comprehensiveness": _erased(
        faithfulness_measures.comprehensiveness,
        sentence="What the predicted class loses when the heaviest words are erased.",
    ),
    "sufficiency": _erased(
        faithfulness_measures.sufficiency,
        direction="lower",
        sentence="What the predicted class loses when only the heaviest words are left.",
    ),
    "post-hoc-accuracy": _erased(
        faithfulness_measures.post_hoc_accuracy,
        bounds=_UNIT,
        sentence="How often the label stays when only the heaviest words are left.",
        citation="Chen et al. 2018",
        identical=1,
    ),
    "flip-radius": Measure(
        faithfulness_measures.flip_radius,
        (0, _FAR),
        "lower",
        "How far the heaviest words' vectors must move to turn the label, in lengths of a word vector.",
        _YIN,
    ),
    "flip-radius/above-random": Measure(
        faithfulness_measures.flip_radius_above_random,
        (-_FAR, _FAR),
        "lower",
        "How much further the heaviest words must move than words drawn at random; below 0: less far.",
        _YIN,
        0,
    ),
    "infidelity": Measure(
        faithfulness_measures.infidelity,
        _UNIT,
        "lower",
        "How far what the weights of removed words add up to is from what the prediction loses, squared.",
        _YEH,
        0,
    ),
    "max-sensitivity": Measure(
        faithfulness_measures.max_sensitivity,
        (0, math.inf),
        "lower",
        "How far the explanation moves at most where word vectors hardly move, in lengths of itself.",
        _YEH,
    ),
    "seat-sensitivity": Measure(
        faithfulness_measures.seat_sensitivity,
        (0, sum(faithfulness_measures.RADII) / len(faithfulness_measures.RADII) / 4),
        "lower",
        "How wrong the worst small change of all words makes the prediction; it does not look at the explanation.",
        _SEAT,
    ),
    "pearson": _alike(
        faithfulness_measures.pearson,
        sentence="Whether two explanations give the same words the same share.",
        citation="Kitada & Iyatomi 2021",
    ),
    "kendall": _alike(
        faithfulness_measures.kendall,
        sentence="Whether two explanations put the words in the same order.",
        citation=_JAIN,
    ),
    "kendall/randomised": _alike(
        faithfulness_measures.kendall,
        direction="lower",
        sentence="Whether a model of random weights orders the words alike: then the order says nothing of this one.",
        citation=_ADEBAYO,
    ),
    # Is it more than position or a shortcut?
    "position-leak": Measure(
        shortcut_measures.position_leak,
        _SIGNED,
        "lower",
        "How much likelier the right guess of the label becomes when the places of the weight are known, but no word.",
        _BAI,
        per_example=False,
    ),
    "default-mass": _place(
        shortcut_measures.default_mass,
        direction="lower",
        sentence="Which part of the weight lies on tokens with nothing to read.",
        citation=_BAI,
    ),
    "default-mass/above-share": Measure(
        shortcut_measures.default_mass_above_share,
        _SIGNED,
        "lower",
        "How much more of the weight lies on tokens with nothing to read than even weights would put there.",
        _BAI,
    ),
    "class-gap": Measure(
        shortcut_measures.class_gap,
        _UNIT,
        "lower",
        "How far the mean attentions of the classes are apart where every text has the same places.",
        _BAI,
        per_example=False,
    ),
    "independent-reader-accuracy": _agreed(
        shortcut_measures.independent_reader_accuracy,
        sentence="How often a classifier trained on random words gives the predicted class from the selected words.",
        citation=_BAI,
    ),
    "leakage-gap": Measure(
        shortcut_measures.leakage_gap,
        _SIGNED,
        "lower",
        "How much more often the network trained on the selections gives the predicted class than that classifier.",
        _BAI,
        0,
    ),
    "first-sentence-share": _place(
        shortcut_measures.first_sentence_share,
        sentence="Which part of the weight lies in the first sentence: a place, not a reason.",
    ),
    "first-sentence-share/above-rationale": Measure(
        shortcut_measures.first_sentence_above_rationale,
        _SIGNED,
        "lower",
        "How much more of the weight lies in the first sentence than is due to it.",
        _YU,
    ),
    "first-sentence-pick": _place(
        shortcut_measures.first_sentence_pick, sentence="How often the heaviest word is in the first sentence."
    ),
    "first-sentence": _place(
        plausibility_measures.first_sentence,
        sentence="How often something of the first sentence is selected (X₁), where there are others to choose.",
    ),
    "selected-share": Measure(
        plausibility_measures.share, _UNIT, "neither", "Which part of the words is selected.", _YU
    ),
    "selected-spans": Measure(plausibility_measures.spans, (0, math.inf), "neither", "In how many pieces.", _YU),
    # Do people agree?
    "token-precision": _agreed(
        plausibility_measures.token_precision, sentence="Which part of the chosen words a person marked too."
    ),
    "token-recall": _agreed(
        plausibility_measures.token_recall, sentence="Which part of the words a person marked was chosen."
    ),
    "token-f1": _agreed(
        plausibility_measures.token_f1, sentence="Precision and recall of the chosen words in one number."
    ),
    "token-precision-micro": _micro(
        plausibility_measures.token_precision_micro,
        sentence="Which part of all chosen words was marked too, over all texts.",
    ),
    "token-recall-micro": _micro(
        plausibility_measures.token_recall_micro, sentence="Which part of all marked words was chosen, over all texts."
    ),
    "token-f1-micro": _micro(
        plausibility_measures.token_f1_micro, sentence="Precision and recall of the words of all texts in one number."
    ),
    "iou-f1": _agreed(
        plausibility_measures.iou_f1, sentence="Precision and recall of runs of words that match by half or more."
    ),
    "rationale-mass": _agreed(
        plausibility_measures.rationale_mass,
        sentence="Which part of the weight lies on words a person marked.",
        citation="—",
    ),
    "average-precision": _agreed(
        plausibility_measures.average_precision,
        sentence="How well the weights rank marked words above the others, as the mean precision at marked words.",
        citation="—",
    ),
    "auprc": _agreed(
        plausibility_measures.auprc,
        sentence="How well the weights rank marked words above the others, as the area under precision by recall.",
    ),
    "average-precision/above-random": _agreed(
        plausibility_measures.average_precision_above_random,
        bounds=_SIGNED,
        sentence="How much better than a random order the weights rank marked words above the others.",
        identical=None,
    ),
}
