"""Measure: a function of explanations or predictions, with its description, its probes and its comparison columns."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steadygaze.results.comparison import Column
from steadygaze.results.row import Better, MeasureKey

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
    "randomized": "Compared with a model with random parameters.",
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
    "raw": "Without the rule that a text has no gap if any selection of it gives the prediction.",
    "black-box": "Compared with the explained model, applied to the selected words alone.",
    "biased": "For a model retrained with a token in front that matches the label in 80 % of the texts.",
    "skewed": "For a model retrained with a predictor that was first trained on first sentences alone.",
}
"""Descriptions of the probes and comparisons, for the report."""
SUBSTITUTIONS = ("1-synonym", "3-synonyms")
PERTURBATIONS = ("noise", "fgm-label", "pgd-attention", *SUBSTITUTIONS)
LABEL_KEPT = tuple(f"{probe}-kept" for probe in SUBSTITUTIONS)
OTHER_MODELS = ("seeds", "others")
SIZES = tuple(probe for probe in PROBES if probe.endswith("%"))
GRADIENTS = ("gradient", "gradient-through-attention")

UNIT, SIGNED = (0.0, 1.0), (-1.0, 1.0)
JAIN, SEAT, ADEBAYO = "Jain & Wallace 2019", "Hu et al. 2022", "Adebayo et al. 2018"
BAI, YU, ERASER = "Bai et al. 2021", "Yu et al. 2021", "DeYoung et al. 2020"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, or one probe of a measure that differs in its description: jensen-shannon/adversarial."""

    name: str
    function: Callable[..., Any]
    bounds: tuple[float, float]
    """Of the reported number: a mean over texts, or one number for a whole set."""
    direction: Better
    """`neither`: the sign depends on the probe, or the measure is descriptive."""
    citation: str = "—"
    description: str = ""
    """Empty: the first sentence of the function's docstring."""
    identical: float | None = None
    """The value for identical first two arguments; None if they cannot be identical."""
    symmetric: bool = False
    """Whether the first two arguments may be swapped."""
    per_example: bool = True
    """False: one number for a whole set."""
    proportion: bool = False
    """Whether each text has 0 or 1, so that the mean is a share of texts, with Wilson's interval."""
    probes: tuple[str, ...] = ("",)
    """Its rows in an audit: a probe or comparison each; '' is the measure itself."""
    columns: Mapping[int, Column] = field(default_factory=dict)
    """Position in the table of a comparison -> column."""

    @property
    def sentence(self) -> str:
        return self.description or re.split(r"  |\n", str(self.function.__doc__))[0]

    @property
    def keys(self) -> list[MeasureKey]:
        """The keys of its rows."""
        key = MeasureKey.parse(self.name)
        return [MeasureKey(key.measure, key.probe or probe) for probe in self.probes]
