"""A summary of an audit in a few sentences."""

from steadygaze.core.rounding import percent
from steadygaze.results.evaluation import Evaluation
from steadygaze.results.formatting import code, listed, measure_noun
from steadygaze.results.report import Report
from steadygaze.results.row import Answer, Row

SENTENCES: dict[Answer, str] = {
    "yes": "The answer is yes for {}.",
    "no": "The answer is no for {}.",
    "undecided": "{} undecided.",
    "not meaningful": "Not meaningful for an unfaithful explanation: {}.",
    "not measured": "Not measured: {}.",
}


def summary_paragraph(report: Report) -> str:
    """The audited model, the answers, the accuracy, the gate, and the advice; empty without verdicts."""
    if not report.verdicts:
        return ""
    sentences = [_subject(report), *_answers(report)]
    if (row := report.accuracy) is not None:
        sentences += [_accuracy(row), _baseline(report.evaluation)]
    sentences.append(_generated(report))
    if report.gate is not None:
        sentences.append(f"The gate {report.gate.summary}.")
    return " ".join(filter(None, [*sentences, _consequence(report)]))


def _generated(report: Report) -> str:
    """A caveat for the rationales of a generated corpus, which are not human; empty if there are none."""
    row, corpus = report.find("average-precision/above-random"), report.facts.get("corpus", "")
    if row is None or not row.n or not corpus.startswith("planted-"):
        return ""
    return f"{code(corpus)} is a generated corpus: where this page says human rationales, they are generated."


def _subject(report: Report) -> str:
    facts = report.facts
    if not {"explanation", "model", "texts"} <= facts.keys():
        return ""
    noun, model = measure_noun(facts["explanation"]), code(facts["model"])
    return f"This audit tested the {noun} of the model {model} on {facts['texts']}."


def _answers(report: Report) -> list[str]:
    nouns = {item.name: item.noun for item in report.properties}
    named: dict[Answer, list[str]] = {}
    for verdict in report.verdicts:
        title = verdict.title[:1].lower() + verdict.title[1:]
        named.setdefault(verdict.answer, []).append(nouns.get(verdict.key) or title)
    names = {answer: listed(titles) for answer, titles in named.items()}
    if "undecided" in names:
        subject, verb = names["undecided"], "is" if len(named["undecided"]) == 1 else "are"
        names["undecided"] = f"{subject[:1].upper()}{subject[1:]} {verb}"
    return [sentence.format(names[answer]) for answer, sentence in SENTENCES.items() if answer in names]


def _accuracy(row: Row) -> str:
    reach = ""
    if row.interval is not None:
        low, high = row.interval
        reach = f" (95 % interval {percent(low, 1, unit='')} to {percent(high, 1)})"
    return f"The model predicts the right label for {percent(row.value, 1)} of the texts{reach}."


def _baseline(evaluation: Evaluation | None) -> str:
    """The share of the most frequent label, which a constant prediction reaches, and the lowest recall."""
    scores = [] if evaluation is None else [score for score in evaluation.per_class if score.n]
    if len(scores) < 2:
        return ""
    frequent, worst = max(scores, key=lambda score: score.n), min(scores, key=lambda score: score.recall)
    share = frequent.n / sum(score.n for score in scores)
    return (
        f"The most frequent label, {frequent.label}, has {percent(share, 1)} of the texts; "
        f"of the texts with label {worst.label}, the model finds {percent(worst.recall, 1)}."
    )


def _consequence(report: Report) -> str:
    answers = {verdict.answer for verdict in report.verdicts}
    if "no" in answers:
        return "Do not rely on these explanations for a property whose answer is no."
    if any(verdict.advice for verdict in report.verdicts):
        return "Read the advice at the open questions."
    return ""
