"""What the answer to each question means, in one sentence for somebody who has never seen an audit."""

from collections.abc import Mapping

from steadygaze.report.report import Answer, Verdict

COLLAPSED = "collapsed"
SILENT = "The {noun} says the same whatever the text: that holds still, and explains nothing."
MEANS: Mapping[str, Mapping[Answer, str]] = {
    "holds-still": {
        "yes": "Changes too small to matter leave the highlighted words as they were.",
        "partly": "Some changes too small to matter may move the {noun} to other words.",
        "no": "A change too small to matter moves the {noun} to other words: do not build on single words.",
    },
    "matters": {
        "yes": "The model uses what is highlighted: without it the prediction changes.",
        "partly": "How much the model uses what is highlighted is not clear from these numbers.",
        "no": "Do not take the highlighted words for the reason: in at least one test they made little difference.",
    },
    "retrained": {
        "yes": "A model trained again in the same way highlights the same words.",
        "partly": "A model trained again in the same way may highlight other words.",
        "no": "A model trained again in the same way highlights other words: chance has a large part in them.",
    },
    "shortcut": {
        "yes": "Where the {noun} lies does not give the label away, and little of it lies where nothing is to be read.",
        "partly": "Whether the place of the {noun} gives the label away is not clear from these numbers.",
        "no": "Where the {noun} lies gives the label away, or much of it lies on nothing or on an idle first sentence.",
    },
    "people": {
        "yes": "It ranks the words that people marked as the reason above the others.",
        "partly": "How far it agrees with the words that people marked is not clear from these numbers.",
        "no": "It ranks the words that people marked as the reason hardly better than chance would.",
    },
}
"""By the key of the question, with a {noun}; one that is not ours, or was not asked, has no sentence."""


def meaning(verdict: Verdict, collapsed: bool, noun: str) -> str:
    """Collapsed: whether the explanation says the same of every text, which counts against any question that asks."""
    if collapsed and COLLAPSED in verdict.limits:
        return SILENT.format(noun=noun)
    return MEANS.get(verdict.key, {}).get(verdict.answer, "").format(noun=noun)
