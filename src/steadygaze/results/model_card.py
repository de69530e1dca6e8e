"""The model card: README.md of a saved model, in the format of model hubs, with the results of its audit.

`summary_paragraph` summarizes an audit in words.

Does not import torch.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.core.untrusted_files import read_text
from steadygaze.results.evaluation import Evaluation
from steadygaze.results.formatting import ICONS, code, interval, measure_noun, number
from steadygaze.results.health import MODEL, Health, ProblemKind
from steadygaze.results.report import Report
from steadygaze.results.row import Answer, Gate, Row

SHOWS = {
    "attention": "The highlighted words have the largest attention weights.",
    "rationale": "The highlighted words are the selected rationale, the only input of its predictor.  The choice of "
    "words can still leak the label: an audit tests for that.",
}
NO_MEANING = "Differences between its attention weights have no meaning: see the warning above."
SELECTION_SCORE = "selection score (validation macro-F1)"
"""A validation score that selected the epoch, and is therefore optimistic."""
BEGIN, END = "<!-- audit: the next one replaces this part -->", "<!-- end of the audit -->"
DATA = "<!-- {}: {} -->"
"""A name and words that the next audit reads, such as the kinds of the warnings."""
PAGE = """---
library_name: steadygaze
pipeline_tag: text-classification
tags: [steadygaze, explainability, {shows}]
---
# A {classes}-way text classifier with {shows}

{health}Trained with steadygaze {steadygaze}: encoder {encoder}, technique {technique}, seed {seed}.

| | |
|---|---|
| labels | {labels} |
| reads | {reads}, at most {max_length} tokens |
{scores}
| epoch kept | {epoch} |
| training data (SHA-256) | `{corpus}` |{vectors}{groups}

```python
import steadygaze as sg
clf = sg.load("this folder")
clf.explain({example})
```

{words}

{begin}
Faithfulness has not been audited yet.
{end}
"""


def card(config: Mapping[str, Any]) -> str:
    """Markdown, from the values of config.json."""
    best, health = config.get("best_epoch") or {}, Health.from_list(config.get("health", ()))
    shows = "rationale" if "granularity" in config.get("technique_settings", {}) else "attention"  # it selects units
    return PAGE.format(
        **{name: config[name] for name in ("steadygaze", "seed", "max_length", "corpus")},
        **{name: code(config[name]) for name in ("encoder", "technique")},
        classes=len(config["classes"]),
        labels=", ".join(map(code, config["classes"])),
        reads="a text and a question about it" if config["pair"] else "one text",
        scores="\n".join(f"| {name} | {value} |" for name, value in training_scores(config).items()),
        epoch=best.get("epoch", "unknown"),
        example='("A text.", "A question?")' if config["pair"] else '"A text."',
        vectors=_vectors(config),
        groups=_groups(config),
        shows=shows,
        words=NO_MEANING if any(problem.kind is ProblemKind.COLLAPSED for problem in health) else SHOWS[shows],
        health=_warnings(health),
        begin=BEGIN,
        end=END,
    )


def _warnings(health: Health) -> str:
    """The warnings of a model, after their kinds as data."""
    if health.ok:
        return ""
    kinds = DATA.format("warnings", " ".join(problem.kind for problem in health))
    return f"{kinds}\n\n" + "".join(f"> **Warning:** {_line(problem.sentence)}\n\n" for problem in health)


def _words(part: str, name: str) -> list[str]:
    """The words of a `DATA` comment; none without it."""
    match = re.search(DATA.format(name, "(.*?)"), part)
    return match[1].split() if match else []


def training_scores(config: Mapping[str, Any]) -> dict[str, str]:
    """Names and values of the test scores and the validation score, from the values of config.json."""
    best, scores = config.get("best_epoch"), {}
    for measure, values in config.get("test_scores", {}).items():
        row = Row(measure, values["value"], values["n"], values["interval"])
        scores[f"test {measure.replace('f1', 'F1')}"] = (
            f"{number(row.value)} (95 % interval {interval(row)}, {row.n:,} texts)"
        )
    selects = not scores and config.get("training", {}).get("select", "best") == "best"
    name = SELECTION_SCORE if selects else "validation macro-F1"
    return {**scores, name: f"{best['macro-f1']:.3f}" if best else "not measured"}


def _vectors(config: Mapping[str, Any]) -> str:
    """A row of the table, if the share is known."""
    if (share := config.get("token_coverage")) is None:
        return ""
    return f"\n| training tokens with a vector in {code(config['vectors'])} | {percent(share, 1)} |"


def _groups(config: Mapping[str, Any]) -> str:
    """A row of the table for a model with synonym groups."""
    if (summary := config.get("synonym_groups")) is None:
        return ""
    return f"\n| synonym groups, each read as one word | {code(summary)} |"


AUDIT = """{begin}
{labels}
## Audit of the explanations

Audited on {day} with steadygaze {v}: {explanation}, on {n} of {data}; weights `{model}`.

{gate}{notes}{verdicts}{explainers}

| number | of | value | 95 % interval | n |
|---|---|---|---|---|
{rows}
{end}"""


def add_audit_to_card(page: str, report: Report, day: date) -> str:
    """Replace the audit section of a card; keep everything else."""
    rows = report.main_rows
    shown = _words(page.partition(BEGIN)[0], "warnings")
    unknown = [problem for problem in report.health if problem.subject != MODEL or problem.kind not in shown]
    warnings = (f"**Warning:** {_line(problem.sentence)}" for problem in unknown)
    notes = [*warnings, *(_line(note.sentence) for note in report.notes)]
    settings = rows[0].settings if rows else {}
    texts = report.facts.get("texts", "some texts")
    part = AUDIT.format(
        begin=BEGIN,
        end=END,
        labels=DATA.format("labels", "no" if _accuracy_row(report) is None else "yes"),
        day=day.isoformat(),
        v=settings.get("v", "of an unknown version"),
        explanation=code(report.facts.get("explanation", "the explanation")),
        n=texts + "," * ("," in texts),  # "100 of 400 texts, drawn with seed 0, of sst2"
        gate="" if report.gate is None else _gate(report.gate),
        notes="".join(f"> {note}\n\n" for note in notes),
        data=" ".join(code(report.facts[name]) for name in ("corpus", "split", "data") if name in report.facts),
        model=settings.get("model", "not known"),
        verdicts="\n".join(
            f"- **{_line(v.title)}**: {v.answer}. {_line(v.why)}{v.caveat and f'  {v.caveat}'}" for v in report.verdicts
        ),
        explainers=_explainers(report),
        rows="\n".join(f"| {' | '.join(_cells(row))} |" for row in rows),
    )
    if re.search(f"{BEGIN}.*?{END}", page, re.DOTALL):
        return re.sub(f"{BEGIN}.*?{END}", lambda _: part, page, count=1, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{part}\n".lstrip()


def _explainers(report: Report) -> str:
    """The answers about each explainer, and which to use; empty if there is one explainer."""
    grid = [
        (code(name), *(f"{ICONS[answer]} {answer}" for answer in of.values())) for name, of in report.answers_by.items()
    ]
    if not grid:
        return ""
    head = ("explainer", *(_line(title).replace("|", "\\|") for title in next(iter(report.answers_by.values()))))
    lines = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *grid))
    return f"\n\n{_line(report.recommendation_text)}\n\n{lines}"


def _gate(gate: Gate) -> str:
    required = ", ".join(map(code, gate.requirements))
    failures = "".join(f"- {_line(failure.sentence)}\n" for failure in gate.failures)
    return f"**Gate {_line(gate.summary)}** ({required}).\n\n{failures}{failures and chr(10)}"


def _cells(row: Row) -> tuple[str, ...]:
    of = code(row.settings["explainer"]) if "explainer" in row.settings else "the prediction"
    return code(row.measure), of, number(row.value), "" if row.interval is None else interval(row), f"{row.n:,}"


def _line(text: str) -> str:
    """One line of Markdown without HTML tags."""
    return " ".join(text.split()).replace("<", "&lt;")


CARD = "README.md"


def write_card(folder: Path, report: Report) -> str:
    """Write the card; return what was done.  An error does not stop the audit.

    An audit without labels does not replace one with labels.
    """
    file = folder / CARD
    if file.is_symlink() or (file.exists() and not file.is_file()):
        return f"the model card {file} is unchanged: it is not a regular file"
    try:
        page = read_text(file) if file.exists() else ""
        audited = page.partition(BEGIN)[2].partition(END)[0]
        if "yes" in _words(audited, "labels") and _accuracy_row(report) is None:
            return f"the model card {file} keeps its audit, which has labels: this audit has none (--label COL)"
        write_text(
            file,
            add_audit_to_card(
                page, report, date.fromisoformat(report.date[:10]) if report.date else datetime.now(UTC).date()
            ),
        )
    except (OSError, UserError) as error:
        return f"the model card {file} is unchanged: {error}"
    return f"written: {file}, the part about the audit"


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
    if (row := _accuracy_row(report)) is not None:
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
    model = code(facts["model"].rsplit(", a ", 1)[0])
    return f"This audit tested the {measure_noun(facts['explanation'])} of the model {model} on {facts['texts']}."


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


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["stability", "faithfulness", "plausibility"])
    'stability, faithfulness and plausibility'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _accuracy_row(report: Report) -> Row | None:
    """The accuracy; None without labels."""
    row = report.find("accuracy")
    return row if row is not None and row.n else None


def _accuracy(row: Row) -> str:
    reach = ""
    if row.interval is not None:
        low, high = (percent(end, 1) for end in row.interval)
        reach = f" (95 % interval {low.removesuffix(' %')} to {high})"
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
