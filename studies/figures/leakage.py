"""Plots of docs/results/shortcuts.md: post-hoc accuracy against fidelity, and by fill of images."""

from statistics import mean
from typing import Any

import altair as alt
import pandas as pd

from studies.black_boxes.plan import FILLS, IMAGES
from studies.black_boxes.table import IMAGE_NAMES, IMAGE_SETS, POST_HOC, load, values
from studies.figures.style import COLORS, GRAY, INK, RECORDS, Chart, once, panels, wide
from studies.tables import read_records

SELECTORS = {
    "l2x": "L2X",
    "l2x-y": "L2X with ŷ",
    "pretrained-y": "… random pretraining",
    "neutral-y": "… mask-neutral (IMDB only)",
}
CORPORA = {"imdb": "IMDB", "yelp": "Yelp", "planted": "planted corpus"}


def leakage_fidelity() -> Chart:
    lines = read_records([RECORDS / "independent_reader.jsonl"])
    frame = pd.DataFrame(
        [
            {
                "selector": SELECTORS[record["row"]],
                "corpus": CORPORA[record["corpus"]],
                "fidelity": record["fidelity"],
                "accuracy": record["post-hoc-accuracy"],
                "majority": majority_share(lines, record["corpus"]),
            }
            for record in lines
            if record["row"] in SELECTORS and record["corpus"] in CORPORA
        ]
    )
    x, y = (alt.Scale(domain=[low, 1.03], nice=False) for low in (0.5, 0.35))
    names = list(SELECTORS.values())
    ticks = alt.Axis(labelExpr="round(100 * datum.value) + ' %'", values=[0.4, 0.6, 0.8, 1], tickCount=4)
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, opacity=0.8)
        .encode(
            x=alt.X("fidelity:Q", title="fidelity of the own network", scale=x, axis=ticks),
            y=alt.Y("accuracy:Q", title="post-hoc accuracy →", scale=y, axis=ticks),
            size=alt.condition("datum.selector == 'L2X'", alt.value(160), alt.value(50)),
            color=alt.Color("selector:N", sort=names, scale=alt.Scale(domain=names, range=COLORS), **wide()),
            shape=alt.Shape("selector:N", sort=names, scale=alt.Scale(domain=names), **wide()),
        )
    )
    majority = (
        alt.Chart(frame)
        .mark_rule(color=INK, strokeDash=[1, 3], strokeWidth=1.5)
        .encode(y=alt.Y("max(majority):Q", scale=y))
    )
    line = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4])
    diagonal = line.encode(x=alt.XDatum(0.5, scale=x), y=alt.YDatum(0.5, scale=y), x2=alt.datum(1), y2=alt.datum(1))
    note = once(frame).mark_text(color=INK, fontSize=11, lineBreak="|", align="center")
    leaks = note.encode(
        x=alt.XDatum(0.67, scale=x),
        y=alt.YDatum(0.44, scale=y),
        text=alt.value("far below the diagonal:|label leakage"),
    )
    plot = (diagonal + majority + points + leaks).properties(width=195, height=135)
    chart: Chart = plot.facet(panels(CORPORA.values(), "corpus"), columns=3)
    return chart


def majority_share(records: list[dict[str, Any]], corpus: str) -> float:
    """Share of the held-out texts for which the black box predicts its commoner class, from accuracies by class."""
    shares = []
    for record in records:
        mean_accuracy, first, second = (
            record[f"independent-reader-accuracy{part}"] for part in ("", "/by-class=0", "/by-class=1")
        )
        if record["corpus"] == corpus and abs(first - second) > 0.2:  # smaller differences multiply rounding errors
            shares.append((mean_accuracy - second) / (first - second))
    assert max(shares) - min(shares) < 0.001, corpus
    return float(round(max(mean(shares), 1 - mean(shares)), 3))


def image_fills() -> Chart:
    cells = load()
    lines = [
        {
            "images": IMAGE_SETS[corpus],
            "explainer": name.replace("… ", "L2X with ŷ, "),
            "fill": fill,
            "accuracy": round(mean(values(runs, POST_HOC)), 4),
        }
        for corpus in IMAGES
        for row, name in IMAGE_NAMES.items()
        for fill in FILLS
        if (runs := cells[corpus, fill].get(row))
    ]
    frame = pd.DataFrame(lines)
    base = alt.Chart(frame).encode(
        x=alt.X("fill:N", sort=list(FILLS), title="fill of unselected pixels", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("explainer:N", sort=list(dict.fromkeys(frame["explainer"])), title=None),
    )
    scale = alt.Scale(scheme="viridis", domain=[0, 1])
    cells = base.mark_rect().encode(
        color=alt.Color("accuracy:Q", scale=scale, title="post-hoc accuracy (higher: better)")
    )
    ink = alt.when("datum.accuracy > 0.62").then(alt.value("#111111")).otherwise(alt.value("#fefefe"))
    text = base.mark_text(fontSize=11).encode(text=alt.Text("accuracy:Q", format=".2f"), color=ink)
    both = (cells + text).properties(width=180, height=290)
    chart: Chart = both.facet(panels(IMAGE_SETS.values(), "images"), columns=2)
    return chart
