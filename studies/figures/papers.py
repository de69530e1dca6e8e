"""Plots of docs/results/seat.md and docs/results/kitada.md: published tables, ours and the papers'."""

from statistics import mean

import altair as alt
import pandas as pd

from studies.figures.style import COLORS, GRAY, Chart, once, panels, rounded, wide
from studies.papers.data import TECHNIQUES, blocks_of, paper_difference, paper_ratio, records, shift_ratio
from studies.papers.kitada import (
    CLASSIFICATION_BLOCKS,
    KITADA,
    differences,
    scores_of_test_texts,
    scores_of_validation_texts,
)
from studies.papers.seat import ENCODERS


def published_seat() -> Chart:
    lines = []
    for technique, label in TECHNIQUES.items():
        for encoder, name in SEAT_PANELS.items():
            blocks = blocks_of("seat-table1", encoder)
            ours = shift_ratio(technique, blocks)
            paper = paper_ratio(technique, ENCODERS[encoder], len(blocks))
            shared = {"row": label, "panel": name}
            lines.append({**shared, "kind": OURS, **rounded(ours._asdict())})
            lines.append({**shared, "kind": "paper", **rounded({"value": paper, "low": paper, "high": paper})})
    frame, kinds = pd.DataFrame(lines), [OURS, "paper"]
    scale = alt.Scale(type="log", domain=[3e-7, 300], nice=False)
    axis = alt.Axis(values=[1e-6, 1e-4, 1e-2, 1, 100], tickCount=5, labelExpr="datum.value == 1 ? '1' : " + POWERS)
    row = alt.Y("row:N", title=None, sort=list(TECHNIQUES.values()))
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4]).encode(x=alt.datum(1))
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            x=alt.X("value:Q", scale=scale, axis=axis, title="← more stable; shift, ratio to vanilla"),
            y=row,
            color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=COLORS[:2]), **wide()),
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds), **wide()),
        )
    )
    bars = alt.Chart(frame).mark_rule(strokeWidth=2, color=COLORS[0]).encode(x="low:Q", x2="high:Q", y=row)
    both = (rule + bars + points).properties(width=185, height=130)
    chart: Chart = both.facet(panels(tuple(SEAT_PANELS.values())), columns=3)
    return chart


POWERS = "datum.value == 100 ? '100' : datum.value == 0.01 ? '0.01' : datum.value < 1e-5 ? '10⁻⁶' : '10⁻⁴'"
SEAT_PANELS = {"rnn": "RNN", "bilstm": "BiLSTM", "transformer-minilm": "MiniLM (paper: BERT)"}
OURS = "ours, with 95 % interval if it is wider than the mark"


def published_seat_seeds() -> Chart:
    lines = []
    for value in records("seat-figure2")[0].values:
        assert value.value is not None
        assert value.interval is not None
        numbers_of = {"value": value.value, "low": value.interval[0], "high": value.interval[1]}
        lines.append({"row": value.labels[0], "technique": value.labels[2], **rounded(numbers_of)})
    names = ["Vanilla", "SEAT"]
    base = alt.Chart(pd.DataFrame(lines)).encode(
        y=alt.Y("row:N", title=None, sort=None),
        yOffset=alt.YOffset("technique:N", sort=names),
        color=alt.Color("technique:N", scale=alt.Scale(domain=names, range=[GRAY, COLORS[0]]), **wide()),
    )
    x = alt.X("low:Q", title="← more alike; JSD between seeds, nats, with 95 % interval", scale=alt.Scale(domainMin=0))
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    shape = alt.Shape("technique:N", scale=alt.Scale(domain=names), **wide())
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x="value:Q", shape=shape)
    chart: Chart = (bars + points).properties(width=420, height=150)
    return chart


def published_kitada() -> Chart:
    lines = []
    for technique, label in KITADA.items():
        for panel, measure in KITADA_PANELS.items():
            ours = differences()[f"kitada.{measure}.{technique}.five"]
            paper = paper_difference(technique, CLASSIFICATION_BLOCKS.values(), measure == "correlation")
            shared = {"row": label, "panel": panel}
            lines.append({**shared, "kind": "ours, with 95 % interval", **rounded(ours._asdict())})
            lines.append({**shared, "kind": "paper", **rounded({"value": paper})})
    return alt.hconcat(*(_differences(pd.DataFrame(lines), panel) for panel in KITADA_PANELS))


def _differences(frame: pd.DataFrame, panel: str) -> alt.LayerChart:
    first, kinds = panel == next(iter(KITADA_PANELS)), ["ours, with 95 % interval", "paper"]
    frame = frame[frame["panel"] == panel]
    base = alt.Chart(frame).encode(
        y=alt.Y("row:N", title=None, sort=list(TECHNIQUES.values()), axis=alt.Axis(labels=first)),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=COLORS[:2]), **wide()),
    )
    form = "+.3f" if first else "+.2f"
    axis = alt.Axis(labelExpr=f"datum.value ? format(datum.value, '{form}') : '0'", tickCount=5)
    scale = alt.Scale(padding=10, nice=False)
    x = alt.X("low:Q", title="difference from vanilla (right: better) →", axis=axis, scale=scale)
    zero = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4]).encode(x=alt.datum(0))
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds), **wide())
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x="value:Q", shape=shape)
    chart: alt.LayerChart = (zero + bars + points).properties(width=265, height=140, title=panel)
    return chart


KITADA_PANELS = {
    "macro-F1 (SNLI: accuracy), five data sets": "score",
    "correlation of attention with gradients": "correlation",
}


def published_epsilon() -> Chart:
    lines = []
    for panel, curves in zip(EPSILON_PANELS, (scores_of_test_texts(), scores_of_validation_texts()), strict=True):
        for technique, variants in curves.items():
            for variant, scores in variants.items():
                numbers_of = {"value": mean(scores), "low": min(scores), "high": max(scores)}
                lines.append({"panel": panel, "technique": technique, "epsilon": float(variant), **rounded(numbers_of)})
    base = alt.Chart(pd.DataFrame(lines)).encode(
        x=alt.X("epsilon:Q", title="size of the perturbation, ε", axis=alt.Axis(values=[0, 1, 5, 15, 30])),
        color=alt.Color("technique:N", scale=alt.Scale(domain=EPSILON, range=[GRAY, *COLORS]), **wide()),
    )
    scale = alt.Scale(domain=[0.3, 0.9])
    lines_of = base.mark_line().encode(y=alt.Y("value:Q", title="macro-F1 (higher: better) →", scale=scale))
    shape = alt.Shape("technique:N", scale=alt.Scale(domain=EPSILON), **wide())
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y=alt.Y("value:Q", scale=scale), shape=shape)
    bars = base.mark_rule().encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    chart: Chart = (lines_of + bars + points).properties(width=280, height=260).facet(panels(EPSILON_PANELS), columns=2)
    return chart


EPSILON_PANELS = ("SST-2, test texts", "SNLI, validation texts")


EPSILON = ("Vanilla", "Word AT", "Word iAT", "Attention AT", "Attention iAT")
