"""Seed consistency: is the explanation the same after retraining with another seed?"""

from steadygaze.properties.property import Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.stability import seed_consistency
from steadygaze.properties.stability import AGREEMENT

SEED_CONSISTENCY = Property(
    "seed-consistency",
    "Seed consistency",
    "Is the explanation the same after retraining with another seed?",
    "Is it the same after retraining?",
    checks=(Check(seed_consistency),),
    conditions={
        "seeds": "Compared with models trained with other seeds.",
        "others": "Compared with models trained with other settings.",
    },
    rule=Rule(
        {
            "weight-correlation/seeds": Threshold(
                *AGREEMENT,
                "the weights of models trained with other seeds correlate {value}",
                advice=Advice(AdviceKind.STABLE_ATTENTION),
            )
        },
        ("weight-correlation/seeds",),
        depends_on=("faithfulness",),
    ),
    meanings={
        "yes": "A model retrained with another seed highlights the same words.",
        "undecided": "A model retrained with another seed may highlight other words.",
        "no": "A model retrained with another seed highlights other words: they depend on chance.",
        "not meaningful": "The explanation is not faithful: it may be the same for every model.",
    },
)
