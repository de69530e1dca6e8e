"""No shortcut leakage: does the explanation reveal the label other than through the words it highlights?"""

import math

from steadygaze.properties.measures import label_readers, shortcut_measures
from steadygaze.properties.property import COLLAPSED, Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.content_leakage import content_leakage
from steadygaze.properties.protocols.selection import GAP_THRESHOLD, label_leakage, selection
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.results.advice import FEW_TEXTS

AGAINST_SHORTCUTS = f"a technique against shortcuts, {FEW_TEXTS}"
FEWER_SHORTCUTS = Advice(AdviceKind.TRAIN, AGAINST_SHORTCUTS, ("--technique", "random-pretraining"))
LEAK, VALUE_LEAK, ACCOUNTED = (0.04, 0.05), (0.08, 0.10), (0.08, math.inf)
"""From the training worlds of studies/oracles: codes reach 0.1 and more, honest explanations 0.00 to 0.04 of the label;
honest ones leave 0.00 to 0.04 unaccounted, a code in a tenth of the texts 0.07 to 0.12."""
LEAKAGE = Property(
    "shortcut-leakage",
    "No shortcut leakage",
    "Is there no shortcut leakage, such as through the choice, order or positions of the words?",
    "No shortcut leakage?",
    (*shortcut_measures.MEASURES, *label_readers.MEASURES),
    (Check(content_leakage), Check(shortcut_leakage), Check(selection, counts_empty=True), Check(label_leakage)),
    conditions={
        "shuffled": "With the words of each text shuffled.",
        "unaccounted": "The same, where the shown words do not account for the label.",
        "above-share": "Minus the share of such tokens among the words.",
        "above-rationale": "Minus the share of the human rationale or of all words there, whichever is larger.",
        "default-tokens": "For a model retrained to attend to four tokens without content and five words only.",
        "random-words": "For as many random words instead of the selected ones.",
        "no-words": "For no words: the class that the classifier predicts for every text.",
        "by-class": "For the texts with one predicted class; the row names the class.",
        "raw": "Without the rule that a text has no gap if any selection of it gives the prediction.",
        "black-box": "Compared with the explained model, applied to the selected words alone.",
        "biased": "For a model retrained with a token in front that matches the label in 80 % of the texts.",
        "skewed": "For a model retrained with a predictor that was first trained on first sentences alone.",
    },
    rule=Rule(
        {
            COLLAPSED: Threshold(0, 1, "the {noun} is uniform or depends on positions alone"),
            "content-leak": Threshold(
                *LEAK,
                "what is highlighted reveals {size} {more} of the predicted label than its words account for",
                advice=FEWER_SHORTCUTS,
            ),
            "value-leak": Threshold(
                *VALUE_LEAK,
                "the selected words reveal {size} {more} of the predicted label than the model predicts from them",
                advice=Advice(AdviceKind.MITIGATION),
            ),
            "label-unaccounted": Threshold(
                *ACCOUNTED, "the highlighted words leave {value} of the label unaccounted for"
            ),
            "position-leak/unaccounted": Threshold(
                *LEAK,
                "with shuffled words, the positions of the {noun} reveal the predicted label {size} {better} than the "
                "length",
                advice=FEWER_SHORTCUTS,
            ),
            "leakage-gap": GAP_THRESHOLD,
            "default-mass/above-share": Threshold(
                0.10,
                0.30,
                "tokens without content get {size} {more} of the {noun} than under uniform weights",
                advice=FEWER_SHORTCUTS,
            ),
            "first-sentence-share/above-rationale": Threshold(
                0.10,
                0.30,
                "the first sentence gets {size} {more} of the {noun} than its length or the human rationales explain",
            ),
        },
        ("label-unaccounted",),
        bounds={"label-unaccounted": ("content-leak", "position-leak/unaccounted")},
    ),
    meanings={
        "yes": "The highlighted words account for the predictions; nothing else about the {noun} reveals the label.",
        "undecided": "The highlighted words do not account for all predictions: the choice, order or size of the "
        "{noun} could reveal the label.",
        "no": "The {noun} reveals the predicted label other than through its words, or much of it lies on "
        "uninformative tokens or sentences.",
    },
    noun="“no shortcut leakage”",
)
