"""The model card: README.md of a saved model, in the form that model hubs read; and what an audit writes into it."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from steadygaze.record import Row
from steadygaze.report.cards import main_rows
from steadygaze.report.report import Gate, Report
from steadygaze.report.words import interval, number

SHOWS = {
    "attention": "The highlighted words are attention weights: what the decoder was given of each word.",
    "rationale": "The highlighted words are those it selected: its predictor read no others.  The choice of the words "
    "can carry the label all the same: an audit tests for that.",
}
BEGIN, END = "<!-- audit: the next one replaces this part -->", "<!-- end of the audit -->"
PAGE = """---
library_name: steadygaze
pipeline_tag: text-classification
tags: [steadygaze, explainability, {shows}]
---
# A {classes}-way text classifier that shows its {shows}

Trained with steadygaze {steadygaze}: encoder {encoder}, technique {technique}, seed {seed}.

| | |
|---|---|
| labels | {labels} |
| reads | {reads}, at most {max_length} tokens |
| validation macro-F1 | {score} |
| epoch kept | {epoch} |
| training data (SHA-256) | `{corpus}` |{vectors}

```python
import steadygaze as sg
clf = sg.load("this folder")
clf.explain({example})
```

{words}

{begin}
Whether they may be read as reasons has not been audited yet.
{end}
"""
AUDIT = """{begin}
## How far its explanations may be believed

Audited on {day} with steadygaze {v}: {explanation}, on {n} of {data}; weights `{model}`.

{gate}{notes}{verdicts}

| number | of | value | 95 % interval | n |
|---|---|---|---|---|
{rows}
{end}"""


def card(config: Mapping[str, Any]) -> str:
    """Markdown, from the values of config.json."""
    kept = config.get("kept") or {}
    shows = "rationale" if "granularity" in config.get("technique_settings", {}) else "attention"  # selects units
    return PAGE.format(
        **{name: config[name] for name in ("steadygaze", "seed", "max_length", "corpus")},
        **{name: code(config[name]) for name in ("encoder", "technique")},
        classes=len(config["classes"]),
        labels=", ".join(map(code, config["classes"])),
        reads="a text and a question about it" if config["pair"] else "one text",
        score=f"{kept['macro-f1']:.3f}" if kept else "not measured",
        epoch=kept.get("epoch", "unknown"),
        example='("A text.", "A question?")' if config["pair"] else '"A text."',
        vectors=_vectors(config),
        shows=shows,
        words=SHOWS[shows],
        begin=BEGIN,
        end=END,
    )


def _vectors(config: Mapping[str, Any]) -> str:
    """A row of the table, where the share is known."""
    if (share := config.get("token_coverage")) is None:
        return ""
    return f"\n| training tokens with a vector in {code(config['vectors'])} | {share:.1%} |"


def audited(page: str, report: Report, day: date) -> str:
    """The card with what an audit found, in place of what the last one found; everything else in it is kept."""
    rows = main_rows(report)
    known = rows[0].settings if rows else {}
    part = AUDIT.format(
        begin=BEGIN,
        end=END,
        day=day.isoformat(),
        v=known.get("v", "of an unknown version"),
        explanation=code(report.facts.get("explanation", "the explanation")),
        n=f"{report.facts.get('texts', 'some')} text{'s' * (report.facts.get('texts') != '1')}",
        gate="" if report.gate is None else _gate(report.gate),
        notes="".join(f"> {_line(note)}\n\n" for note in report.notes),
        data=" ".join(code(report.facts[name]) for name in ("corpus", "split", "data") if name in report.facts),
        model=known.get("model", "not known"),
        verdicts="\n".join(f"- **{_line(v.question)}** {v.answer}. {_line(v.why)}" for v in report.verdicts),
        rows="\n".join(f"| {' | '.join(_cells(row))} |" for row in rows),
    )
    if re.search(f"{BEGIN}.*?{END}", page, re.DOTALL):
        return re.sub(f"{BEGIN}.*?{END}", lambda _: part, page, count=1, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{part}\n".lstrip()


def _gate(gate: Gate) -> str:
    required = ", ".join(map(code, gate.requirements))
    failures = "".join(f"- {_line(failure)}\n" for failure in gate.failures)
    return f"**Gate {_line(gate.summary)}** ({required}).\n\n{failures}{failures and chr(10)}"


def _cells(row: Row) -> tuple[str, ...]:
    of = code(row.settings["explain"]) if "explain" in row.settings else "the prediction"
    return code(row.measure), of, number(row.value), "" if row.interval is None else interval(row), f"{row.n:,}"


def _line(said: str) -> str:
    """One line of Markdown that is neither a tag nor the end of this part."""
    return " ".join(said.split()).replace("<", "&lt;")


def code(value: object) -> str:
    """A word as Markdown shows it literally, in a table too: whatever is in it, it ends neither the code nor the cell.

    >>> print(code("5 stars"), code("a|b"), code("`"))
    `5 stars` `a\\|b` `` ` ``
    """
    text = " ".join(str(value).split()).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if len(fence) > 1 else ""  # else the first of its own backticks would join the fence
    return f"{fence}{edge}{text}{edge}{fence}"
