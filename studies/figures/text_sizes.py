"""Plots of docs/results/small-data.md and docs/results/long-texts.md."""

from collections import defaultdict

import altair as alt
import pandas as pd

from studies.figures.style import COLORS, GRAY, RECORDS, Chart, interval, panels, rounded, wide
from studies.small_data.plan import CORPORA
from studies.tables import read_records

MODELS = {
    "tfidf-lr": "TF-IDF regression, scikit-learn's settings",
    "tfidf-lr-10-balanced": "TF-IDF regression, C = 10, balanced classes",
    "default": "steadygaze, defaults",
    "glove": "steadygaze, defaults with GloVe vectors",
}


def small_data() -> Chart:
    scores: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for record in read_records([RECORDS / "small_data.jsonl"]):
        if record["row"] in MODELS:
            scores[record["corpus"], record["size"], MODELS[record["row"]]].append(record["macro-f1"])
    models = list(MODELS.values())
    lines = [
        rounded({"corpus": CORPORA[corpus], "texts": f"{size:,}", "model": model, **interval(values)})
        for (corpus, size, model), values in scores.items()
    ]
    frame = pd.DataFrame(lines)
    base = alt.Chart(frame).encode(
        x=alt.X("texts:O", sort=["200", "500", "1,000"], title="training texts", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("model:N", sort=models),
        color=alt.Color(
            "model:N", scale=alt.Scale(domain=models, range=[GRAY, COLORS[1], COLORS[0], COLORS[2]]), **wide(2)
        ),
    )
    scale, ticks = alt.Scale(domain=[0.3, 0.9]), alt.Axis(tickCount=6)
    y = alt.Y("low:Q", title="macro-F1 (higher: better) →", scale=scale, axis=ticks)
    shape = alt.Shape("model:N", scale=alt.Scale(domain=models), **wide(2))
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y="value:Q", shape=shape)
    both = (base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q") + points).properties(width=190, height=155)
    chart: Chart = both.facet(panels(CORPORA.values(), "corpus"), columns=3)
    return chart


READINGS = {"truncated256": "first 256 pieces", "truncated509": "first 509 pieces", "windows": "windows of 256"}
SHARES = {"accuracy": "accuracy", "coverage": "words with an attention weight"}


def long_texts() -> Chart:
    records = read_records([RECORDS / "long_texts.jsonl"])
    lines = [
        {"reading": READINGS[record["row"]], "measure": label, "value": 100 * record[key]}
        for record in records
        for key, label in SHARES.items()
    ]
    frame = pd.DataFrame([rounded(line) for line in lines])
    chart = (
        alt.Chart(frame)
        .mark_point(filled=True, size=60, opacity=0.8, color=COLORS[0])
        .encode(
            x=alt.X(
                "value:Q",
                title="%, all test reviews (right: better) →",
                scale=alt.Scale(zero=False, padding=8),
                axis=alt.Axis(tickCount=4),
            ),
            y=alt.Y("reading:N", sort=list(READINGS.values()), title=None),
        )
    )
    panel = chart.properties(width=270, height=90).facet(panels(SHARES.values(), "measure"), columns=2)
    independent: Chart = panel.resolve_scale(x="independent")
    return independent
