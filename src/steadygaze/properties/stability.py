"""Stability: does the explanation stay the same if words are replaced by synonyms?"""

from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import LABEL_KEPT, SUBSTITUTIONS, measures_of
from steadygaze.properties.property import COLLAPSED, Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.repeated_answers import REPEATED_ROWS, repeated_answers
from steadygaze.properties.protocols.rewording import REWORDING_ROWS, rewording
from steadygaze.properties.protocols.stability import stability

AGREEMENT = (0.7, 0.65)
"""Correlations of 1 are reached by no change, 0 by shuffled weights.  0.7² is half of the variance.  In the training
worlds of studies/oracles, stable explanations reach 0.77 or more, and those that are half random at most 0.3."""
PERTURBED = (*SUBSTITUTIONS, *LABEL_KEPT)
STABILITY = Property(
    "stability",
    "Stability under rewording",
    "Does the explanation stay the same if words are replaced by synonyms?",
    "Is it stable under rewording?",
    stability_measures.MEASURES,
    (
        Check(
            stability,
            (
                *(str(key) for m in stability_measures.MEASURES for key in m.keys if key.probe in PERTURBED),
                *measures_of("weights", stability_measures.MEASURES),
            ),
            always=True,
        ),
        Check(rewording, REWORDING_ROWS),
        Check(repeated_answers, REPEATED_ROWS, always=True),
    ),
    conditions={
        "repeated": "The same text, explained again by new answers of a noisy black box.",
        "1-synonym": "One word substituted by a synonym.",
        "3-synonyms": "Three words substituted by synonyms.",
        "reworded": "A tenth of the words, drawn at random, substituted by synonyms.",
        "reworded-top": "As many words, those with the most prominent weights, substituted by synonyms.",
        "1-synonym-kept": "One word substituted by a synonym; texts that keep their label.",
        "3-synonyms-kept": "Three words substituted by synonyms; texts that keep their label.",
    },
    rule=Rule(
        {
            COLLAPSED: Threshold(0, 1, "the {noun} does not depend on the text"),
            **{
                f"weight-correlation/{condition}": Threshold(
                    *AGREEMENT, sentence, advice=Advice(AdviceKind.STABLE_ATTENTION)
                )
                for condition, sentence in (
                    ("reworded", "with a tenth of the words reworded, the weights correlate {value} with the original"),
                    (
                        "reworded-top",
                        "with the highlighted words reworded, the weights correlate {value} with the original",
                    ),
                )
            },
        },
        ("weight-correlation/reworded-top", "weight-correlation/reworded"),
        depends_on=("faithfulness",),
    ),
    meanings={
        "yes": "Synonyms leave the highlighted words unchanged.",
        "undecided": "Synonyms may shift the {noun} to other words{conditions}.",
        "no": "Synonyms shift the {noun} to other words: do not rely on single words.",
        "not meaningful": "The explanation is not faithful: whether it is stable says nothing about the model.",
    },
    noun="stability under rewording",
)
