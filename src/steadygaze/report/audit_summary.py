"""The summary of an audit in words: one paragraph at the top of its page."""

from collections.abc import Sequence

from steadygaze.results.formatting import measure_noun
from steadygaze.results.report import Report
from steadygaze.results.row import Answer, Row

PROPERTIES = {"shortcut-leakage": "freedom from shortcuts"}
"""Key of a verdict -> its property, where the title is not one."""
SENTENCES: dict[Answer, str] = {
    "yes": "The answer is yes for {}.",
    "no": "The answer is no for {}.",
    "undecided": "The texts do not decide {}.",
    "not measured": "Not measured: {}.",
}


def summary_paragraph(report: Report) -> str:
    """What was audited, the answers, the accuracy, the gate, and what follows; empty without verdicts."""
    if not report.verdicts:
        return ""
    sentences = [_subject(report), *_answers(report)]
    row = report.find("accuracy")
    if row is not None and row.n:
        sentences.append(_accuracy(row))
    if report.gate is not None:
        sentences.append(f"The gate {report.gate.summary}.")
    return " ".join(filter(None, [*sentences, _consequence(report)]))


def _subject(report: Report) -> str:
    facts = report.facts
    if not {"explanation", "model", "texts"} <= facts.keys():
        return ""
    model = facts["model"].split(",")[0]
    return f"This audit tested the {measure_noun(facts['explanation'])} of {model} on {facts['texts']}."


def _answers(report: Report) -> list[str]:
    named: dict[Answer, list[str]] = {}
    for verdict in report.verdicts:
        title = verdict.title[:1].lower() + verdict.title[1:]
        named.setdefault(verdict.answer, []).append(PROPERTIES.get(verdict.key, title))
    return [sentence.format(listed(named[answer])) for answer, sentence in SENTENCES.items() if answer in named]


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["stability", "faithfulness", "plausibility"])
    'stability, faithfulness and plausibility'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _accuracy(row: Row) -> str:
    reach = (
        "" if row.interval is None else f" (95 % interval {_percent(row.interval[0])} to {_percent(row.interval[1])} %)"
    )
    return f"The model predicts the right label for {_percent(row.value)} % of the texts{reach}."


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _consequence(report: Report) -> str:
    answers = {verdict.answer for verdict in report.verdicts}
    if "no" in answers:
        return "Do not rely on these explanations for a property whose answer is no."
    if any(verdict.advice for verdict in report.verdicts):
        return "Read the advice at the open questions."
    return ""
