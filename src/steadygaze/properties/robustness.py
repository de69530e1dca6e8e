"""Robustness: does the explanation stay the same under worst-case changes of the word vectors?"""

from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import VECTORS
from steadygaze.properties.property import Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.faithfulness import max_sensitivity
from steadygaze.properties.protocols.stability import robustness
from steadygaze.properties.stability import AGREEMENT
from steadygaze.results.note import NoteCode

ROBUSTNESS = Property(
    "robustness",
    "Robustness to worst-case vectors",
    "Does the explanation stay the same under worst-case changes of the word vectors?",
    "Robust to worst-case vectors?",
    checks=(
        Check(
            robustness,
            tuple(str(key) for m in stability_measures.MEASURES for key in m.keys if key.probe in VECTORS),
        ),
        Check(max_sensitivity, ("max-sensitivity",), thorough=True),
    ),
    conditions={
        "noise": "Uniform noise on the embedding of every word.",
        "fgm-label": "FGM: one gradient step on the embeddings against the predicted label.",
        "pgd-attention": "PGD: the change of the embeddings that shifts the model's weights most.",
    },
    rule=Rule(
        {
            f"weight-correlation/{probe}": Threshold(
                *AGREEMENT, sentence, remark=remark, advice=Advice(AdviceKind.STABLE_ATTENTION)
            )
            for probe, sentence, remark in (
                ("noise", "under small noise, the weights correlate {value} with the original", None),
                (
                    "fgm-label",
                    "under one gradient step against the predicted label (FGM), the weights correlate {value}",
                    None,
                ),
                (
                    "pgd-attention",
                    "under the worst small change of the embeddings, the weights correlate {value}",
                    NoteCode.FGM_ON_SAME_TEXTS,
                ),
            )
        },
        ("weight-correlation/fgm-label", "weight-correlation/pgd-attention"),
        depends_on=("faithfulness",),
    ),
    meanings={
        "yes": "No small change of the word vectors that was searched for shifts the {noun} to other words.",
        "undecided": "A small change of the word vectors may shift the {noun} to other words{conditions}.",
        "no": "A small change of the word vectors, which no writer would make, shifts the {noun} to other words.",
        "not meaningful": "The explanation is not faithful: whether it is robust says nothing about the model.",
    },
    noun="robustness to worst-case vectors",
)
