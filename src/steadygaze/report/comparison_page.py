"""The page of a comparison: one HTML file without links or scripts, from a Comparison alone.

In the order of its parts: a verdict for each technique, what was compared, the table, what the audit answers, what the
numbers mean, settings, and how it was made.  The template is comparison.html.jinja.
"""

import math
import shlex
from collections import Counter
from dataclasses import dataclass, replace

from steadygaze.report.page import templates
from steadygaze.report.verdict_axis import ticks
from steadygaze.results.comparison import SIGNIFICANT, Comparison, ComparisonCell, Mark, TechniqueResult
from steadygaze.results.formatting import direction, number, short_number
from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer

MARKS: dict[Mark, str] = {
    "better": "✓ better",
    "worse": "✗ worse",
    "differs": "≠ differs",
    "bought": "⚠ bought by collapse",
    "": "",
}
KEY: dict[Mark, str] = {
    "better": "The difference lies on the good side, and it is beyond doubt.",
    "worse": "The difference lies on the bad side, and it is beyond doubt.",
    "differs": "There is a difference beyond doubt, of a number that has no good side.",
    "bought": "It is better beyond doubt, but by weights that say the same whatever the text: no merit.",
}
"""What a mark means, to somebody who has never seen a p."""


def render(comparison: Comparison) -> str:
    html = (
        templates()
        .get_template("comparison.html.jinja")
        .render(
            comparison=comparison,
            cards=[(standing, card(comparison, standing)) for standing in comparison.standings],
            scales={column.measure: scale(comparison, column.measure) for column in comparison.columns},
            marks=MARKS,
            key=KEY,
            significant=SIGNIFICANT,
            direction=direction,
            against=difference_text,
            questions=_questions(comparison),
            command=shlex.join(comparison.command),
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


def card(comparison: Comparison, standing: TechniqueResult) -> Card:
    """Nobody wins by collapsing: that is said first, whatever else got better."""
    better, worse, bought = (_titles(comparison, standing, mark) for mark in ("better", "worse", "bought"))
    said = []
    if standing.silent:
        seeds = f"{standing.silent} of {len(standing.collapsed)} seed{'s' * (len(standing.collapsed) > 1)}"
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


def difference_text(entry: ComparisonCell) -> tuple[str, ...]:
    """How far from the baseline; how sure, and in how many seeds."""
    gap = entry.against
    if gap is None:
        return ()
    reach = "" if gap.interval is None else f" ({_signed(gap.interval[0])} to {_signed(gap.interval[1])})"
    sure = "not tested" if gap.holm is None else f"p {_p(gap.holm)}"
    seeds = f", {gap.agree} of {len(entry.seeds)} seeds" if len(entry.seeds) > 1 else ""
    return f"{_signed(gap.value)}{reach}", f"{sure}{seeds}"


def _of_these_texts(entry: ComparisonCell) -> bool:
    """Whether p says that it differs, and the interval, over seeds too, does not."""
    gap = entry.against
    return gap is not None and gap.holm is not None and gap.holm < SIGNIFICANT and not entry.mark


def _titles(comparison: Comparison, standing: TechniqueResult, mark: Mark) -> str:
    return ", ".join(comparison.column(measure).title for measure in standing.marked(mark))


def _answer(comparison: Comparison, standing: TechniqueResult, better: bool, worse: bool) -> tuple[str, str]:
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
class Scale:
    """What the bars of one measure are drawn on, the same for all techniques."""

    low: float
    high: float
    baseline: float | None
    """Where the baseline's dot is, in per cent.  None: it has no number."""

    def place(self, value: float) -> float:
        """In per cent of the width."""
        return round(100 * (value - self.low) / (self.high - self.low), 1)

    def bar(self, row: Row) -> tuple[float, float, float]:
        """Number and interval."""
        low, high = row.interval or (row.value, row.value)
        return self.place(row.value), self.place(low), self.place(high)

    @property
    def ends(self) -> tuple[str, str]:
        return short_number(self.low), short_number(self.high)


def scale(comparison: Comparison, measure: str) -> Scale | None:
    """None where nobody has a number."""
    rows = [one.entries[measure].row for one in comparison.standings]
    known = [(row.value, *(row.interval or ())) for row in rows if math.isfinite(row.value)]
    if not known:
        return None
    edges = ticks(min(map(min, known)), max(map(max, known)), 8)
    found = Scale(edges[0], edges[-1], None)
    return replace(found, baseline=found.place(rows[0].value)) if math.isfinite(rows[0].value) else found


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
