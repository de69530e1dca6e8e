"""The model card: README.md of a saved model, in the format of model hubs, with the results of its audit.

Does not import torch.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.core.untrusted_files import read_text
from steadygaze.results.formatting import ICONS, code, interval, number
from steadygaze.results.health import Health, ProblemKind
from steadygaze.results.report import Report
from steadygaze.results.row import Gate, Row

SHOWS = {
    "attention": "The highlighted words have the largest attention weights.",
    "rationale": "The highlighted words are the selected rationale, the only input of its predictor.  The choice of "
    "words can still leak the label: an audit tests for that.",
}
NO_MEANING = "Differences between its attention weights have no meaning: see the warning above."
SELECTION_SCORE = "selection score (validation macro-F1)"
"""A validation score that selected the epoch, and is therefore optimistic."""
BEGIN, END = "<!-- audit: the next one replaces this part -->", "<!-- end of the audit -->"
BEGIN_LABELED = "<!-- audit with labels: the next one with labels replaces this part -->"
AUDITED = re.compile(f"({BEGIN}|{BEGIN_LABELED}).*?{END}", re.DOTALL)
"""The part of a card that an audit writes; all else may be the user's."""
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
    return "".join(f"> **Warning:** {_line(problem.sentence)}\n\n" for problem in health)


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
## Audit of the explanations

Audited on {day} with steadygaze {v}: {explanation}; {n}; {data}; weights `{model}`.

{gate}{notes}{verdicts}{explainers}

| number | of | value | 95 % interval | n |
|---|---|---|---|---|
{rows}
{end}"""


def add_audit_to_card(page: str, report: Report, day: date) -> str:
    """Replace the audit section of a card; keep everything else."""
    rows = report.main_rows
    notes = "".join(f"> {_line(note.sentence)}\n\n" for note in report.notes)
    settings = rows[0].settings if rows else {}
    part = AUDIT.format(
        begin=BEGIN if report.accuracy is None else BEGIN_LABELED,
        end=END,
        day=day.isoformat(),
        v=settings.get("v", "of an unknown version"),
        explanation=code(report.facts.get("explanation", "the explanation")),
        n=report.facts.get("texts", "some texts"),
        gate="" if report.gate is None else _gate(report.gate),
        notes=_warnings(report.health) + notes,
        data=" ".join(code(report.facts[name]) for name in ("corpus", "split", "data") if name in report.facts),
        model=settings.get("model", "not known"),
        verdicts="\n".join(
            f"- **{_line(v.title)}**: {v.answer}. {_line(v.why)}{v.caveat and f'  {v.caveat}'}" for v in report.verdicts
        ),
        explainers=_explainers(report),
        rows="\n".join(f"| {' | '.join(_cells(row))} |" for row in rows),
    )
    audited, replaced = AUDITED.subn(lambda _: part, page, count=1)
    return audited if replaced else f"{page.rstrip()}\n\n{part}\n".lstrip()


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
        if BEGIN_LABELED in page and report.accuracy is None:
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
