"""A report in a terminal, a notebook and plain text: what to know first, the verdicts, then numbers in a table.

A comparison in a terminal: one row for each technique; in a narrow one, a row for each measure.

The scores of a fitted explainer in a terminal: numbers, what each means, and warnings.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steadygaze.core.errors import one_line, printable
from steadygaze.report.verdict_axis import main_rows
from steadygaze.results.comparison import SIGNIFICANT, Comparison, ComparisonCell, Mark, TechniqueResult
from steadygaze.results.formatting import (
    ARROWS,
    ICONS,
    answer_text,
    count_text,
    explainer_name,
    flag_text,
    interval,
    number,
)
from steadygaze.results.leakage_warnings import (
    BLACK_BOX_GAP,
    BY_CLASS,
    FIDELITY,
    GAP,
    NO_WORDS,
    POST_HOC,
    RANDOM_WORDS,
    READER,
    leakage_warnings,
)
from steadygaze.results.report import Report
from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

COLORS: dict[Answer, str] = {"yes": "green", "partly": "yellow", "no": "red", "not asked": "dim"}
HUES: dict[Answer, str] = {"yes": "#1a7f50", "partly": "#a86400", "no": "#c0392b", "not asked": "#777777"}
"""Of a notebook, which may be light or dark: legible on both."""
COLUMNS = ("measure", "explains", "value", "95 % interval", "n", "better")


def terminal(report: Report, full: bool = False) -> "Group":
    """`full`: every number, and not only those that the verdicts rest on."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    said = [Text(printable(report.title), style="bold")]
    said += map(_noted, report.notes)
    measured = _measured(report)
    rows = measured if full else main_rows(report)
    more, left = len(measured) - len(rows), len(report.rows) - len(measured)
    ends = [
        f"{count_text(more, 'more number')}: -v, the page or the JSON" if more else "",
        f"{left} not applicable" if left else "",
    ]
    end = "; ".join(filter(None, ends))
    table: list[Text | Table] = [Text(), _table(report, rows)] if rows else []
    return Group(*said, _answers(report), *table, *([Text(f"{end}.", style="dim")] if end else []))


def _noted(note: str) -> "Text":
    """A warning, or the colour of the answer it gives."""
    from rich.text import Text

    return Text(one_line(flag_text(note)), style=f"bold {COLORS[answer_text(note) or 'partly']}")


def _answers(report: Report) -> "Table":
    """Each answer beside its question and the reason."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    for verdict in report.verdicts:
        answer = Text(f"{ICONS[verdict.answer]} {verdict.answer:<9}", style=f"bold {COLORS[verdict.answer]}")
        table.add_row(answer, Text.assemble((printable(verdict.question), "bold"), f" {printable(verdict.why)}"))
    return table


def text(report: Report) -> str:
    """For print: every number there is, and of the others how many there are."""
    measured = _measured(report)
    said = [
        report.title,
        *map(flag_text, report.notes),
        *(f"{v.question} {v.answer}. {v.why}" for v in report.verdicts),
    ]
    left = len(report.rows) - len(measured)
    why = "could not be measured: the note of each in report.rows says why, and so does the page (report.to_html)."
    end = [f"{count_text(left, 'number')} {why}"] if left else []
    return "\n".join([*said, *map(str, measured), *end])


def notebook(report: Report) -> str:
    """Small, and inline styles only: notebooks strip style sheets."""
    answers = "".join(f"<li><strong>{escape(flag_text(note))}</strong></li>" for note in report.notes)
    answers += "".join(
        f'<li><strong style="color:{HUES[v.answer]}">{ICONS[v.answer]} {escape(v.answer)}</strong> '
        f"<strong>{escape(v.question)}</strong> {escape(v.why)}</li>"
        for v in report.verdicts
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in _cells(report, _measured(report))
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    folded = f"<details><summary>{count_text(len(_measured(report)), 'number')}</summary>{table}</details>"
    html = f"<div><strong>{escape(report.title)}</strong><ul style='list-style:none'>{answers}</ul>{folded}</div>"
    return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder


def _table(report: Report, rows: Sequence[Row]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        whole = name == "measure"  # to be copied as it is
        table.add_column(name, justify="right" if name in ("value", "n") else "left", overflow="fold", no_wrap=whole)
    for cells in _cells(report, rows):
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _cells(report: Report, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        bounds = "" if row.interval is None else interval(row)
        yield (
            row.measure,
            explainer_name(row),
            number(row.value),
            bounds,
            f"{row.n:,}",
            ARROWS[report.better(row.measure)],
        )


def _measured(report: Report) -> list[Row]:
    return [row for row in report.rows if row.value == row.value]


SIGNS: dict[Mark, str] = {"better": " ✓", "worse": " ✗", "differs": " ≠", "bought": " ⚠", "": ""}
MARK_COLORS: dict[Mark, str] = {"better": "green", "worse": "red", "differs": "", "bought": "yellow", "": ""}


@dataclass(frozen=True)
class ComparisonTable:
    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        rows = _techniques(self.comparison)
        fits = Measurement.get(console, options.update(width=10_000), rows).maximum <= options.max_width
        yield rows if fits else _measures(self.comparison)
        yield Text(legend(self.comparison), style="dim")
        for standing in self.comparison.standings:
            if standing.silent:
                yield Text(_collapsed(standing), style="bold yellow")


def legend(comparison: Comparison) -> str:
    return (
        f"Mean over seeds and texts; 95 % interval.  Against {comparison.baseline.technique}: ✓ better, ✗ worse, "
        f"≠ differs, ⚠ better by collapse (p < {SIGNIFICANT:g}, corrected for {comparison.tested} comparisons, and "
        "the interval of the difference leaves out 0)"
    )


def _techniques(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("technique", no_wrap=True)
    columns = [column for column in comparison.columns if column.brief]
    for column in columns:
        table.add_column(f"{column.title} {ARROWS[column.direction]}".rstrip(), justify="right")
    table.add_column("collapsed", justify="right")
    for one in comparison.standings:
        cells = [_cell(one.entries[column.measure]) for column in columns]
        table.add_row(Text(one.technique, style="bold"), *cells, _silent(one))
    return table


def _measures(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for one in comparison.standings:
        table.add_column(one.technique, justify="right")
    for column in (column for column in comparison.columns if column.brief):
        title = f"{column.title} {ARROWS[column.direction]}".rstrip()
        table.add_row(title, *(_cell(one.entries[column.measure]) for one in comparison.standings))
    table.add_row("collapsed", *(_silent(one) for one in comparison.standings))
    return table


def _cell(entry: ComparisonCell) -> Text:
    if math.isnan(entry.row.value):
        return Text("–", style="dim")
    said = Text(number(entry.row.value) + SIGNS[entry.mark], style=MARK_COLORS[entry.mark])
    if entry.row.interval is not None:
        low, high = map(number, entry.row.interval)
        said.append(f"\n{low}–{high}", style="dim not bold default")
    return said


def _silent(one: TechniqueResult) -> Text:
    if None in one.collapsed:
        return Text("not known", style="dim")
    style = "bold yellow" if one.silent else ""
    return Text(f"{'yes' if one.silent else 'no'}, {one.silent} of {len(one.collapsed)}", style=style)


def _collapsed(one: TechniqueResult) -> str:
    return (
        f"⚠ {one.technique}: stability bought by collapse.  In {one.silent} of {len(one.collapsed)} seeds its weights "
        "say the same whatever the text: they hold still, and explain nothing."
    )


MASK = "probe-loss"
MEANING = {
    POST_HOC: "how often the black box predicts the same from the selected words alone",
    f"{POST_HOC}/unselected": "… and from the text without them",
    READER: "how often a classifier trained on random words predicts it from the selected words",
    RANDOM_WORDS: "… from as many random words",
    NO_WORDS: "… from nothing",
    FIDELITY: "how often the explainer's own approximator predicts it from the selected words",
    GAP: "fidelity minus the independent reader's accuracy, each predicted class counting alike; near 0 if the words "
    "carry the label.  A warning needs both gaps above 0.05",
    BLACK_BOX_GAP: "fidelity minus post-hoc accuracy, each predicted class counting alike",
    MASK: "loss of a classifier that sees only the selected positions, in nats; near 0: positions tell the label",
}


def meaning(row: Row) -> str:
    """What a number means, in a few words."""
    if row.measure == BY_CLASS:
        return f"… for the predicted class {printable(str(row.settings.get('class')))}"
    return MEANING.get(row.measure, "")


def explainer_scores(rows: Sequence[Row]) -> "Group":
    """For a terminal: numbers with their meaning, then what must not be overlooked."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True)
    for name in ("value", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what it means")
    for row in rows:
        table.add_row(row.measure, number(row.value), interval(row), meaning(row))
    loud = [Text(f"! {sentence}", style="bold yellow") for sentence in leakage_warnings(rows)]
    many = count_text(rows[0].n, "text") if rows else "no texts"
    return Group(Text(f"On {many} that it was not fitted to:"), table, *loud)
