"""Plots of docs/results/stability.md: flips and lost words by technique, and shift against macro-F1."""

from typing import Any

import altair as alt
import pandas as pd

from studies.figures.style import COLORS, GRAY, INK, Chart, once, panels, rounded
from studies.stability.plan import COSTS
from studies.study import STUDIES

FOREST = {
    "label flips, table": "label-flip.3-synonyms",
    "label flips, held-out": "label-flip.3-held-out",
    "top-7 words lost, table": "top-k-lost.3-synonyms",
    "top-7 words lost, held-out": "top-k-lost.3-held-out",
}
LABELS = {
    "word-at-groups": "word-at, synonym groups",
    "consensus-groups": "consensus, synonym groups",
    "consensus-word-at": "consensus, word-at teachers",
    "consensus": "consensus",
    "synonym-augmentation": "synonym augmentation",
    "word-at": "word-at",
    "seat-joint-kl": "seat (joint)",
    "attention-at-by-f1": "attention-at",
    "attention-iat-word-by-f1": "attention-iat (word)",
    "tempered-3.0": "vanilla, scores / 3",
    "anchored": "anchored",
    "ensemble": "ensemble of five vanilla models",
    "word-iat-by-f1": "word-iat",
    "attention-rp-by-f1": "attention-rp",
    "tempered-1.5": "vanilla, scores / 1.5",
    "tempered-2.0": "vanilla, scores / 2",
}
FOREST_ROWS = tuple(LABELS)[:10]
"""The recommended rows, those of published techniques, and the control."""
TEMPERED_ROWS = ("tempered-1.5", "tempered-2.0", "tempered-3.0")
ACCURACY_ROWS = (
    *("consensus", "consensus-word-at", "anchored", "word-at", "synonym-augmentation", "ensemble", "word-iat-by-f1"),
    *("attention-rp-by-f1", "attention-at-by-f1", "attention-iat-word-by-f1", "seat-joint-kl", *TEMPERED_ROWS),
)


def stability_forest() -> Chart:
    numbers = STUDIES["stability"].numbers
    lines: list[dict[str, Any]] = []
    for row in FOREST_ROWS:
        kind = "control" if row in TEMPERED_ROWS else "technique"
        label = f"control: {LABELS[row]}" if kind == "control" else LABELS[row]
        for panel, key in FOREST.items():
            number = numbers[f"mean.{row}.{key}"]
            assert number.interval is not None
            low, high = number.interval
            values = {"value": float(number), "low": low, "high": high}
            lines.append({"row": label, "panel": panel, "kind": kind, **rounded(values)})
    frame = pd.DataFrame(lines)
    color = alt.Color("kind:N", scale=alt.Scale(domain=["technique", "control"], range=[COLORS[0], GRAY]), legend=None)
    base = alt.Chart(frame).encode(y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(frame["row"]))), color=color)
    scale = alt.Scale(type="log", domain=[0.25, 1.5], nice=False)
    axis = alt.Axis(values=[0.3, 0.5, 1])
    left = alt.X("low:Q", scale=scale, axis=axis, title="← fewer; ratio to vanilla")
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4]).encode(x=alt.datum(1))
    bars = base.mark_rule(strokeWidth=2).encode(x=left, x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", scale=scale))
    chart: Chart = (rule + bars + points).properties(width=122, height=170).facet(panels(FOREST), columns=4)
    return chart


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
    numbers = STUDIES["stability"].numbers
    start = {"shift": 1.0, "f1": 0.0, "cost": 1.0, "kind": "vanilla, scores divided", "order": 0}
    lines: list[dict[str, Any]] = [{"row": "vanilla", **start}]
    for row in ACCURACY_ROWS:
        line: dict[str, Any] = {
            "row": LABELS[row],
            "shift": float(numbers[f"mean.{row}.jensen-shannon.3-synonyms"]),
            "f1": float(numbers[f"mean.{row}.macro-f1"]),
            "cost": COSTS.get(row, 1.0),
            "kind": "vanilla, scores divided" if row in TEMPERED_ROWS else "technique",
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
        side: dict[str, Any] = (
            {"align": "right", "dx": -away} if line["row"] in LABELED_LEFT else {"align": "left", "dx": away}
        )
        mark = base.transform_filter(alt.FieldEqualPredicate(field="row", equal=line["row"]))
        labels.append(
            mark.mark_text(**side, dy=LABEL_OFFSETS.get(line["row"], 0), color=INK, fontSize=11).encode(text="row:N")
        )
    return alt.layer(curve.encode(order="order:Q"), points, *labels).properties(width=540, height=400)
