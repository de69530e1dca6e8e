"""No shortcut leakage: does the explanation reveal the label other than through the words it highlights?"""

from steadygaze.properties.measures import shortcut_measures
from steadygaze.properties.property import COLLAPSED, Advice, AdviceKind, Check, Property, Rule, Threshold
from steadygaze.properties.protocols.selection import GAP_THRESHOLD, label_leakage, selection
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.results.advice import FEW_TEXTS

AGAINST_SHORTCUTS = f"a technique against shortcuts, {FEW_TEXTS}"
FEWER_SHORTCUTS = Advice(AdviceKind.TRAIN, AGAINST_SHORTCUTS, ("--technique", "random-pretraining"))
LEAKAGE = Property(
    "shortcut-leakage",
    "No shortcut leakage",
    "Is there no shortcut leakage, such as through word positions or punctuation?",
    "No shortcut leakage?",
    shortcut_measures.MEASURES,
    (Check(shortcut_leakage), Check(selection, counts_empty=True), Check(label_leakage)),
    conditions={
        "shuffled": "With the words of each text shuffled.",
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
            "position-leak/shuffled": Threshold(
                0.05,
                0.10,
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
        ("position-leak/shuffled",),
    ),
    meanings={
        "yes": "The positions of the {noun} do not reveal the predicted label, and little of it lies on uninformative "
        "tokens.",
        "undecided": "These scores do not show whether the positions of the {noun} reveal the predicted label.",
        "no": "The positions of the {noun} reveal the predicted label, or much of it lies on uninformative tokens or "
        "sentences.",
    },
    noun="“no shortcut leakage”",
)
