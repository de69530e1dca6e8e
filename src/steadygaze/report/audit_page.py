"""The audit page: one HTML file without scripts or external files, rendered from a Report by audit.html.jinja."""

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby

from markupsafe import Markup

from steadygaze.report.audit_summary import summary_paragraph
from steadygaze.report.page import (
    Axis,
    DecidingRow,
    axis,
    axis_sentence,
    deciding_rows,
    deciding_sentence,
    measure_sentence,
    templates,
)
from steadygaze.report.plot_data import pictures, reliability_picture
from steadygaze.report.sentences import sentence
from steadygaze.report.text_excerpts import TextPair, excerpt, text_pair
from steadygaze.results.evaluation import WrongPrediction
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import (
    ICONS,
    audit_subject,
    condition_name,
    explainer_name,
    interval,
    measure_noun,
    number,
)
from steadygaze.results.highlight import legend
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.report import Report
from steadygaze.results.row import Answer, MeasureKey, Row, Shift, Verdict

COLLAPSED = "collapsed"
GOOD_SCORES = "The scores are good, but {}."
"""For a property that is undecided only because one that it depends on is."""
SILENT = "The {noun} does not depend on the text: it is stable, but explains nothing."
IN_HEADER = ("model", "model type", "explanation", "texts", "truncated texts", "unknown tokens")
"""Facts in the header of the page."""
FACT_NAMES = {"trained on": "fingerprint of the training data", "data": "fingerprint of the audited data"}
"""Name of a fact -> its name on the page."""
NO_WORD_CHANGES = "No word changes: the perturbation changes word vectors, and the shading shows the new weights."
WIDE = 40
"""Characters from which a fact takes a wide cell."""


def meaning(report: Report, verdict: Verdict, collapsed: bool, noun: str, rows: Sequence[Row] = ()) -> str:
    """Explain an answer.  `collapsed`: the explanation does not depend on the text.  `rows`: those of the verdict."""
    if collapsed and COLLAPSED in verdict.thresholds:
        return SILENT.format(noun=noun)
    if verdict.answer == "undecided" and (of := [item for item in verdict.reasons if item.code == NoteCode.DEPENDS_ON]):
        return GOOD_SCORES.format(sentence(of[0]))
    meanings = next((item.meanings for item in report.properties if item.name == verdict.key), {})
    doubtful = [row for row in _rated(verdict, rows) if row.interval is None or not _is_yes(verdict, row)]
    names = [condition_name(row.key.probe) for row in doubtful]  # short: all answers fit one screen
    listed = f" ({', '.join(names)})" if names else ""
    # A report may come from elsewhere: its text is not a format string.
    return meanings.get(verdict.answer, "").replace("{noun}", noun).replace("{conditions}", listed)


def _rated(verdict: Verdict, rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.measure != COLLAPSED and row.measure in verdict.thresholds]


def _is_yes(verdict: Verdict, row: Row) -> bool:
    """True if the whole interval lies within the threshold of yes."""
    good, bad = verdict.thresholds[row.measure]
    low, high = row.interval or (row.value, row.value)
    return low >= good if good > bad else high <= good


OTHER = "Other numbers"
FILTERED_CLASSES = 8
"""Most classes with a filter; audit.css has a rule for each."""
OPEN, OPEN_ERRORS, RATIONALES = 2, 5, 5
"""Texts shown per perturbation, wrong predictions and texts with human rationales; the others are collapsed."""


def render(report: Report) -> str:
    pairs = [(shift, text_pair(shift)) for shift in report.shifts]
    noun = measure_noun(report.facts.get("explanation", ""))
    rationales, terms = _rationales(report), _glossary(report)
    anchors = {name: anchor for part in terms.values() for name, anchor, _ in part}
    html = (
        templates()
        .get_template("audit.html.jinja")
        .render(
            report=report,
            icons=ICONS,
            lead=audit_subject(report.facts),
            paragraph=summary_paragraph(report),
            summary=_summary(report),
            cards=_cards(report),
            others=[(name, _cards(report, name)) for name in report.other_verdicts],
            grid=report.answers_by,
            shown=_answers_shown(report),
            properties={item.name: item for item in report.properties},
            facts=_facts(report),
            fact_names=FACT_NAMES,
            same_words=_same_words,
            no_word_changes=NO_WORD_CHANGES,
            wide=WIDE,
            plain_label=report.label,
            scale=report.scale,
            noun=noun,
            health=Markup(report.health.banner),  # escaped
            aloud=axis_sentence,
            rationales=rationales,
            open_rationales=RATIONALES,
            agreement=_agreement(report),
            reliability=reliability_picture(report.evaluation),
            wrong=_wrong(report),
            wrong_total=_wrong_total(report),
            wrong_legend=_text_legend([error.explanation for error in _wrong(report) if error.explanation]),
            rationale_legend=_text_legend([e for _, e in rationales]),
            open_errors=OPEN_ERRORS,
            wrong_classes=_wrong_classes(report),
            extremes=_extremes(pairs),
            flips_differ=len({shift.before.label == shift.after.label for shift in report.shifts}) > 1,
            probes=_probes(pairs),
            open=OPEN,
            legend=_legend([pair for _, pair in pairs]),
            pictures=pictures(report),
            groups=_groups(report),
            absent=_absent(report),
            glossary=terms,
            anchors=anchors,
            term_of=partial(_term, report),
            command=shlex.join(report.command),
            deciding_sentence=partial(deciding_sentence, report),
            decides={name for verdict in _all_verdicts(report) for name in verdict.rows},
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


def _rationales(report: Report) -> list[tuple[Explanation, Explanation]]:
    """Texts with a human rationale: the words of the rationale highlighted, and the explanation."""
    return [(_human(e), e) for e in map(excerpt, report.explanations) if e.rationales]


def _agreement(report: Report) -> Row | None:
    """The token F1 against human rationales; its note has the chance level."""
    rows = (report.find(name) for name in ("token-f1/selected", "token-f1"))
    return next((row for row in rows if row is not None and row.n), None)


def _human(e: Explanation) -> Explanation:
    """The human rationale as a selection of words."""
    marked = [any(start < stop and begin < end for begin, stop in e.rationales or ()) for start, end in e.spans]
    rationale = tuple((*span, 1.0) for span in e.rationales or ())
    weights = tuple(map(float, marked))
    return replace(e, weights=weights, unit="selection", rationale=rationale, rationales=None, bounds=None)


def _wrong(report: Report) -> list[WrongPrediction]:
    """The wrong predictions; long texts as excerpts."""
    errors = () if report.evaluation is None else report.evaluation.errors
    return [replace(error, explanation=error.explanation and excerpt(error.explanation)) for error in errors]


def _wrong_total(report: Report) -> int:
    counts = () if report.evaluation is None else report.evaluation.confusion
    return sum(count for i, line in enumerate(counts) for j, count in enumerate(line) if i != j)


def _wrong_classes(report: Report) -> list[str]:
    """The classes of the wrong predictions, for a filter; none if there is nothing to choose."""
    classes = list(dict.fromkeys(str(error.predicted) for error in _wrong(report)))
    return classes if 1 < len(classes) <= FILTERED_CLASSES else []


def _text_legend(explanations: Sequence[Explanation]) -> Markup:
    return Markup(legend(explanations) if explanations else "")  # no user text


def _summary(report: Report) -> dict[str, str]:
    """Date, gate, accuracy, truncation and unknown tokens."""
    summary = {"Date": report.date.replace("T", " ").replace("Z", " UTC")} if report.date else {}
    if report.gate is not None:
        summary["Gate"] = report.gate.summary
        summary["Policy"] = "; ".join(report.gate.requirements)
    if (row := report.accuracy) is not None:
        summary["Accuracy"] = number(row.value) + ("" if row.interval is None else f" ({interval(row)})")
    shares = ("truncated texts", "unknown tokens")
    return summary | {name.capitalize(): report.facts[name] for name in shares if name in report.facts}


def _facts(report: Report) -> dict[str, str]:
    """The facts that the header does not show."""
    shown = IN_HEADER if audit_subject(report.facts) else ()
    return {name: value for name, value in report.facts.items() if name not in shown}


def _all_verdicts(report: Report) -> list[Verdict]:
    return [*report.verdicts, *chain.from_iterable(report.other_verdicts.values())]


def _answers_shown(report: Report) -> list[Answer]:
    """The answers in the grid of explainers, in the order of `ICONS`."""
    shown = {answer for answers in report.answers_by.values() for answer in answers.values()}
    return [answer for answer in ICONS if answer in shown]


def _cards(
    report: Report, explainer: str | None = None
) -> list[tuple[Verdict, str, list[tuple[DecidingRow, Axis | None]]]]:
    """The verdicts of an explainer; None: the first."""
    collapsed = _is_collapsed(report, explainer)
    noun = measure_noun(explainer or report.facts.get("explanation", ""))
    verdicts = report.verdicts if explainer is None else report.other_verdicts[explainer]
    return [_card(report, verdict, collapsed, noun) for verdict in verdicts]


def _card(
    report: Report, verdict: Verdict, collapsed: bool, noun: str
) -> tuple[Verdict, str, list[tuple[DecidingRow, Axis | None]]]:
    """A verdict, the meaning of its answer, and its rows."""
    axes = _axes(report, verdict)
    return verdict, meaning(report, verdict, collapsed, noun, [item.row for item, _ in axes]), axes


def _axes(report: Report, verdict: Verdict) -> list[tuple[DecidingRow, Axis | None]]:
    """The rows that decide a verdict, each with its axis."""
    deciding = deciding_rows(report, verdict)
    return [
        (item, axis(item.row, report.meaning(item.row.measure), verdict.thresholds.get(item.row.measure)))
        for item in deciding
    ]


def _is_collapsed(report: Report, explainer: str | None = None) -> bool:
    """True if the weights of the explainer do not depend on the text; None: of the first."""
    row = report.find(COLLAPSED, explainer)
    return row is not None and row.value > 0


def _probes(pairs: Sequence[tuple[Shift, TextPair]]) -> list[tuple[str, list[tuple[Shift, TextPair]]]]:
    """Group by perturbation; largest shifts first."""
    worst = {shift.probe: max(s.distance for s, _ in pairs if s.probe == shift.probe) for shift, _ in pairs}
    ordered = sorted(pairs, key=lambda pair: (-worst[pair[0].probe], pair[0].probe, -pair[0].distance))
    return [(name, list(group)) for name, group in groupby(ordered, key=lambda pair: pair[0].probe)]


def _extremes(pairs: Sequence[tuple[Shift, TextPair]]) -> list[tuple[str, Shift, TextPair]]:
    """The least and the most stable text under one perturbation, preferably of words; none if there is one text."""
    groups = [group for _, group in _probes(pairs) if len(group) > 1]
    of_words = [group for group in groups if group[0][0].before.text != group[0][0].after.text]
    if not groups:
        return []
    group = (of_words or groups)[0]
    return [("Least stable", *group[0]), ("Most stable", *group[-1])]


def _same_words(shifts: Iterable[Shift]) -> bool:
    return all(shift.before.text == shift.after.text for shift in shifts)


def _legend(pairs: Sequence[TextPair]) -> Markup:
    texts = [text for pair in pairs for text in (pair.before, pair.after)]
    keys = legend(texts, "the substituted words")
    return Markup(
        keys + (" &ensp; […]: omitted words" if any(pair.shortened for pair in pairs) else "")
    )  # no user text


def _groups(report: Report) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Section -> explainer -> rows, in the order of measurement; the audited explainer first."""
    headings = {**_decided(report), **report.sections}
    groups: dict[str, dict[str, list[Row]]] = {}
    for row in (row for row in report.rows if not math.isnan(row.value)):
        groups.setdefault(_section(row.measure, headings), {}).setdefault(explainer_name(row), []).append(row)
    main, last = report.facts.get("explanation"), groups.pop(OTHER, None)
    if last is not None:
        groups[OTHER] = last
    return [(section, sorted(rows.items(), key=lambda item: item[0] != main)) for section, rows in groups.items()]


def _decided(report: Report) -> dict[str, str]:
    measures = {row.signature: row.measure for row in report.rows}
    return {measures[name]: v.title for v in _all_verdicts(report) for name in v.rows if name in measures}


def _section(measure: str, headings: Mapping[str, str]) -> str:
    """The heading of a measure, else of its perturbation, else of its family, if that is unique."""
    if measure in headings:
        return headings[measure]
    key, keys = MeasureKey.parse(measure), {name: MeasureKey.parse(name) for name in headings}
    same_probe = {headings[name] for name in keys if key.probe and keys[name].probe == key.probe}
    same_measure = {headings[name] for name in keys if keys[name].measure == key.measure}
    return next((min(group) for group in (same_probe, same_measure) if len(group) == 1), OTHER)


Terms = list[tuple[str, str, str]]
"""Name, anchor and sentence."""


def _glossary(report: Report) -> dict[str, Terms]:
    """The properties of the verdicts, and the measures and perturbations of the scores, by heading."""
    rows = [row for row in report.rows if row.n]
    measures = {name: report.measures[name] for row in rows if (name := _term(report, row.measure))}
    probes = dict.fromkeys(row.key.probe for row in rows if row.key.probe in report.probes)
    questions = {item.name: item.question for item in report.properties}
    parts = {
        "Properties": [(v.title, _anchor(v.key), questions[v.key]) for v in report.verdicts if questions.get(v.key)],
        "Measures": [(name, _anchor(name), measure_sentence(fact)) for name, fact in sorted(measures.items())],
        "Perturbations and comparisons": [(name, _anchor(name), report.probes[name]) for name in probes],
    }
    return {heading: terms for heading, terms in parts.items() if terms}


def _term(report: Report, measure: str) -> str:
    """The name under which a measure is described; empty if it is not."""
    names = (measure, MeasureKey.parse(measure).measure)
    return next((name for name in names if name in report.measures), "")


def _anchor(name: str) -> str:
    """
    >>> _anchor("jensen-shannon/adversarial"), _anchor("20%")
    ('term-jensen-shannon-adversarial', 'term-20-')
    """
    return "term-" + re.sub(r"[^\w-]", "-", name)


def _absent(report: Report) -> list[tuple[str, list[str]]]:
    """Reason -> measures that do not apply."""
    rows: dict[Note | None, list[Row]] = {}
    for row in (row for row in report.rows if math.isnan(row.value)):
        rows.setdefault(row.absent, []).append(row)
    return [(_reason(group[0]), [*dict.fromkeys(map(_measured, group))]) for group in rows.values()]


def _reason(row: Row) -> str:
    text = row.note or "no reason is known"
    return f"{text[:1].upper()}{text[1:]}"


def _measured(row: Row) -> str:
    return f"{row.measure} ({explainer_name(row)})"
