"""Plots of docs/results/rationales.md: interlocking on planted reviews, and agreement with people on movie reviews."""

from statistics import mean, stdev

import altair as alt
import pandas as pd

from studies.figures.style import (
    COLORS,
    GRAY,
    INK,
    Chart,
    below,
    head,
    interval,
    once,
    panels,
    rounded,
    wide,
)
from studies.movies.table import load as load_movies
from studies.rationales.plan import BIAS_AGREEMENT, SKEW_EPOCHS
from studies.rationales.runs import load as load_planted
from studies.rationales.table import PAPER
from studies.tables import values

STEPS = {
    "skewed": {"none": "standard"} | {str(epochs): setting for setting, epochs in SKEW_EPOCHS.items()},
    "biased": {"none": "standard"} | {str(share): setting for setting, share in BIAS_AGREEMENT.items()},
}
"""Kind -> label of the axis -> setting."""
TITLES = {"skewed": "skew: epochs on first sentences", "biased": "bias: token agrees with label"}


def _planted(measure: str) -> pd.DataFrame:
    """f1 or x1 of RNP and A2R on palate and aroma, ours with standard deviations and the paper's."""
    records, lines = load_planted(), []
    for kind, steps in STEPS.items():
        for aspect in ("palate", "aroma"):
            for step, setting in steps.items():
                paper = PAPER[aspect, setting][("f1", "x1").index(measure) :: 2]
                shared = {"kind": kind, "aspect": aspect, "step": step}
                runs = {"RNP": records.rnp(aspect, setting), "A2R": records.of(aspect, setting, "a2r")}
                for (model, those), theirs in zip(runs.items(), paper, strict=True):
                    scores = values(those, measure)
                    value, deviation = mean(scores), stdev(scores)
                    bounds = {"low": max(0.0, value - deviation), "high": min(100.0, value + deviation)}
                    lines.append(rounded({**shared, "model": model, "value": value, **bounds}))
                    if theirs is not None:
                        lines.append({**shared, "model": f"{model}, paper", "value": theirs})
    return pd.DataFrame(lines)


def interlocking() -> Chart:
    frame = _planted("x1")
    title = "← better; X1, %"
    charts = [_curves(frame[frame["kind"] == kind], kind, title, 245, 130) for kind in STEPS]
    row = alt.Row("aspect:N", sort=["palate", "aroma"], title=None, header=head())
    return alt.hconcat(*(chart.facet(row=row) for chart in charts))


def _curves(frame: pd.DataFrame, kind: str, title: str, width: int, height: int) -> alt.LayerChart:
    """One measure against skew or bias."""
    models = ["RNP", "A2R", "RNP, paper", "A2R, paper"]
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolSize=400, symbolStrokeWidth=2.5, labelLimit=300)
    base = alt.Chart(frame).encode(
        x=alt.X("step:O", sort=list(STEPS[kind]), title=TITLES[kind], axis=alt.Axis(labelAngle=0)),
        color=alt.Color(
            "model:N", scale=alt.Scale(domain=models, range=[COLORS[1], COLORS[0]] * 2), title=None, legend=legend
        ),
    )
    dashes = alt.Scale(domain=models, range=[[1, 0], [1, 0], [3, 3], [3, 3]])
    scale = alt.Scale(domain=[-6, 106], nice=False)
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(values=[0, 25, 50, 75, 100], tickCount=5))
    line = base.mark_line(strokeWidth=2.5).encode(
        y=y, strokeDash=alt.StrokeDash("model:N", scale=dashes, title=None, legend=legend)
    )
    points = base.mark_point(filled=True, size=35, opacity=1).encode(y=alt.Y("value:Q"))
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    chart: alt.LayerChart = (bars + line + points).properties(width=width, height=height)
    return chart


RANDOM_SENTENCE = 100 * mean(1 / sentences for sentences in (5, 6, 7))
"""Percent of planted reviews in which a random sentence is the right one; they have five, six or seven."""


def _with_random(chart: alt.LayerChart, frame: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """The curves over a line for a random sentence."""
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[1, 3], strokeWidth=1.5).encode(y=alt.datum(RANDOM_SENTENCE))
    note = once(frame).mark_text(color=INK, fontSize=10, dy=-8, align="right")
    words = note.encode(x=alt.value(131), y=alt.datum(RANDOM_SENTENCE), text=alt.value("random"))
    return alt.layer(rule, words, chart)


def rationales() -> Chart:
    """The right sentence of planted reviews on palate, and F1 on movie reviews."""
    frame = _planted("f1")
    palate = frame[frame["aspect"] == "palate"]
    first, second = (
        _with_random(_curves(palate[palate["kind"] == kind], kind, title, 135, 150), palate).properties(title=name)
        for kind, title, name in (
            ("skewed", "right sentence, % →", "generated reviews, skew"),
            ("biased", "", "generated reviews, bias"),
        )
    )
    results = load_movies()
    kinds = ["word vectors", "MiniLM", "no model"]
    lines = [
        {
            "row": label,
            "kind": kinds[label.endswith(" on MiniLM")],
            **rounded(interval([100 * record["chosen"]["test"]["f1"] for record in results[row]])),
        }
        for row, label in MOVIES.items()
        if row in FIRST_MOVIES
    ]
    value = 100 * results["last"][0]["chosen"]["test"]["f1"]
    last = {"row": "last 20 % of the words", "kind": kinds[2], "value": value}
    movies = pd.DataFrame([*lines, rounded(last)]).sort_values("value", ascending=False)
    base = alt.Chart(movies).encode(
        y=alt.Y("row:N", sort=list(movies["row"]), title=None),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[COLORS[0], COLORS[2], GRAY]), **wide()),
    )
    ticks = alt.Axis(values=[25, 30, 35, 40, 45], tickCount=5)
    x = alt.X("low:Q", title="F1 with human rationales, % →", scale=alt.Scale(domain=[25, 45], nice=False), axis=ticks)
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds), **wide())
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x="value:Q", shape=shape)
    third = (bars + points).properties(width=135, height=150, title="movie reviews")
    chart: Chart = alt.hconcat(alt.hconcat(first, second), third).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    return chart


FIRST_MOVIES = (
    "rnp-straight-through",
    "three-player",
    "hardkuma-tuned",
    "attention",
    "a2r",
    "a2r-minilm",
    "attention-minilm",
)
"""Rows of the first plot of the page."""
MOVIES = {
    "rnp": "RNP, REINFORCE",
    "rnp-straight-through": "RNP, straight-through",
    "three-player": "3PLAYER",
    "hardkuma-tuned": "HardKuma",
    "attention": "vanilla attention",
    "a2r": "A2R",
    "rnp-straight-through-minilm": "RNP on MiniLM",
    "a2r-minilm": "A2R on MiniLM",
    "attention-minilm": "vanilla attention on MiniLM",
    "supervised": "supervised by human rationales",
}
BASELINES = {"random": "random spans", "last": "last 20 %"}


def movie_rationales() -> Chart:
    results = load_movies()
    lines, marks = [], []
    for split in ("test", "validation"):
        for row, label in MOVIES.items():
            scores = [100 * record["chosen"][split]["f1"] for record in results[row]]
            lines.append({"row": label, "split": f"{split} reviews", **rounded(interval(scores))})
        for row, label in BASELINES.items():
            value = 100 * results[row][0]["chosen"][split]["f1"]
            marks.append(rounded({"baseline": label, "split": f"{split} reviews", "value": value}))
    order = [line["row"] for line in sorted(lines, key=lambda line: -line["value"]) if line["split"] == "test reviews"]
    frame = pd.DataFrame([*lines, *marks])
    colors = alt.Scale(domain=list(BASELINES.values()), range=[GRAY, COLORS[1]])
    rules = (
        alt.Chart(frame)
        .transform_filter("isValid(datum.baseline)")
        .mark_rule(strokeWidth=2, strokeDash=[5, 3])
        .encode(x="value:Q", color=alt.Color("baseline:N", scale=colors, title=None, legend=below()))
    )
    models = alt.Chart(frame).transform_filter("isValid(datum.row)").encode(y=alt.Y("row:N", sort=order, title=None))
    x = alt.X("low:Q", title="F1 with human rationales, % (right: better) →", scale=alt.Scale(domain=[0, 50]))
    bars = models.mark_rule(strokeWidth=2, color=COLORS[0]).encode(x=x, x2="high:Q")
    points = models.mark_point(filled=True, size=50, color=COLORS[0], opacity=1).encode(x="value:Q")
    both = (rules + bars + points).properties(width=250, height=250)
    chart: Chart = both.facet(panels(("test reviews", "validation reviews"), "split"), columns=2)
    return chart
