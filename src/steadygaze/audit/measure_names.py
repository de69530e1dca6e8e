"""Names of an audit's rows: a measure, or a measure, a slash and a probe or comparison.

Every audit has a row for each name, with a number or the reason why it is missing.  This module does not import torch.
"""

from steadygaze.core.errors import UserError, unknown

PROBES = {
    "noise": "Uniform noise on the embedding of every word.",
    "fgm-label": "FGM on the label: one gradient step on the embeddings against the predicted label.",
    "pgd-attention": "PGD: the change of the embeddings that shifts the model's weights most.",
    "1-synonym": "One word substituted by a synonym.",
    "3-synonyms": "Three words substituted by synonyms.",
    "1-synonym-kept": "One word substituted by a synonym; texts that keep their label.",
    "3-synonyms-kept": "Three words substituted by synonyms; texts that keep their label.",
    "seeds": "Compared with models trained with other seeds.",
    "others": "Compared with models trained with other settings.",
    "above-random": "Minus the same for random words.",
    **{f"{size}%": f"At one size: {size} % of the words." for size in (1, 5, 10, 20, 50)},
    "permuted": "Attention weights permuted among the words.",
    "adversarial": "Other attention weights that leave the prediction unchanged.",
    "randomised": "Compared with a model with random parameters.",
    "gradient": "Compared with the gradient, with the attention detached.",
    "gradient-through-attention": "Compared with the gradient, including the gradient through the attention.",
    "uniform": "For a model retrained with uniform attention.",
    "above-uniform": "Minus the same for a model retrained with uniform attention.",
    "trained-adversary": "Compared with a model trained to predict the same with a different attention.",
    "shuffled": "With the words of each text shuffled.",
    "above-share": "Minus the share of such tokens among the words.",
    "above-rationale": "Minus the share of the human rationale or of all words there, whichever is larger.",
    "default-tokens": "For a model retrained to attend to four tokens without content and five words only.",
    "selected": "For the selected words; 0 if none is selected.",
    "rationales": "For the human rationales instead of the selection.",
    "random-words": "For as many random words instead of the selected ones.",
    "no-words": "For no words: the class that the classifier predicts for every text.",
    "by-class": "For the texts with one predicted class; the row names the class.",
    "black-box": "Compared with the explained model, applied to the selected words alone.",
    "biased": "For a model retrained with a token in front that matches the label in 80 % of the texts.",
    "skewed": "For a model retrained with a predictor that was first trained on first sentences alone.",
}
"""Descriptions of the probes and comparisons, for the report."""

_VECTORS, _WORDS = ("noise", "fgm-label", "pgd-attention"), ("1-synonym", "3-synonyms")
_PERTURBATIONS, _KEPT, _MODELS = (*_VECTORS, *_WORDS), tuple(f"{probe}-kept" for probe in _WORDS), ("seeds", "others")
_SIZES = tuple(probe for probe in PROBES if probe.endswith("%"))
_GRADIENTS, _PLAIN = ("gradient", "gradient-through-attention"), ("",)

MEASURE_PROBES: dict[str, tuple[str, ...]] = {
    "accuracy": ("", "uniform", "above-uniform"),
    "macro-f1": _PLAIN,
    "expected-calibration-error": _PLAIN,
    "jensen-shannon": (*_PERTURBATIONS, *_MODELS, "adversarial", "randomised", "trained-adversary"),
    "top-k-overlap": (*_PERTURBATIONS, *_KEPT, *_MODELS),
    "kendall": (*_PERTURBATIONS, *_KEPT, *_GRADIENTS, "randomised"),
    "pearson": _GRADIENTS,
    "prediction-change": (*_PERTURBATIONS, *_MODELS, "permuted", "trained-adversary"),
    "label-flip": (*_PERTURBATIONS, *_MODELS),
    "words-substituted": _WORDS,
    "normalized-entropy": _PLAIN,
    "distance-to-uniform": _PLAIN,
    "collapsed": _PLAIN,
    "comprehensiveness": ("", "above-random", *_SIZES),
    "sufficiency": ("", *_SIZES),
    "post-hoc-accuracy": _PLAIN,
    "flip-radius": ("", "above-random"),
    "seat-sensitivity": _PLAIN,
    "infidelity": _PLAIN,
    "max-sensitivity": _PLAIN,
    "position-leak": ("", "shuffled"),
    "default-mass": ("", "above-share", "default-tokens"),
    "class-gap": ("default-tokens",),
    "independent-reader-accuracy": ("", "random-words", "no-words", "by-class"),
    "leakage-gap": ("", "black-box"),
    "first-sentence-share": ("", "above-rationale"),
    "first-sentence-pick": _PLAIN,
    "first-sentence": ("", "rationales", "biased", "skewed"),
    "selected-share": _PLAIN,
    "selected-spans": _PLAIN,
    "token-precision": ("", "selected"),
    "token-recall": ("", "selected"),
    "token-f1": ("", "selected"),
    "token-precision-micro": ("", "selected"),
    "token-recall-micro": ("", "selected"),
    "token-f1-micro": ("", "selected"),
    "iou-f1": _PLAIN,
    "average-precision": ("", "above-random"),
    "auprc": _PLAIN,
    "rationale-mass": _PLAIN,
}
"""Measure -> its probes and comparisons; '': the measure itself."""


def measure_names(*measures: str) -> list[str]:
    """All names of these measures.

    >>> measure_names("pearson", "average-precision")
    ['pearson/gradient', 'pearson/gradient-through-attention', 'average-precision', 'average-precision/above-random']
    """
    return [f"{measure}/{probe}" if probe else measure for measure in measures for probe in MEASURE_PROBES[measure]]


NAMES = tuple(measure_names(*MEASURE_PROBES))


def probe_names(*probes: str) -> list[str]:
    """All names with these probes.

    >>> probe_names("seeds")
    ['jensen-shannon/seeds', 'top-k-overlap/seeds', 'prediction-change/seeds', 'label-flip/seeds']
    """
    return [name for name in NAMES if name.partition("/")[2] in probes]


def check_name(name: str) -> None:
    """Raise an error if no audit has a row of this name."""
    if name in NAMES:
        return
    measure = name.partition("/")[0]
    if measure not in MEASURE_PROBES:
        raise unknown("measure", name, MEASURE_PROBES)
    raise UserError(f"{name} is not the name of a row; the rows of {measure} are {', '.join(measure_names(measure))}")
