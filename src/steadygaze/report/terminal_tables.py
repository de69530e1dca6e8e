"""Reports, comparisons and scores of fitted explainers in a terminal, a notebook and plain text."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from steadygaze.core.errors import one_line, printable
from steadygaze.report.sentences import flagged
from steadygaze.report.sentences import sentence as sentence_of
from steadygaze.results.comparison import SIGNIFICANT, Comparison, ComparisonCell, Mark, TechniqueResult
from steadygaze.results.formatting import (
    ARROWS,
    ICONS,
    PREDICTION,
    SHIFT_SCALE,
    audit_subject,
    count_text,
    explainer_name,
    interval,
    number,
)
from steadygaze.results.leakage_warnings import (
    ARBITRARY,
    BLACK_BOX_GAP,
    CLASS_PROBE,
    FIDELITY,
    GAP,
    NO_WORDS,
    POST_HOC,
    RANDOM_WORDS,
    READER,
    leakage_warnings,
)
from steadygaze.results.note import Note
from steadygaze.results.report import Report
from steadygaze.results.row import Answer, Row, Verdict
from steadygaze.results.tuning import Tuning

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

COLORS: dict[Answer, str] = {
    "yes": "green",
    "undecided": "yellow",
    "no": "red",
    "not meaningful": "dim",
    "not measured": "dim",
}
HUES: dict[Answer, str] = {
    "yes": "#1a7f50",
    "undecided": "#a86400",
    "no": "#c0392b",
    "not meaningful": "#777777",
    "not measured": "#777777",
}
"""Colors in a notebook, legible on light and dark backgrounds."""
COLUMNS = ("measure", "explains", "value", "95 % interval", "n", "better")
EXPLAINS = COLUMNS.index("explains")
LEGEND = {
    "jensen-shannon": f"jensen-shannon: shift ({SHIFT_SCALE})",
    "fgm-label": "fgm-label, pgd-attention: under the worst small change that a gradient finds",
    "kendall": "kendall: similarity of two rankings of the words (1: the same, 0: none)",
}
"""Part of the name of a measure -> its meaning."""
ALL_NAMES = "all names: steadygaze list measures"


def terminal(report: Report, full: bool = False) -> "Group":
    """`full`: all scores, not only those of the verdicts."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    lines = report.health.lines
    lines.append(Text(printable(report.title), style="bold"))
    if subject := audit_subject(report.facts):
        lines.append(Text(one_line(subject), style="dim"))
    lines += map(_note, report.notes)
    measured = _measured(report)
    rows = measured if full else report.main_rows
    more, missing = len(measured) - len(rows), len(report.rows) - len(measured)
    ends = [
        f"{count_text(more, 'more number')}: -v, the page or the JSON" if more else "",
        f"{missing} not applicable" if missing else "",
    ]
    end = "; ".join(filter(None, ends))
    table: list[Text | Table] = [Text(), _table(report, rows)] if rows else []
    ends = [f"{end}."] * bool(end) + _legend(rows)
    return Group(*lines, *_explainers(report, full), *table, *(Text(line, style="dim") for line in ends))


@dataclass(frozen=True)
class AnswerGrid:
    """The answers about several explainers: a line per explainer, or a line per property if the terminal is narrow."""

    answers: Mapping[str, Mapping[str, Answer]]
    """Explainer -> title of a property -> answer."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        titles = list(next(iter(self.answers.values())))
        explainers = self._table("explainer", titles, {name: list(of.values()) for name, of in self.answers.items()})
        properties = {title: [of[title] for of in self.answers.values()] for title in titles}
        fits = Measurement.get(console, options.update(width=10_000), explainers).maximum <= options.max_width
        yield explainers if fits else self._table("", list(self.answers), properties)

    def _table(self, head: str, columns: Sequence[str], lines: Mapping[str, Sequence[Answer]]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(head, overflow="fold")
        for column in columns:
            table.add_column(one_line(column), justify="center", overflow="fold")
        for name, answers in lines.items():
            signs = (Text(ICONS[answer], style=f"bold {COLORS[answer]}") for answer in answers)
            table.add_row(Text(one_line(name)), *signs)
        return table


def _explainers(report: Report, full: bool) -> Iterator[RenderableType]:
    """The answers about all explainers if there are several, then the verdicts of the first, or `full` those of all."""

    if not report.answers_by:
        yield _answers(report.verdicts)
        return
    if report.recommendation is not None:
        yield Text(printable(report.recommendation_text), style="bold")
    yield AnswerGrid(report.answers_by)
    shown = {answer for answers in report.answers_by.values() for answer in answers.values()}
    yield Text("  ".join(f"{icon} {answer}" for answer, icon in ICONS.items() if answer in shown), style="dim")
    for name, verdicts in list(report.verdicts_by.items())[: None if full else 1]:
        yield Text(f"\n{one_line(name)}:", style="bold")
        yield _answers(verdicts)


def _legend(rows: Sequence[Row]) -> list[str]:
    """Lines: the meaning of technical names, and the command that lists all."""
    parts = {part for row in rows for part in row.measure.split("/")}
    return [*(meaning for part, meaning in LEGEND.items() if part in parts), *([ALL_NAMES] if rows else [])]


def _note(note: Note) -> "Text":
    """A note in the color of its answer, or of a warning."""
    from rich.text import Text

    return Text(one_line(flagged(note)), style=f"bold {COLORS[note.fields.get('answer', 'undecided')]}")


def _answers(verdicts: Sequence[Verdict]) -> "Table":
    """Each answer with its title and reason."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    for verdict in verdicts:
        answer = Text(f"{ICONS[verdict.answer]} {verdict.answer:<12}", style=f"bold {COLORS[verdict.answer]}")
        table.add_row(answer, Text.assemble((f"{printable(verdict.title)}.", "bold"), f" {printable(verdict.reason)}"))
    return table


def text(report: Report) -> str:
    """Plain text: all scores, and the number of those that do not apply."""
    measured = _measured(report)
    lines = [
        *map(str, report.health.lines),
        report.title,
        *filter(None, [audit_subject(report.facts)]),
        *map(flagged, report.notes),
        *filter(None, [report.recommendation_text]),
        *(f"{v.title}: {v.answer}. {v.reason}" for v in report.verdicts),
        *(f"{name}: {_listed(answers)}" for name, answers in list(report.answers_by.items())[1:]),
    ]
    missing = len(report.rows) - len(measured)
    why = "could not be measured: the notes in report.rows and the page (report.to_html) give the reasons."
    end = [f"{count_text(missing, 'number')} {why}"] if missing else []
    return "\n".join([*lines, *map(str, measured), *end])


def _listed(answers: Mapping[str, Answer]) -> str:
    return ", ".join(f"{title} {answer}" for title, answer in answers.items())


def _notebook_grid(report: Report) -> str:
    """The recommendation, and the answers about all explainers if there are several."""
    if not report.answers_by:
        return ""
    left = "<th style='text-align:left'>{}</th>".format
    head = "".join(map(left, ("explainer", *map(escape, next(iter(report.answers_by.values()))))))
    lines = (
        "".join(
            f'<td style="text-align:left;color:{HUES[answer]}">{ICONS[answer]} {answer}</td>' for answer in of.values()
        )
        for of in report.answers_by.values()
    )
    body = "".join(f"<tr>{left(escape(name))}{line}</tr>" for name, line in zip(report.answers_by, lines, strict=True))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<strong>{escape(report.recommendation_text)}</strong>{table}"


def notebook(report: Report) -> str:
    """HTML with inline styles, because notebooks remove style sheets."""
    answers = "".join(f"<li><strong>{escape(flagged(note))}</strong></li>" for note in report.notes)
    answers += "".join(
        f'<li><strong style="color:{HUES[v.answer]}">{ICONS[v.answer]} {escape(v.answer)}</strong> '
        f"<strong>{escape(v.title)}.</strong> {escape(v.reason)}</li>"
        for v in report.verdicts
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td style=text-align:left>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in _cells(report, _measured(report))
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    folded = f"<details><summary>{count_text(len(_measured(report)), 'number')}</summary>{table}</details>"
    title = f"<strong>{escape(report.title)}</strong>{_notebook_grid(report)}"
    html = f"{report.health.banner}<div>{title}<ul style='list-style:none'>{answers}</ul>{folded}</div>"
    return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder


def _table(report: Report, rows: Sequence[Row]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    explainers = {explainer_name(row) for row in rows} - {PREDICTION}
    shown = [i for i in range(len(COLUMNS)) if i != EXPLAINS or len(explainers) > 1]  # 80 columns suffice for one
    for i in shown:
        name = COLUMNS[i]
        whole = name == "measure"  # so that it can be copied
        table.add_column(name, justify="right" if name in ("value", "n") else "left", overflow="fold", no_wrap=whole)
    for cells in _cells(report, rows):
        table.add_row(*(Text(printable(cells[i])) for i in shown))
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
    with_health: bool = True
    """True if the table starts with the known-bad states of the models."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from self.comparison.health.lines if self.with_health else ()
        rows = _techniques(self.comparison)
        fits = Measurement.get(console, options.update(width=10_000), rows).maximum <= options.max_width
        yield rows if fits else _measures(self.comparison)
        yield Text(legend(self.comparison), style="dim")
        for standing in self.comparison.standings:
            if standing.guessing:
                yield Text(f"{standing.technique}: {standing.guessing_sentence}", style="bold yellow")


def legend(comparison: Comparison) -> str:
    return (
        f"Mean over seeds and texts; 95 % interval.  Against {comparison.baseline.technique}: ✓ better, ✗ worse, "
        f"≠ differs, ⚠ better by collapse (p < {SIGNIFICANT:g}, corrected for {comparison.tested} comparisons, and "
        "the interval of the difference excludes 0)"
    )


def _techniques(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("technique", no_wrap=True)
    columns = [column for column in comparison.columns if column.brief]
    for column in columns:
        table.add_column(f"{column.title} {ARROWS[column.direction]}".rstrip(), justify="right")
    table.add_column("collapsed", justify="right")
    for result in comparison.standings:
        cells = [_cell(result.entries[column.measure]) for column in columns]
        table.add_row(Text(result.technique, style="bold"), *cells, _silent(result))
    return table


def _measures(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for result in comparison.standings:
        table.add_column(result.technique, justify="right")
    for column in (column for column in comparison.columns if column.brief):
        title = f"{column.title} {ARROWS[column.direction]}".rstrip()
        table.add_row(title, *(_cell(result.entries[column.measure]) for result in comparison.standings))
    table.add_row("collapsed", *(_silent(result) for result in comparison.standings))
    return table


def _cell(entry: ComparisonCell) -> Text:
    if math.isnan(entry.row.value):
        return Text("–", style="dim")
    cell = Text(number(entry.row.value) + SIGNS[entry.mark], style=MARK_COLORS[entry.mark])
    if entry.row.interval is not None:
        low, high = map(number, entry.row.interval)
        cell.append(f"\n{low}–{high}", style="dim not bold default")
    return cell


def _silent(result: TechniqueResult) -> Text:
    if None in result.collapsed:
        return Text("not known", style="dim")
    style = "bold yellow" if result.silent else ""
    return Text(f"{'yes' if result.silent else 'no'}, {result.silent} of {len(result.collapsed)}", style=style)


MASK = "probe-loss"
MEANING = {
    POST_HOC: "how often the black box predicts the same from the selected words alone",
    f"{POST_HOC}/unselected": "… and from the text without them",
    READER: "how often a classifier trained on random words predicts it from the selected words",
    RANDOM_WORDS: "… from as many random words",
    NO_WORDS: "… from nothing",
    FIDELITY: "how often the explainer's own approximator predicts it from the selected words",
    GAP: "fidelity minus the independent reader's accuracy, with equal class weights; near 0 if the words "
    "carry the label.  A warning needs both gaps above 0.05",
    BLACK_BOX_GAP: "fidelity minus post-hoc accuracy, with equal class weights",
    ARBITRARY: "how often nearly any selection gives the prediction, and the classifier does not recover it",
    MASK: "loss of a classifier that sees only the selected positions, in nats; near 0: positions reveal the "
    "predicted label",
}


def meaning(row: Row) -> str:
    """Describe a score."""
    if row.key.probe == CLASS_PROBE:
        return f"… for the predicted class {printable(str(row.settings.get('class')))}"
    return MEANING.get(row.measure, "")


def explainer_scores(rows: Sequence[Row]) -> "Group":
    """For a terminal: scores, the meaning of each below its name, then warnings."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure")
    for name in ("value", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        about = Padding(Text(meaning(row), style="dim"), (0, 0, 0, 2))
        table.add_row(Group(row.measure, about), number(row.value), interval(row))
    warnings = [Text(f"! {sentence}", style="bold yellow") for sentence in map(sentence_of, leakage_warnings(rows))]
    many = count_text(rows[0].n, "text") if rows else "no texts"
    return Group(Text(f"On {many} held out from fitting:"), table, *warnings)


def tuning_table(tuning: Tuning, longest: int = 10) -> Table:
    """The best trials of a search."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("trial", justify="right")
    for name in (*(measure for measure, _ in tuning.objectives), *tuning.spaces, "seed", "epochs"):
        table.add_column(name, justify="right")
    best = tuning.front if len(tuning.objectives) > 1 else sorted(tuning.complete, key=tuning.rank)
    for trial in best[:longest]:
        values = [f"{value:.4f}" for value in trial.values]
        settings = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in trial.settings.values()]
        table.add_row(str(trial.number), *values, *settings, str(trial.seed), str(trial.epochs))
    return table
