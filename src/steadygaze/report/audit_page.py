"""The page of an audit: one HTML file that asks nobody for anything and runs nothing, from a Report alone.

In the order of its parts: the answers, what was audited, the numbers that decide them, texts before and after,
pictures, all numbers, what could not be asked, notes, and how it was made.  The templates are audit.html.jinja and what
it includes.

What the answer to each question means, in one sentence for somebody who has never seen an audit.

Two texts side by side: which words differ, and only the parts of long texts that matter.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from itertools import groupby, pairwise

from markupsafe import Markup

from steadygaze.core.types import Picked, Span
from steadygaze.report.page import templates
from steadygaze.report.plots import MISSING, pictures
from steadygaze.report.verdict_axis import Axis, DecidingRow, axis, axis_sentence, deciding_rows, deciding_sentence
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import ICONS, explainer_name, interval, measure_noun, number
from steadygaze.results.highlight import legend
from steadygaze.results.report import Report
from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer, Shift, Verdict

COLLAPSED = "collapsed"
SILENT = "The {noun} says the same whatever the text: that holds still, and explains nothing."
MEANS: Mapping[str, Mapping[Answer, str]] = {
    "stability": {
        "yes": "Changes too small to matter leave the highlighted words as they were.",
        "partly": "Some changes too small to matter may move the {noun} to other words.",
        "no": "A change too small to matter moves the {noun} to other words: do not build on single words.",
    },
    "faithfulness": {
        "yes": "The model uses what is highlighted: without it the prediction changes.",
        "partly": "How much the model uses what is highlighted is not clear from these numbers.",
        "no": "Do not take the highlighted words for the reason: in at least one test they made little difference.",
    },
    "seed-consistency": {
        "yes": "A model trained again in the same way highlights the same words.",
        "partly": "A model trained again in the same way may highlight other words.",
        "no": "A model trained again in the same way highlights other words: chance has a large part in them.",
    },
    "shortcut-leakage": {
        "yes": "Where the {noun} lies does not give the label away, and little of it lies where nothing is to be read.",
        "partly": "Whether the place of the {noun} gives the label away is not clear from these numbers.",
        "no": "Where the {noun} lies gives the label away, or much of it lies on nothing or on an idle first sentence.",
    },
    "plausibility": {
        "yes": "It ranks the words that people marked as the reason above the others.",
        "partly": "How far it agrees with the words that people marked is not clear from these numbers.",
        "no": "It ranks the words that people marked as the reason hardly better than chance would.",
    },
}
"""By the key of the question, with a {noun}; one that is not ours, or was not asked, has no sentence."""


def meaning(verdict: Verdict, collapsed: bool, noun: str) -> str:
    """Collapsed: whether the explanation says the same of every text, which counts against any question that asks."""
    if collapsed and COLLAPSED in verdict.thresholds:
        return SILENT.format(noun=noun)
    return MEANS.get(verdict.key, {}).get(verdict.answer, "").format(noun=noun)


LONG = 80
"""Words from which on a text is shown in parts: nobody reads it twice to find three words."""
AROUND = 9
"""Words shown on either side of one that matters."""
GAP = " […] "


@dataclass(frozen=True, slots=True)
class TextPair:
    """A text before and after, as a page shows it: `rationales` is what was exchanged."""

    before: Explanation
    after: Explanation
    exchanged: bool
    shortened: bool


def text_pair(shift: Shift) -> TextPair:
    old, new = changed_words(shift.before.tokens, shift.after.tokens)
    around = [_around(shift.before, old), _around(shift.after, new)]
    if len(shift.before) == len(shift.after):  # the same places in both, so that the eye can compare
        around = [sorted({*around[0], *around[1]})] * 2
    before, after = _excerpt(shift.before, around[0], old), _excerpt(shift.after, around[1], new)
    shortened = len(before) < len(shift.before) or len(after) < len(shift.after)
    return TextPair(before, after, bool(old or new), shortened)


def changed_words(before: Sequence[str], after: Sequence[str]) -> tuple[list[int], list[int]]:
    """Which words of each are not in the other at that place.

    >>> changed_words(["a", "fine", "film"], ["a", "good", "film"])
    ([1], [1])
    >>> changed_words(["a", "fine", "film"], ["a", "very", "good", "film"])
    ([1], [1, 2])
    """
    if len(before) == len(after):
        places = [i for i, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
        return places, places
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    moved = [(range(i, j), range(k, m)) for kind, i, j, k, m in steps if kind != "equal"]
    return [i for old, _ in moved for i in old], [i for _, new in moved for i in new]


def _around(e: Explanation, exchanged: Sequence[int]) -> list[int]:
    """The words to show: all of a short text; of a long one the heaviest, the exchanged and their neighbours."""
    if len(e) <= LONG:
        return list(range(len(e)))
    centres = [*e.top_indices(), *exchanged]
    return sorted({i for c in centres for i in range(max(0, c - AROUND), min(len(e), c + AROUND + 1))})


def _excerpt(e: Explanation, kept: Sequence[int], exchanged: Sequence[int]) -> Explanation:
    """The text of these words alone, with a sign where something was left out."""
    whole = len(kept) == len(e)
    text, spans = (e.text, list(e.spans)) if whole else _joined(e, kept)
    marks = tuple(span for i, span in zip(kept, spans, strict=True) if i in set(exchanged))
    return replace(
        e,
        text=text,
        tokens=tuple(e.tokens[i] for i in kept),
        spans=tuple(spans),
        weights=tuple(e.weights[i] for i in kept),
        rationales=marks or None,
        read_to=e.read_to if whole else None,
        rationale=e.rationale if whole else _moved(e, kept, spans),
    )


def _moved(e: Explanation, kept: Sequence[int], spans: Sequence[Span]) -> tuple[Picked, ...] | None:
    """What was selected, where it stands among these words: all of it is among them."""
    if e.rationale is None:
        return None
    starts = {e.spans[i][0]: start for i, (start, _) in zip(kept, spans, strict=True)}
    ends = {e.spans[i][1]: end for i, (_, end) in zip(kept, spans, strict=True)}
    return tuple((starts[start], ends[end], chance) for start, end, chance in e.rationale)


def _joined(e: Explanation, kept: Sequence[int]) -> tuple[str, list[Span]]:
    breaks = [0, *(j for j, (a, b) in enumerate(pairwise(kept), 1) if b > a + 1), len(kept)]
    text, spans = "", []
    for start, end in pairwise(breaks):
        run = kept[start:end]
        begin = e.spans[run[0]][0]
        text += (GAP if text else GAP.lstrip()) if run[0] > 0 else ""
        spans += [(len(text) + a - begin, len(text) + b - begin) for a, b in (e.spans[i] for i in run)]
        text += e.text[begin : e.spans[run[-1]][1]]
    return text + (GAP if kept[-1] < len(e) - 1 or e.read_to is not None else ""), spans


OTHER = "Other numbers"
OPEN = 2
"""Texts shown of each probe; the others are folded away."""


def render(report: Report) -> str:
    shown = [(shift, text_pair(shift)) for shift in report.shifts]
    named = measure_noun(report.facts.get("explanation", ""))
    drawn, collapsed = pictures(report), _collapsed(report, named)
    html = (
        templates()
        .get_template("audit.html.jinja")
        .render(
            report=report,
            icons=ICONS,
            lead=_lead(report),
            summary=_summary(report),
            cards=[(one, meaning(one, bool(collapsed), named), _drawn(report, one)) for one in report.verdicts],
            noun=named,
            collapsed=collapsed,
            aloud=axis_sentence,
            probes=_probes(shown),
            open=OPEN,
            legend=_legend([one for _, one in shown]),
            pictures=drawn,
            missing=MISSING if any(picture.svg is None for picture in drawn) else "",
            groups=_groups(report),
            absent=_absent(report),
            command=shlex.join(report.command),
            told=partial(deciding_sentence, report),
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate in a text must not stop whoever writes the page


def _lead(report: Report) -> str:
    """What was audited, in a line; empty where too little is known."""
    facts = report.facts
    if not {"explanation", "model", "texts"} <= facts.keys():
        return ""
    texts = f"{facts['texts']} {'text' if facts['texts'] == '1' else 'texts'}"
    return f"Explanation: {facts['explanation']} · Model: {facts['model']} · {texts}"


def _summary(report: Report) -> dict[str, str]:
    """What to read first: date, gate, how often the label is right, and how much of the texts the model reads."""
    found = {"Date": report.date.replace("T", " ").replace("Z", " UTC")} if report.date else {}
    if report.gate is not None:
        found["Gate"] = report.gate.summary
        found["Policy"] = "; ".join(report.gate.requirements)
    row = report.find("accuracy")
    if row is not None and row.n:
        found["Accuracy"] = number(row.value) + ("" if row.interval is None else f" ({interval(row)})")
    shares = ("truncated texts", "unknown tokens")
    return found | {name.capitalize(): report.facts[name] for name in shares if name in report.facts}


def _drawn(report: Report, verdict: Verdict) -> list[tuple[DecidingRow, Axis | None]]:
    """The numbers that decide a verdict, each with its axis."""
    found = deciding_rows(report, verdict)
    return [
        (one, axis(one.row, report.meaning(one.row.measure), verdict.thresholds.get(one.row.measure))) for one in found
    ]


def _collapsed(report: Report, named: str) -> str:
    """An explanation that says the same of every text holds still, and explains nothing."""
    row = report.find(COLLAPSED)
    if row is None or not row.value > 0:
        return ""
    return row.note or f"The {named} says the same whatever the text."


def _probes(shown: Sequence[tuple[Shift, TextPair]]) -> list[tuple[str, list[tuple[Shift, TextPair]]]]:
    """By probe; the worst text first, and first the probe that has it."""
    worst = {shift.probe: max(s.distance for s, _ in shown if s.probe == shift.probe) for shift, _ in shown}
    ordered = sorted(shown, key=lambda one: (-worst[one[0].probe], one[0].probe, -one[0].distance))
    return [(name, list(found)) for name, found in groupby(ordered, key=lambda one: one[0].probe)]


def _legend(pairs: Sequence[TextPair]) -> Markup:
    texts = [text for one in pairs for text in (one.before, one.after)]
    said = legend(texts).replace(": the known reason", ": the words that were exchanged")
    return Markup(said + (" &ensp; […]: words left out" if any(one.shortened for one in pairs) else ""))  # all ours


def _groups(report: Report) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Question -> whose number -> rows, in the order in which they were measured; the audited explanation first."""
    filed = {**_decided(report), **report.questions}
    found: dict[str, dict[str, list[Row]]] = {}
    for row in (row for row in report.rows if not math.isnan(row.value)):
        found.setdefault(_question(row.measure, filed), {}).setdefault(explainer_name(row), []).append(row)
    main, last = report.facts.get("explanation"), found.pop(OTHER, None)
    if last is not None:
        found[OTHER] = last
    return [(question, sorted(rows.items(), key=lambda item: item[0] != main)) for question, rows in found.items()]


def _decided(report: Report) -> dict[str, str]:
    measures = {row.signature: row.measure for row in report.rows}
    return {measures[one]: v.question for v in report.verdicts for one in v.rows if one in measures}


def _question(measure: str, filed: Mapping[str, str]) -> str:
    """Where a measure is filed, else where all measures of its probe are, else all of its family."""
    if measure in filed:
        return filed[measure]
    family, _, probe = measure.partition("/")
    alike = {filed[name] for name in filed if probe and name.partition("/")[2] == probe}
    kin = {filed[name] for name in filed if name.partition("/")[0] == family}
    return next((min(found) for found in (alike, kin) if len(found) == 1), OTHER)


def _absent(report: Report) -> list[tuple[str, list[str]]]:
    """Why -> which measures, where a question could not be asked."""
    found: dict[str, dict[str, None]] = {}
    for row in report.rows:
        if math.isnan(row.value):
            found.setdefault(_capital(row.note or "no reason is known"), {})[
                f"{row.measure} ({explainer_name(row)})"
            ] = None
    return [(why, list(measures)) for why, measures in found.items()]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
