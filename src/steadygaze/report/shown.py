"""A report in a terminal, a notebook and plain text: what to know first, the verdicts, then numbers in a table."""

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from steadygaze.escape import one_line, printable
from steadygaze.record import Row
from steadygaze.report.cards import main_rows
from steadygaze.report.report import Answer, Report
from steadygaze.report.words import ARROWS, ICONS, answered, counted, flagged, interval, number, whose

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

COLOURS: dict[Answer, str] = {"yes": "green", "partly": "yellow", "no": "red", "not asked": "dim"}
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
        f"{counted(more, 'more number')}: -v, the page or the JSON" if more else "",
        f"{left} not applicable" if left else "",
    ]
    end = "; ".join(filter(None, ends))
    table: list[Text | Table] = [Text(), _table(report, rows)] if rows else []
    return Group(*said, _answers(report), *table, *([Text(f"{end}.", style="dim")] if end else []))


def _noted(note: str) -> "Text":
    """A warning, or the colour of the answer it gives."""
    from rich.text import Text

    return Text(one_line(flagged(note)), style=f"bold {COLOURS[answered(note) or 'partly']}")


def _answers(report: Report) -> "Table":
    """Each answer beside its question and the reason."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    for verdict in report.verdicts:
        answer = Text(f"{ICONS[verdict.answer]} {verdict.answer:<9}", style=f"bold {COLOURS[verdict.answer]}")
        table.add_row(answer, Text.assemble((printable(verdict.question), "bold"), f" {printable(verdict.why)}"))
    return table


def text(report: Report) -> str:
    """For print: every number there is, and of the others how many there are."""
    measured = _measured(report)
    said = [report.title, *map(flagged, report.notes), *(f"{v.question} {v.answer}. {v.why}" for v in report.verdicts)]
    left = len(report.rows) - len(measured)
    why = "could not be measured: the note of each in report.rows says why, and so does the page (report.to_html)."
    end = [f"{counted(left, 'number')} {why}"] if left else []
    return "\n".join([*said, *map(str, measured), *end])


def notebook(report: Report) -> str:
    """Small, and inline styles only: notebooks strip style sheets."""
    answers = "".join(f"<li><strong>{escape(flagged(note))}</strong></li>" for note in report.notes)
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
    folded = f"<details><summary>{counted(len(_measured(report)), 'number')}</summary>{table}</details>"
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
        yield row.measure, whose(row), number(row.value), bounds, f"{row.n:,}", ARROWS[report.better(row.measure)]


def _measured(report: Report) -> list[Row]:
    return [row for row in report.rows if row.value == row.value]
