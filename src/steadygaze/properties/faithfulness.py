"""Faithfulness: do the highlighted words matter to the prediction?"""

from steadygaze.properties.measures import faithfulness_measures
from steadygaze.properties.measures.measure import GRADIENTS, SIZES
from steadygaze.properties.property import Check, Property, Rule, Threshold
from steadygaze.properties.protocols.faithfulness import (
    ERASURE_ROWS,
    attention_interventions,
    erasure,
    gradient_agreement,
    infidelity,
)
from steadygaze.properties.protocols.flip_radius import FLIP_ROWS, flip_radius
from steadygaze.properties.protocols.selection import GAP_THRESHOLD

FAITHFULNESS = Property(
    "faithfulness",
    "Faithfulness",
    "Do the highlighted words matter to the prediction?",
    "Do the words matter?",
    faithfulness_measures.MEASURES,
    (
        Check(erasure, ERASURE_ROWS),
        Check(gradient_agreement, tuple(f"{name}/{kind}" for name in ("pearson", "kendall") for kind in GRADIENTS)),
        Check(attention_interventions),
        Check(flip_radius, FLIP_ROWS, thorough=True),
        Check(infidelity, ("infidelity",), thorough=True),
    ),
    conditions={
        "above-random": "Minus the same for random words.",
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
            "comprehensiveness/above-random": Threshold(
                0.05,
                0.02,
                "erasing the highlighted words lowers the probability by {size} {more} than random words",
                needs_drop=True,
            ),
            "prediction-change/permuted": Threshold(
                0.02, 0.01, "permuting the weights changes the prediction by {value}", needs_drop=True
            ),
            "kendall/randomized": Threshold(
                0.3, 0.5, "the rank correlation with a model of random parameters is {value}"
            ),
            "leakage-gap": GAP_THRESHOLD,
        },
        ("comprehensiveness/above-random",),
    ),
    meanings={
        "yes": "The model uses the highlighted words: without them the prediction changes.",
        "undecided": "These scores do not show how much the model uses the highlighted words.",
        "no": "The highlighted words may not be the reason: in at least one test they made little difference.",
    },
)
