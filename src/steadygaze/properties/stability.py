"""Stability: does the explanation stay the same under small changes of the text?"""

from functools import partial

from steadygaze.properties.measures import stability_measures
from steadygaze.properties.measures.measure import LABEL_KEPT, PERTURBATIONS, measures_of
from steadygaze.properties.property import COLLAPSED, Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.faithfulness import max_sensitivity
from steadygaze.properties.protocols.rewording import REWORDING_ROWS, rewording
from steadygaze.properties.protocols.stability import stability
from steadygaze.results.note import NoteCode

_shift = partial(Threshold, advice=Advice(AdviceKind.STABLE_ATTENTION))
PERTURBED = (*PERTURBATIONS, *LABEL_KEPT)
STABILITY = Property(
    "stability",
    "Stability",
    "Does the explanation stay the same under small changes of the text?",
    "Is it stable?",
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
        Check(max_sensitivity, ("max-sensitivity",), thorough=True),
    ),
    conditions={
        "noise": "Uniform noise on the embedding of every word.",
        "fgm-label": "FGM: one gradient step on the embeddings against the predicted label.",
        "pgd-attention": "PGD: the change of the embeddings that shifts the model's weights most.",
        "1-synonym": "One word substituted by a synonym.",
        "3-synonyms": "Three words substituted by synonyms.",
        "reworded": "A tenth of the words, drawn at random, substituted by synonyms.",
        "reworded-top": "As many words, those with the largest weights, substituted by synonyms.",
        "1-synonym-kept": "One word substituted by a synonym; texts that keep their label.",
        "3-synonyms-kept": "Three words substituted by synonyms; texts that keep their label.",
    },
    rule=Rule(
        {
            COLLAPSED: Threshold(0, 1, "the {noun} does not depend on the text"),
            "jensen-shannon/noise": _shift(0.005, 0.02, "small noise shifts the {noun} by {value}"),
            "jensen-shannon/fgm-label": _shift(
                0.02, 0.10, "one gradient step against the predicted label (FGM) shifts the {noun} by {value}"
            ),
            "jensen-shannon/pgd-attention": _shift(
                0.02,
                0.10,
                "the worst small change of the embeddings shifts the {noun} by {value}",
                remark=NoteCode.FGM_ON_SAME_TEXTS,
            ),
            "jensen-shannon/1-synonym": _shift(
                0.02, 0.05, "substituting one word by a synonym shifts the {noun} by {value}"
            ),
            "jensen-shannon/3-synonyms": _shift(
                0.05, 0.10, "substituting three words by synonyms shifts the {noun} by {value}"
            ),
        },
        ("jensen-shannon/1-synonym", "jensen-shannon/3-synonyms"),
    ),
    meanings={
        "yes": "Small perturbations leave the highlighted words unchanged.",
        "undecided": "Some small perturbations may shift the {noun} to other words{conditions}.",
        "incomplete": "The measured perturbations shift the {noun} little; substitutions by synonyms were not "
        "measured.",
        "no": "A small perturbation shifts the {noun} to other words: do not rely on single words.",
    },
)
