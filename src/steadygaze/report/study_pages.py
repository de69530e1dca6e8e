"""The pages of a comparison, a search of settings and a reproduced table, without scripts or external files."""

import math
import shlex
from collections import Counter
from dataclasses import dataclass, replace

from markupsafe import Markup

from steadygaze.report.chart_svg import draw_trials
from steadygaze.report.page import templates, ticks
from steadygaze.results.comparison import SIGNIFICANT, Comparison, ComparisonCell, Mark, TechniqueResult
from steadygaze.results.formatting import direction, number, short_number
from steadygaze.results.reproduction import Reproduction
from steadygaze.results.row import Answer, Row
from steadygaze.results.tuning import Tuning

MARKS: dict[Mark, str] = {
    "better": "✓ better",
    "worse": "✗ worse",
    "differs": "≠ differs",
    "bought": "⚠ bought by collapse",
    "": "",
}
KEY: dict[Mark, str] = {
    "better": "Significantly better than the baseline.",
    "worse": "Significantly worse than the baseline.",
    "differs": "Significantly different; the measure has no better direction.",
    "bought": "Significantly better, but only because the weights do not depend on the text.",
}
"""Meaning of each mark."""


def render_comparison(comparison: Comparison) -> str:
    html = (
        templates()
        .get_template("comparison.html.jinja")
        .render(
            comparison=comparison,
            health=Markup(comparison.health.banner),  # escaped
            paragraph=summary_paragraph(comparison),
            cards=[(standing, card(comparison, standing)) for standing in comparison.standings],
            scales={column.measure: scale(comparison, column.measure) for column in comparison.columns},
            marked={m for standing in comparison.standings for m, entry in standing.entries.items() if entry.mark},
            marks=MARKS,
            key=KEY,
            significant=SIGNIFICANT,
            direction=direction,
            against=difference_text,
            verdicts=_verdicts(comparison),
            command=shlex.join(comparison.command),
            isnan=math.isnan,
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


@dataclass(frozen=True, slots=True)
class Card:
    """The summary of one technique."""

    tone: str
    """CSS class: yes, undecided, no, not-measured."""
    answer: str
    sentences: tuple[str, ...]


def card(comparison: Comparison, standing: TechniqueResult) -> Card:
    """Summarize a technique; a collapse comes first."""
    better, worse, bought = (_titles(comparison, standing, mark) for mark in ("better", "worse", "bought"))
    sentences = [standing.guessing_sentence] if standing.guessing else []
    if standing.silent:
        seeds = f"{standing.silent} of {len(standing.collapsed)} seed{'s' * (len(standing.collapsed) > 1)}"
        sentences.append(f"In {seeds} its weights do not depend on the text: collapsed.")
    if standing is comparison.baseline:
        sentences.append("The baseline.")
    elif not (better or worse or bought):
        sentences.append(f"No significant difference from {comparison.baseline.technique}.")
    unsure = ", ".join(comparison.column(m).title for m, entry in standing.entries.items() if _texts_only(entry))
    leads = ("Better", "Worse", "Better only by collapse", "Significant over texts, but not over seeds")
    for lead, titles in zip(leads, (better, worse, bought, unsure), strict=True):
        sentences += [f"{lead}: {titles}."] if titles else []
    sentences += _f1_sentence(standing)
    return Card(*_answer(comparison, standing, bool(better), bool(worse)), tuple(sentences))


def _f1_sentence(standing: TechniqueResult) -> list[str]:
    """The difference in macro-F1, a score of the whole split: without a test, unless the entry has a mark."""
    entry = standing.entries.get(F1)
    if entry is None or entry.against is None or entry.mark:
        return []
    return [f"Difference in macro-F1: {'; '.join(difference_text(entry))}."]


def _has_lower_f1(standing: TechniqueResult) -> bool:
    """True if macro-F1 is below the baseline's, by the interval over seeds."""
    gap = standing.entries[F1].against if F1 in standing.entries else None
    return gap is not None and gap.interval is not None and gap.interval[1] < 0


F1 = "macro-f1"
AT_CHANCE = "at chance"
GUESSING = (
    "Not significantly better than chance in at least one seed: {names}. Chance is the share of the most frequent "
    "label for accuracy, and 1 divided by the number of classes for macro-F1. Differences between the explanations of "
    "such models say little: first train longer, with more texts, or with another encoder."
)
GROUPS = {
    AT_CHANCE: "",
    "better": "Better than {baseline}, and not significantly worse in any measure: {names}.",
    "better and worse": "Better in some measures and worse in others: {names}.",
    "worse": "Worse than {baseline}: {names}.",
    "no significant difference": "No significant difference from {baseline}: {names}.",
    "collapsed": "With weights that do not depend on the text in at least one seed: {names}.",
}
"""Answer of a card -> sentence of the summary."""


def summary_paragraph(comparison: Comparison) -> str:
    """The compared techniques, by their answers."""
    names: dict[str, list[str]] = {}
    for standing in comparison.standings:
        names.setdefault(card(comparison, standing).answer, []).append(standing.technique)
    baseline = comparison.baseline.technique
    guessing = ", ".join(standing.technique for standing in comparison.standings if standing.guessing)
    warning = [GUESSING.format(names=guessing)] if guessing else []
    sentences = [
        sentence.format(baseline=baseline, names=", ".join(names[answer]))
        for answer, sentence in GROUPS.items()
        if answer in names and sentence
    ]
    return " ".join(
        [*warning, f"Every technique was compared with {baseline}, in {len(comparison.columns)} measures.", *sentences]
    )


def difference_text(entry: ComparisonCell) -> tuple[str, ...]:
    """The difference from the baseline, its p-value and the number of seeds."""
    gap = entry.against
    if gap is None:
        return ()
    reach = "" if gap.interval is None else f" ({_signed(gap.interval[0])} to {_signed(gap.interval[1])})"
    sure = "not tested" if gap.holm is None else f"p {_p(gap.holm)}"
    seeds = f", {gap.agree} of {len(entry.seeds)} seeds" if len(entry.seeds) > 1 else ""
    return f"{_signed(gap.value)}{reach}", f"{sure}{seeds}"


def _texts_only(entry: ComparisonCell) -> bool:
    """Significant over texts, but the interval over seeds and texts contains 0."""
    gap = entry.against
    return gap is not None and gap.holm is not None and gap.holm < SIGNIFICANT and not entry.mark


def _titles(comparison: Comparison, standing: TechniqueResult, mark: Mark) -> str:
    return ", ".join(comparison.column(measure).title for measure in standing.marked(mark))


def _answer(comparison: Comparison, standing: TechniqueResult, better: bool, worse: bool) -> tuple[str, str]:
    if standing.silent:
        return "no", "collapsed"
    if standing.guessing:
        return "no", AT_CHANCE
    if standing is comparison.baseline:
        return "not-measured", "baseline"
    worse = worse or _has_lower_f1(standing)
    if better and worse:
        return "undecided", "better and worse"
    return ("yes", "better") if better else ("no", "worse") if worse else ("not-measured", "no significant difference")


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of one measure, the same for all techniques."""

    low: float
    high: float
    baseline: float | None
    """Position of the baseline in percent; None: it has no value."""

    def place(self, value: float) -> float:
        """Position in percent of the width."""
        return round(100 * (value - self.low) / (self.high - self.low), 1)

    def bar(self, row: Row) -> tuple[float, float, float]:
        """Positions of the value and the interval."""
        low, high = row.interval or (row.value, row.value)
        return self.place(row.value), self.place(low), self.place(high)

    @property
    def ends(self) -> tuple[str, str]:
        return short_number(self.low), short_number(self.high)


def scale(comparison: Comparison, measure: str) -> Scale | None:
    """Return the axis of a measure; None if no technique has a value."""
    rows = [standing.entries[measure].row for standing in comparison.standings]
    values = [(row.value, *(row.interval or ())) for row in rows if math.isfinite(row.value)]
    if not values:
        return None
    edges = ticks(min(map(min, values)), max(map(max, values)), 8)
    bare = Scale(edges[0], edges[-1], None)
    return replace(bare, baseline=bare.place(rows[0].value)) if math.isfinite(rows[0].value) else bare


def _verdicts(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Title of a verdict -> counts of the answers per technique: 2 × yes, 1 × undecided.  Skips unmeasured verdicts."""
    results = comparison.standings
    answers = [item for result in results for item in result.answers.items()]
    titles = dict.fromkeys(title for title, per_seed in answers if set(per_seed) - {"not measured"})
    return [(title, [_count(result.answers.get(title, ())) for result in results]) for title in titles]


def _count(answers: tuple[Answer, ...]) -> str:
    order: tuple[Answer, ...] = ("yes", "undecided", "no", "not meaningful", "not measured")
    counts = Counter(answers)
    if len(answers) == 1:
        return answers[0]
    return ", ".join(f"{counts[answer]} × {answer}" for answer in order if counts[answer])


def render_tuning(tuning: Tuning) -> str:
    html = (
        templates()
        .get_template("tuning.html.jinja")
        .render(
            tuning=tuning,
            health=Markup(tuning.health.banner),  # escaped
            front={trial.number for trial in tuning.front},
            plot=Markup(_trial_plot(tuning)),  # names of measures and numbers only
            command=shlex.join(tuning.command),
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


def _trial_plot(tuning: Tuning) -> str:
    """The first two objectives against each other; a single objective over the trials."""
    names = [measure for measure, _ in tuning.objectives]
    front = {trial.number for trial in tuning.front}
    if len(names) > 1:
        points = [{"x": t.values[1], "y": t.values[0], "front": t.number in front} for t in tuning.complete]
        return draw_trials(points, names[1], names[0])
    points = [{"x": t.number, "y": t.values[0], "front": t.number in front} for t in tuning.complete]
    return draw_trials(points, "trial", names[0])


def render_reproduction(reproduction: Reproduction) -> str:
    page = templates().get_template("reproduction.html.jinja")
    html = page.render(reproduction=reproduction, command=shlex.join(reproduction.command))
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written
