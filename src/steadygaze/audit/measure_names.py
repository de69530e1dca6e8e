"""How an audit calls its numbers: a measure, or a measure and after a slash what was done or compared with.

Every audit has a row of each name, a number or the reason why there is none.  No torch: a gate asks before it runs.
"""

from steadygaze.core.errors import UserError, unknown

PROBES = {
    "noise": "A little noise was added to the vector of every word.",
    "fgm-label": "Every vector was moved a little, as is worst for the label.",
    "pgd-attention": "Every vector was moved a little, as moves what the model shows most.",
    "1-synonym": "One word was exchanged for a synonym.",
    "3-synonyms": "Three words were exchanged for synonyms.",
    "1-synonym-kept": "One word was exchanged for a synonym, and the label stayed.",
    "3-synonyms-kept": "Three words were exchanged for synonyms, and the label stayed.",
    "seeds": "Compared with models trained alike with another seed.",
    "others": "Compared with models that were not trained alike.",
    "above-random": "Minus the same for random words.",
    **{f"{size}%": f"At one size: {size} % of the words." for size in (1, 5, 10, 20, 50)},
    "permuted": "The weights were shuffled among the words.",
    "adversarial": "Other weights that leave the prediction as it is.",
    "randomised": "Compared with a model of random weights.",
    "gradient": "Compared with the gradient, the attention held fixed.",
    "gradient-through-attention": "Compared with the gradient, which flows through the attention too.",
    "uniform": "Of another model, trained with its attention held uniform.",
    "above-uniform": "Minus the same for a model trained with its attention held uniform.",
    "trained-adversary": "Compared with a model trained to predict the same and to look elsewhere.",
    "shuffled": "The words of each text were shuffled, and the text was read again.",
    "above-share": "Minus the share of such tokens among the words.",
    "above-rationale": "Minus what is due to it by what people marked, or by its length if that is more.",
    "default-tokens": "Of another model, trained to look at four tokens that say nothing and at five words.",
    "selected": "Of the words that were selected, however many; 0 where none was.",
    "rationales": "Of what a person marked, in place of what was selected.",
    "random-words": "Of as many words drawn at random, in place of the selected ones.",
    "no-words": "Of no words: the class that the classifier gives to every text.",
    "by-class": "Of the texts with one predicted class; the row names the class.",
    "black-box": "Against the explained model, which reads the selected words alone.",
    "biased": "Of another model, trained where a token in front agrees with the label in 80 % of the texts.",
    "skewed": "Of another model, whose predictor first learnt from the first sentence alone.",
}
"""What was done, or compared with, as a report says it."""

_VECTORS, _WORDS = ("noise", "fgm-label", "pgd-attention"), ("1-synonym", "3-synonyms")
_MOVED, _KEPT, _MODELS = (*_VECTORS, *_WORDS), tuple(f"{probe}-kept" for probe in _WORDS), ("seeds", "others")
_SIZES = tuple(probe for probe in PROBES if probe.endswith("%"))
_GRADIENTS, _ITSELF = ("gradient", "gradient-through-attention"), ("",)

MEASURE_PROBES: dict[str, tuple[str, ...]] = {
    "accuracy": ("", "uniform", "above-uniform"),
    "macro-f1": _ITSELF,
    "expected-calibration-error": _ITSELF,
    "jensen-shannon": (*_MOVED, *_MODELS, "adversarial", "randomised", "trained-adversary"),
    "top-k-overlap": (*_MOVED, *_KEPT, *_MODELS),
    "kendall": (*_MOVED, *_KEPT, *_GRADIENTS, "randomised"),
    "pearson": _GRADIENTS,
    "prediction-change": (*_MOVED, *_MODELS, "permuted", "trained-adversary"),
    "label-flip": (*_MOVED, *_MODELS),
    "words-substituted": _WORDS,
    "normalized-entropy": _ITSELF,
    "distance-to-uniform": _ITSELF,
    "collapsed": _ITSELF,
    "comprehensiveness": ("", "above-random", *_SIZES),
    "sufficiency": ("", *_SIZES),
    "post-hoc-accuracy": _ITSELF,
    "flip-radius": ("", "above-random"),
    "seat-sensitivity": _ITSELF,
    "infidelity": _ITSELF,
    "max-sensitivity": _ITSELF,
    "position-leak": ("", "shuffled"),
    "default-mass": ("", "above-share", "default-tokens"),
    "class-gap": ("default-tokens",),
    "independent-reader-accuracy": ("", "random-words", "no-words", "by-class"),
    "leakage-gap": ("", "black-box"),
    "first-sentence-share": ("", "above-rationale"),
    "first-sentence-pick": _ITSELF,
    "first-sentence": ("", "rationales", "biased", "skewed"),
    "selected-share": _ITSELF,
    "selected-spans": _ITSELF,
    "token-precision": ("", "selected"),
    "token-recall": ("", "selected"),
    "token-f1": ("", "selected"),
    "token-precision-micro": ("", "selected"),
    "token-recall-micro": ("", "selected"),
    "token-f1-micro": ("", "selected"),
    "iou-f1": _ITSELF,
    "average-precision": ("", "above-random"),
    "auprc": _ITSELF,
    "rationale-mass": _ITSELF,
}
"""Measure -> under what; '': the measure itself."""


def measure_names(*measures: str) -> list[str]:
    """All names of these measures.

    >>> measure_names("pearson", "average-precision")
    ['pearson/gradient', 'pearson/gradient-through-attention', 'average-precision', 'average-precision/above-random']
    """
    return [f"{measure}/{probe}" if probe else measure for measure in measures for probe in MEASURE_PROBES[measure]]


NAMES = tuple(measure_names(*MEASURE_PROBES))


def probe_names(*probes: str) -> list[str]:
    """All names that end so.

    >>> probe_names("seeds")
    ['jensen-shannon/seeds', 'top-k-overlap/seeds', 'prediction-change/seeds', 'label-flip/seeds']
    """
    return [name for name in NAMES if name.partition("/")[2] in probes]


def check_name(name: str) -> None:
    """Refused where no audit has such a number: what it would be called is said."""
    if name in NAMES:
        return
    measure = name.partition("/")[0]
    if measure not in MEASURE_PROBES:
        raise unknown("measure", name, MEASURE_PROBES)
    raise UserError(f"no audit has a number called {name}; of {measure} it has {', '.join(measure_names(measure))}")
