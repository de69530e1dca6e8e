"""Plausibility: does the explanation agree with human rationales?"""

from steadygaze.properties.measures import plausibility_measures
from steadygaze.properties.property import Check, Property, Rule, Threshold
from steadygaze.properties.protocols.plausibility import plausibility
from steadygaze.properties.protocols.selection import rationale_agreement

PLAUSIBILITY = Property(
    "plausibility",
    "Plausibility",
    "Does the explanation agree with human rationales?",
    "Do people agree?",
    plausibility_measures.MEASURES,
    (Check(plausibility), Check(rationale_agreement, counts_empty=True)),
    conditions={
        "selected": "For the selected words; 0 if none is selected.",
        "rationales": "For the human rationales instead of the selection.",
    },
    rule=Rule(
        {
            "average-precision/above-random": Threshold(
                0.10, 0.02, "it ranks the words of human rationales {size} {better} than a random order"
            )
        },
        ("average-precision/above-random",),
        depends_on=("faithfulness",),
    ),
    meanings={
        "yes": "It ranks the words of human rationales above the others.",
        "undecided": "These scores do not show how far it agrees with human rationales.",
        "no": "It ranks the words of human rationales hardly better than chance.",
        "not meaningful": "The explanation is not faithful: people may agree with it, but the model does not use it.",
    },
)
