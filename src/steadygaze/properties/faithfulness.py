"""Faithfulness: do the highlighted words matter to the prediction?"""

from steadygaze.properties.measures import faithfulness_measures
from steadygaze.properties.measures.faithfulness_measures import ERASED, RELATIVE_ROWS
from steadygaze.properties.measures.measure import GRADIENTS, SIZES
from steadygaze.properties.property import Check, Property, Rule, Threshold
from steadygaze.properties.protocols.faithfulness import (
    ERASURE_ROWS,
    attention_interventions,
    erasure,
    gradient_agreement,
    infidelity,
)
from steadygaze.properties.protocols.fidelity import FIDELITY_ROWS, fidelity
from steadygaze.properties.protocols.flip_radius import FLIP_ROWS, flip_radius
from steadygaze.properties.protocols.relative_erasure import relative_erasure
from steadygaze.properties.protocols.selection import GAP_THRESHOLD
from steadygaze.properties.protocols.shapley_agreement import NAME as SHAPLEY_AGREEMENT
from steadygaze.properties.protocols.shapley_agreement import shapley_agreement
from steadygaze.properties.protocols.soft_stability import soft_stability

RELATIVE = 0.6, 0.55
"""Shares of the way from shuffled weights to the best known order of words, from the training worlds of
studies/oracles: explainers that are right on half of the texts reach 0.5, exact ones 0.67 to 1."""
_SENTENCES = {
    "comprehensiveness/relative": "removing the highlighted words has {value} of the effect of the best known words",
    "sufficiency/relative": "keeping only the highlighted words has {value} of the effect of the best known words",
    "comprehensiveness/relative-filled": "replacing the highlighted words by words of other texts has {value} of the "
    "effect of the best known words",
    "sufficiency/relative-filled": "replacing all other words by words of other texts has {value} of the effect of the "
    "best known words",
}
_TOGETHER = tuple(tuple(row for row in RELATIVE_ROWS if row.startswith(name)) for name in ERASED)
"""Removal and replacement: a no needs both.  If one alone fails, the new words may be the reason."""
FAITHFULNESS = Property(
    "faithfulness",
    "Faithfulness",
    "Do the highlighted words matter to the prediction?",
    "Do the words matter?",
    faithfulness_measures.MEASURES,
    (
        Check(erasure, ERASURE_ROWS),
        Check(relative_erasure, RELATIVE_ROWS),
        Check(shapley_agreement, (SHAPLEY_AGREEMENT,)),
        Check(gradient_agreement, tuple(f"{name}/{kind}" for name in ("pearson", "kendall") for kind in GRADIENTS)),
        Check(attention_interventions),
        Check(flip_radius, FLIP_ROWS, thorough=True),
        Check(infidelity, ("infidelity",), thorough=True),
        Check(soft_stability, ("soft-stability",), thorough=True),
        Check(fidelity, FIDELITY_ROWS, thorough=True),
    ),
    conditions={
        "above-random": "Minus the same for random words.",
        "relative": "Between shuffled weights (0) and the best known order of words (1).",
        "relative-filled": "The same, with words of other texts in place of erased words.",
        "permuted": "Attention weights permuted among the words.",
        "adversarial": "Other attention weights that leave the prediction unchanged.",
        "randomized": "Compared with a model with random parameters.",
        "gradient": "Compared with the gradient, with the attention detached.",
        "gradient-through-attention": "Compared with the gradient, including the gradient through the attention.",
        "uniform": "For a model retrained with uniform attention.",
        "above-uniform": "Minus the same for a model retrained with uniform attention.",
        "trained-adversary": "Compared with a model trained to predict the same with a different attention.",
        **{size: f"At one size: {size[:-1]} % of the words." for size in SIZES},
    },
    rule=Rule(
        {
            **{row: Threshold(*RELATIVE, sentence) for row, sentence in _SENTENCES.items()},
            "kendall/randomized": Threshold(
                0.3, 0.5, "the rank correlation with a model of random parameters is {value}"
            ),
            "leakage-gap": GAP_THRESHOLD,
        },
        RELATIVE_ROWS,
        together=_TOGETHER,
    ),
    meanings={
        "yes": "The model uses the highlighted words: without them the prediction changes.",
        "undecided": "These scores do not show how much the model uses the highlighted words.",
        "no": "The highlighted words may not be the reason: in at least one test they made little difference.",
    },
)
