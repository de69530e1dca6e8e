"""The page of a comparison: one HTML file without links or scripts, from a Comparison alone.

In the order of its parts: what was compared, a verdict for each technique, the table, the same as pictures, what the
audit answers, what the numbers mean, settings, and how it was made.  The template is comparison.html.jinja.
"""

import math
import shlex
from collections import Counter
from dataclasses import dataclass

from steadygaze.report.comparison import SIGNIFICANT, Comparison, Entry, Mark, Standing
from steadygaze.report.page import templates
from steadygaze.report.report import Answer
from steadygaze.report.words import ARROWS, number

MARKS: dict[Mark, str] = {
    "better": "✓ better",
    "worse": "✗ worse",
    "differs": "≠ differs",
    "bought": "⚠ bought by collapse",
    "": "",
}
LEFT, RIGHT, LINE = 118, 344, 22  # of what is plotted in a picture, and the height of a technique's line in it


def render(comparison: Comparison) -> str:
    html = (
        templates()
        .get_template("comparison.html.jinja")
        .render(
            comparison=comparison,
            cards=[(standing, card(comparison, standing)) for standing in comparison.standings],
            panels=[panel for column in comparison.columns if (panel := _panel(comparison, column.measure))],
            marks=MARKS,
            arrows=ARROWS,
            against=against,
            questions=_questions(comparison),
            command=shlex.join(comparison.command),
            left=LEFT,
            right=RIGHT,
            isnan=math.isnan,
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate must not stop whoever writes the page


@dataclass(frozen=True, slots=True)
class Card:
    """What is to be thought of one technique."""

    tone: str
    """A class of the style sheet, as verdicts have them: yes, partly, no, not-asked."""
    answer: str
    said: tuple[str, ...]


def card(comparison: Comparison, standing: Standing) -> Card:
    """Nobody wins by collapsing: that is said first, whatever else got better."""
    better, worse, bought = (_titles(comparison, standing, mark) for mark in ("better", "worse", "bought"))
    said = []
    if standing.silent:
        seeds = f"{standing.silent} of {len(standing.collapsed)} seeds"
        said.append(f"In {seeds} its weights say the same whatever the text: stability bought by collapse.")
    if standing is comparison.baseline:
        said.append("What the others are held against.")
    elif not (better or worse or bought):
        said.append(f"No clear difference from {comparison.baseline.technique}.")
    unsure = ", ".join(comparison.column(m).title for m, entry in standing.entries.items() if _of_these_texts(entry))
    leads = ("Better", "Worse", "Better by collapse, which is no merit", "Sure of the texts, but not of other seeds")
    for lead, titles in zip(leads, (better, worse, bought, unsure), strict=True):
        said += [f"{lead}: {titles}."] if titles else []
    return Card(*_answer(comparison, standing, bool(better), bool(worse)), tuple(said))


def against(entry: Entry) -> tuple[str, ...]:
    """How far from the baseline; how sure, and in how many seeds."""
    gap = entry.against
    if gap is None:
        return ()
    reach = "" if gap.interval is None else f" ({_signed(gap.interval[0])} to {_signed(gap.interval[1])})"
    sure = "not tested" if gap.holm is None else f"p {_p(gap.holm)}"
    seeds = f", {gap.agree} of {len(entry.seeds)} seeds" if len(entry.seeds) > 1 else ""
    return f"{_signed(gap.value)}{reach}", f"{sure}{seeds}"


def _of_these_texts(entry: Entry) -> bool:
    """Whether p says that it differs, and the interval, over seeds too, does not."""
    gap = entry.against
    return gap is not None and gap.holm is not None and gap.holm < SIGNIFICANT and not entry.mark


def _titles(comparison: Comparison, standing: Standing, mark: Mark) -> str:
    return ", ".join(comparison.column(measure).title for measure in standing.marked(mark))


def _answer(comparison: Comparison, standing: Standing, better: bool, worse: bool) -> tuple[str, str]:
    if standing.silent:
        return "no", "collapsed"
    if standing is comparison.baseline:
        return "not-asked", "baseline"
    if better and worse:
        return "partly", "better and worse"
    return ("yes", "better") if better else ("no", "worse") if worse else ("not-asked", "no clear difference")


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True, slots=True)
class Spot:
    """One technique's line of a picture."""

    technique: str
    x: float
    low: float
    high: float
    y: int
    said: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    better: str
    spots: tuple[Spot, ...]
    ends: tuple[str, str]
    height: int

    @property
    def baseline(self) -> float:
        return self.spots[0].x


def _panel(comparison: Comparison, measure: str) -> Panel | None:
    """None where the baseline, or everybody else, has no number."""
    rows = [(one.technique, one.entries[measure]) for one in comparison.standings]
    known = [(name, entry) for name, entry in rows if math.isfinite(entry.row.value)]
    if len(known) < 2 or known[0][0] != comparison.baseline.technique:
        return None
    ends = [entry.row.interval or (entry.row.value, entry.row.value) for _, entry in known]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)

    def place(value: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * ((value - low) / (high - low) if high > low else 0.5), 1)

    spots = [
        Spot(
            name,
            place(entry.row.value),
            place(end[0]),
            place(end[1]),
            38 + LINE * i,
            number(entry.row.value),
            entry.mark,
        )
        for i, ((name, entry), end) in enumerate(zip(known, ends, strict=True))
    ]
    column = comparison.column(measure)
    return Panel(column.title, column.better, tuple(spots), (number(low), number(high)), 52 + LINE * len(spots))


def _questions(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Question -> what the audit answers, of each technique: 2 × yes, 1 × partly.  None that no model was asked."""
    answers = [(question, one.answers[question]) for one in comparison.standings for question in one.answers]
    asked = dict.fromkeys(question for question, found in answers if set(found) - {"not asked"})
    return [(question, [_counted(one.answers.get(question, ())) for one in comparison.standings]) for question in asked]


def _counted(answers: tuple[Answer, ...]) -> str:
    order: tuple[Answer, ...] = ("yes", "partly", "no", "not asked")
    often = Counter(answers)
    if len(answers) == 1:
        return answers[0]
    return ", ".join(f"{often[answer]} × {answer}" for answer in order if often[answer])
