"""Plots of docs/results/stability.md: flips and lost words by technique, and shift against macro-F1."""

import re

import altair as alt
import pandas as pd

from stability_page import LABELS
from studies.figures.style import COLORS, GRAY, INK, Chart, once, panels, rounded
from studies.stability.comparison import Rows, compare_with_vanilla, rows_of, with_first_seeds
from studies.stability.plan import MAIN_SETTINGS
from studies.stability.records import study_records
from studies.stability.statistics import difference, ratio

COSTS = {
    "vanilla, seeds 0–4": 1,
    "consensus": 8,
    "consensus-word-at": 13,
    "anchored": 3.6,
    "word-at": 2,
    "synonym-augmentation": 2,
    "ensemble": 5,
    "word-iat-by-f1": 2.1,
    "attention-rp-by-f1": 1.25,
    "attention-at-by-f1": 1.28,
    "attention-iat-word-by-f1": 1.25,
    "seat-joint-kl": 2.3,
}
"""Row -> training cost in vanilla runs: the section Cost of each technique's docstring, references included."""
TEMPERED_ROWS = ("tempered-1.5", "tempered-2.0", "tempered-3.0")
FOREST = {
    "label flips, table": "label-flip/3-synonyms",
    "label flips, held-out": "label-flip/3-held-out",
    "top-7 words lost, table": "top-k-lost/3-synonyms",
    "top-7 words lost, held-out": "top-k-lost/3-held-out",
}
FOREST_ROWS = (
    "word-at-groups",
    "consensus-groups",
    "consensus-word-at",
    "consensus",
    "synonym-augmentation",
    "word-at",
    "seat-joint-kl",
    "attention-at-by-f1",
    "attention-iat-word-by-f1",
    "tempered-3.0",
)
"""The recommended rows, those of published techniques, and the control."""


def stability_rows() -> tuple[Rows, list[str]]:
    rows = with_first_seeds(rows_of(study_records()))
    return rows, MAIN_SETTINGS


def plain(row: str) -> str:
    """The label of a row, without Markdown and without the rule of selection."""
    return re.sub(r"[*`]|, by F1$|, KL$| \(ε = 0.2\)", "", LABELS[row])


def stability_forest() -> Chart:
    rows, settings = stability_rows()
    lines = []
    for row in FOREST_ROWS:
        label = f"control: {plain(row)}" if row in TEMPERED_ROWS else plain(row)
        for panel, key in FOREST.items():
            estimate = compare_with_vanilla(ratio, rows, row, key, settings)
            kind = "control" if row in TEMPERED_ROWS else "technique"
            lines.append({"row": label, "panel": panel, "kind": kind, **rounded(estimate._asdict())})
    frame = pd.DataFrame(lines)
    color = alt.Color("kind:N", scale=alt.Scale(domain=["technique", "control"], range=[COLORS[0], GRAY]), legend=None)
    base = alt.Chart(frame).encode(y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(frame["row"]))), color=color)
    scale = alt.Scale(type="log", domain=[0.25, 1.5], nice=False)
    axis = alt.Axis(values=[0.3, 0.5, 1])
    low = alt.X("low:Q", scale=scale, axis=axis, title="← fewer; ratio to vanilla")
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4]).encode(x=alt.datum(1))
    bars = base.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", scale=scale))
    return (rule + bars + points).properties(width=122, height=170).facet(panels(FOREST), columns=4)


LABELED_LEFT = (
    *("anchored", "consensus", "consensus, word-at teachers", "seat (joint)"),
    *("vanilla", "vanilla, scores / 1.5", "vanilla, scores / 2"),
)
"""Rows whose label is to the left of the point; that of the others is to the right."""
LABEL_OFFSETS = {
    "vanilla": -4,
    "vanilla, scores / 3": -12,
    "seat (joint)": 9,
    "attention-rp": -2,
}
"""Row -> pixels by which its label is lower."""


def stability_accuracy() -> Chart:
    rows, settings = stability_rows()
    lines = [{"row": "vanilla", "shift": 1.0, "f1": 0.0, "cost": 1.0, "kind": "vanilla, scores divided", "order": 0}]
    for row in (*COSTS, *TEMPERED_ROWS):
        if row.startswith("vanilla"):
            continue
        shift = compare_with_vanilla(ratio, rows, row, "jensen-shannon/3-synonyms", settings).value
        f1 = compare_with_vanilla(difference, rows, row, "macro-f1", settings).value
        kind = "vanilla, scores divided" if row in TEMPERED_ROWS else "technique"
        line = {
            "row": plain(row),
            "shift": shift,
            "f1": f1,
            "cost": COSTS.get(row, 1.0),
            "kind": kind,
            "order": len(lines),
        }
        lines.append(rounded(line))
    base = alt.Chart(pd.DataFrame(lines)).encode(
        x=alt.X(
            "f1:Q",
            title="macro-F1, difference from vanilla (right: better) →",
            axis=alt.Axis(format="+.2f", values=[-0.01, 0, 0.01, 0.02, 0.03]),
            scale=alt.Scale(domain=[-0.01, 0.03]),
        ),
        y=alt.Y(
            "shift:Q",
            title="← more stable; shift under three synonyms, ratio to vanilla",
            scale=alt.Scale(domain=[0, 1.6]),
        ),
    )
    colors = alt.Scale(domain=["technique", "vanilla, scores divided"], range=[COLORS[0], GRAY])
    curve = base.transform_filter("datum.kind != 'technique'").mark_line(color=GRAY, strokeDash=[4, 4])
    points = base.mark_point(filled=True, opacity=0.85).encode(
        color=alt.Color("kind:N", scale=colors, title=None),
        size=alt.Size(
            "cost:Q",
            title="cost in vanilla runs",
            scale=alt.Scale(domain=[1, 13], range=[40, 520]),
            legend=alt.Legend(values=[1, 2, 5, 13], symbolFillColor=GRAY, symbolStrokeWidth=0),
        ),
    )
    labels = []
    for line in lines:
        away = 13 if line["cost"] > 4 else 8
        side = {"align": "right", "dx": -away} if line["row"] in LABELED_LEFT else {"align": "left", "dx": away}
        mark = base.transform_filter(alt.FieldEqualPredicate(field="row", equal=line["row"]))
        labels.append(
            mark.mark_text(**side, dy=LABEL_OFFSETS.get(line["row"], 0), color=INK, fontSize=11).encode(text="row:N")
        )
    return alt.layer(curve.encode(order="order:Q"), points, *labels).properties(width=540, height=400)
