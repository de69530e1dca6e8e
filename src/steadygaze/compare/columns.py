"""COLUMNS: what techniques are compared by, in the order of the table, and which end of each is the good one."""

from steadygaze.report.comparison import Column

BETWEEN = "jensen-shannon/seeds"
"""The one number that no model has alone."""
COLLAPSED = "collapsed"

COLUMNS = (
    Column("macro-f1", "macro-F1", "F1 of each class, every class counting alike", "higher"),
    Column("accuracy", "accuracy", "how often the predicted label is right", "higher", brief=False),
    Column(
        "expected-calibration-error",
        "calibration error",
        "how far the stated confidence is from the share of right answers",
        "lower",
        brief=False,
    ),
    Column(
        "jensen-shannon/noise", "JSD noise", "how far the weights move under a little noise", "lower", stability=True
    ),
    Column(
        "jensen-shannon/worst-label",
        "JSD worst",
        "how far they move under the worst little change of the vectors",
        "lower",
        stability=True,
    ),
    Column(
        "jensen-shannon/1-synonym",
        "JSD 1 synonym",
        "how far they move when one word is exchanged for a synonym",
        "lower",
        stability=True,
    ),
    Column(
        "jensen-shannon/3-synonyms",
        "JSD 3 synonyms",
        "how far they move when three words are exchanged",
        "lower",
        stability=True,
    ),
    Column("flipped/3-synonyms", "flips", "how often the label changes when three words are exchanged", "lower"),
    Column(
        "comprehensiveness/above-random",
        "compreh. above random",
        "what the label loses without the heaviest words, beyond what it loses without random ones",
        "higher",
    ),
    Column("evenness", "evenness", "1: all words weigh alike; 0: one word has all the weight", "neither"),
    Column(
        BETWEEN,
        "JSD seeds",
        "how far two models that differ by their seed alone are apart",
        "lower",
        stability=True,
    ),
)
