"""A comparison in a terminal: one row for each technique; in a narrow one, a row for each measure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steadygaze.report.comparison import SIGNIFICANT, Comparison, Entry, Mark, Standing
from steadygaze.report.words import ARROWS, number

SIGNS: dict[Mark, str] = {"better": " ✓", "worse": " ✗", "differs": " ≠", "bought": " ⚠", "": ""}
COLOURS: dict[Mark, str] = {"better": "green", "worse": "red", "differs": "", "bought": "yellow", "": ""}


@dataclass(frozen=True)
class Shown:
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
        table.add_column(f"{column.title} {ARROWS[column.better]}".rstrip(), justify="right")
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
        title = f"{column.title} {ARROWS[column.better]}".rstrip()
        table.add_row(title, *(_cell(one.entries[column.measure]) for one in comparison.standings))
    table.add_row("collapsed", *(_silent(one) for one in comparison.standings))
    return table


def _cell(entry: Entry) -> Text:
    if math.isnan(entry.row.value):
        return Text("–", style="dim")
    said = Text(number(entry.row.value) + SIGNS[entry.mark], style=COLOURS[entry.mark])
    if entry.row.interval is not None:
        low, high = map(number, entry.row.interval)
        said.append(f"\n{low}–{high}", style="dim not bold default")
    return said


def _silent(one: Standing) -> Text:
    if None in one.collapsed:
        return Text("not known", style="dim")
    style = "bold yellow" if one.silent else ""
    return Text(f"{'yes' if one.silent else 'no'}, {one.silent} of {len(one.collapsed)}", style=style)


def _collapsed(one: Standing) -> str:
    return (
        f"⚠ {one.technique}: stability bought by collapse.  In {one.silent} of {len(one.collapsed)} seeds its weights "
        "say the same whatever the text: they hold still, and explain nothing."
    )
