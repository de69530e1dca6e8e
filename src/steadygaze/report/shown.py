"""A report in a terminal and in a notebook: the verdicts, then the numbers in one table."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from steadygaze.highlight import printable
from steadygaze.record import Row
from steadygaze.report.report import Answer, Report
from steadygaze.report.words import ARROWS, ICONS, interval, number, whose

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

COLOURS: dict[Answer, str] = {"yes": "green", "partly": "yellow", "no": "red", "not asked": "dim"}
HUES: dict[Answer, str] = {"yes": "#1a7f50", "partly": "#a86400", "no": "#c0392b", "not asked": "#777777"}
"""Of a notebook, which may be light or dark: legible on both."""
COLUMNS = ("measure", "explains", "value", "95 % interval", "n", "better")


def terminal(report: Report) -> "Group":
    from rich.console import Group
    from rich.text import Text

    said = [Text(printable(report.title), style="bold")]
    for verdict in report.verdicts:
        line = Text(f"{ICONS[verdict.answer]} {verdict.answer:<9} ", style=f"bold {COLOURS[verdict.answer]}")
        line.append(f"{printable(verdict.question)} ", style="bold not dim default")
        said.append(line.append(printable(verdict.why), style="not bold not dim default"))
    left = len(report.rows) - len(_measured(report))
    end = [Text(f"{left} more are not applicable; the page says why.", style="dim")] if left else []
    return Group(*said, Text(), _table(report), *end)


def notebook(report: Report) -> str:
    """Small, and inline styles only: notebooks strip style sheets."""
    answers = "".join(
        f'<li><strong style="color:{HUES[v.answer]}">{ICONS[v.answer]} {escape(v.answer)}</strong> '
        f"<strong>{escape(v.question)}</strong> {escape(v.why)}</li>"
        for v in report.verdicts
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in _cells(report)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    folded = f"<details><summary>{len(_measured(report))} numbers</summary>{table}</details>"
    html = f"<div><strong>{escape(report.title)}</strong><ul style='list-style:none'>{answers}</ul>{folded}</div>"
    return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder


def _table(report: Report) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        whole = name == "measure"  # to be copied as it is
        table.add_column(name, justify="right" if name in ("value", "n") else "left", overflow="fold", no_wrap=whole)
    for cells in _cells(report):
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _cells(report: Report) -> Iterator[tuple[str, ...]]:
    for row in _measured(report):
        bounds = "" if row.interval is None else interval(row)
        yield row.measure, whose(row), number(row.value), bounds, f"{row.n:,}", ARROWS[report.better(row.measure)]


def _measured(report: Report) -> list[Row]:
    return [row for row in report.rows if row.value == row.value]
