"""Plots of docs/results/oracles.md: wrong and undecided answers against thresholds and against the number of texts."""

import altair as alt
import pandas as pd

from studies.figures.style import COLORS, GRAY, Chart, panels, rounded
from studies.oracles.curves import CURVES
from studies.oracles.table import SIZES, VERDICTS
from studies.study import STUDIES

KINDS = ("false yes", "false no", "undecided")
CHOSEN = "chosen"
"""The threshold of yes of the audit: a vertical line."""
NAMES = {"seed-consistency": "seed consistency", "shortcut-leakage": "leakage"}


def oracle_thresholds() -> Chart:
    numbers = STUDIES["oracles"].numbers
    frame = pd.DataFrame(
        [
            rounded({"panel": name, "threshold": value, "answer": kind, "share": float(numbers[key])})
            for name, curve in CURVES.items()
            for value in curve.values
            for kind in KINDS
            if (key := f"curve.{name}.{value}.{kind}") in numbers
        ]
    )
    chosen = pd.DataFrame(
        [{"panel": name, "threshold": curve.threshold.good, "answer": CHOSEN} for name, curve in CURVES.items()]
    )
    scale = alt.Scale(domain=KINDS, range=[COLORS[1], COLORS[0], GRAY])
    base = alt.Chart(pd.concat([frame, chosen])).encode(x=alt.X("threshold:Q", title="threshold"))
    lines = (
        base.transform_filter(f"datum.answer != '{CHOSEN}'")
        .mark_line(strokeWidth=2)
        .encode(
            y=alt.Y("share:Q", title="share of the cases", axis=alt.Axis(labelExpr="round(100 * datum.value) + ' %'")),
            color=alt.Color("answer:N", scale=scale, title=None),
            strokeDash=alt.StrokeDash(
                "answer:N", scale=alt.Scale(domain=KINDS, range=[[1, 0], [6, 3], [2, 2]]), title=None
            ),
        )
    )
    rule = base.transform_filter(f"datum.answer == '{CHOSEN}'").mark_rule(color=GRAY)
    both = (lines + rule).properties(width=170, height=130)
    chart: Chart = both.facet(panels(CURVES), columns=3).resolve_scale(x="independent", y="independent")
    return chart


def oracle_power() -> Chart:
    numbers = STUDIES["oracles"].numbers
    frame = pd.DataFrame(
        [
            {"verdict": NAMES.get(verdict, verdict), "texts": n, **rounded({"share": 1 - float(numbers[key])})}
            for verdict in VERDICTS
            for n in SIZES
            if (key := f"sweep.{n} texts.{verdict}.undecided") in numbers
        ]
    )
    names = [NAMES.get(verdict, verdict) for verdict in VERDICTS]
    domain = alt.Scale(domain=names, range=[*COLORS, GRAY])
    base = alt.Chart(frame).encode(
        x=alt.X("texts:Q", title="texts", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(SIZES))),
        y=alt.Y(
            "share:Q",
            title="decided",
            axis=alt.Axis(labelExpr="round(100 * datum.value) + ' %'"),
            scale=alt.Scale(domain=[0, 1]),
        ),
        color=alt.Color("verdict:N", scale=domain, title=None),
        shape=alt.Shape("verdict:N", scale=alt.Scale(domain=names), title=None),
    )
    points = base.mark_point(filled=True, size=50, opacity=1)
    chart: Chart = (base.mark_line() + points).properties(width=380, height=200)
    return chart
