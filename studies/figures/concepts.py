"""Draw the figures of docs/concepts from models of the demo, from records and from tables of results.

Run `make demo` first, then `python -m studies.figures concepts runs/demo docs/figures`.

    faithfulness.svg    probability of the predicted class as words are deleted, by attention and at random
    plausibility.svg    one review: attention of the vanilla model, and the words that decide the label
    leakage.svg         fidelity and accuracy of the independent reader: studies/records/independent_reader.jsonl
    collapse.svg        shift under three synonyms and normalized entropy: the stability study, four data sets
"""

from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

import steadygaze as sg
from steadygaze.cli.demo import CORPUS
from steadygaze.core.types import Example
from steadygaze.results.explanation import Explanation
from studies.figures.attention_picture import CHARACTER, COLUMN, HIGHLIGHT, INK, LINE, MARGIN, column, svg
from studies.figures.style import COLORS, GRAY, GRID, PAPER
from studies.stability.comparison import compare, rows_of, with_first_seeds
from studies.stability.plan import SETTINGS
from studies.stability.records import study_records
from studies.tables import read_records

ROOT = Path(__file__).parents[2]
TEXTS, SHARES = 100, (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
WIDTH, HEIGHT = 480, 300
MEASURES = ("normalized-entropy", "jensen-shannon/3-synonyms")
ROWS = {
    "vanilla, seeds 0–4": "vanilla",
    "tempered-1.5": "vanilla, scores divided by 1.5",
    "tempered-2.0": "vanilla, scores divided by 2",
    "tempered-3.0": "vanilla, scores divided by 3",
    "word-at": "word-at",
    "anchored": "anchored",
    "consensus": "consensus",
}


def without(text: str, explanation: Explanation, order: np.ndarray, share: float) -> str:
    """The text without the first words of an order."""
    spans = [explanation.spans[i] for i in order[: round(share * len(order))]]
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + text[end:]
    return " ".join(text.split()) or "."


def deletion_curve(model: sg.TextClassifier, texts: list[str]) -> pd.DataFrame:
    """Mean probability of the predicted class after deleting a share of the words."""
    explanations = model.explain(texts)
    labels = np.array([list(model.classes_).index(e.label) for e in explanations])
    generator, rows = np.random.default_rng(0), []
    orders = {
        "by attention": [np.argsort(e.weights)[::-1] for e in explanations],
        "at random": [generator.permutation(len(e)) for e in explanations],
    }
    for name, order in orders.items():
        for share in SHARES:
            shorter = [without(t, e, o, share) for t, e, o in zip(texts, explanations, order, strict=True)]
            probabilities = model.predict_proba(shorter)[np.arange(len(texts)), labels]
            error = 1.96 * probabilities.std(ddof=1) / len(texts) ** 0.5
            mean = probabilities.mean()
            rows.append({"words": name, "deleted": share, "p": mean, "low": mean - error, "high": mean + error})
    return pd.DataFrame(rows)


def faithfulness(model: sg.TextClassifier, texts: list[str]) -> alt.LayerChart:
    color = alt.Color("words:N", scale=alt.Scale(range=COLORS), title="words deleted")
    base = alt.Chart(deletion_curve(model, texts)).encode(
        x=alt.X(
            "deleted:Q", title="share of the words deleted", axis=alt.Axis(labelExpr="round(100 * datum.value) + ' %'")
        )
    )
    title = "probability of the predicted class"
    low, high = alt.Y("low:Q", title=title, scale=alt.Scale(domain=[0, 1])), alt.Y2("high:Q")
    area = base.mark_area(opacity=0.2).encode(y=low, y2=high, color=color)
    chart: alt.LayerChart = area + base.mark_line(point=True).encode(y=alt.Y("p:Q", title=title), color=color)
    return chart


def plausibility(model: sg.TextClassifier, example: Example) -> str:
    """A review: the darker the box, the higher the weight; words of the rationale are underlined."""
    explanation = model.explain(example.text)
    parts, left, line = [], float(MARGIN), 24
    for token, (start, end), weight in zip(explanation.tokens, explanation.spans, explanation.weights, strict=True):
        size = (end - start) * CHARACTER
        glued = start > 0 and not example.text[start - 1].isspace()
        left += 0 if glued or left == MARGIN else CHARACTER
        if left + size > COLUMN - MARGIN and not glued:
            left, line = float(MARGIN), line + LINE + 6
        opacity = min(1, 1.6 * weight)
        parts.append(
            f'<rect x="{left:.1f}" y="{line - 16}" width="{size:.1f}" height="21" fill="{HIGHLIGHT}" '
            f'fill-opacity="{opacity:.3f}"/>'
        )
        word = f'x="{left:.1f}" y="{line}" textLength="{size:.1f}" fill="{INK}" font-family="monospace" font-size="13"'
        parts.append(f"<text {word}>{escape(token)}</text>")
        if any(a < end and start < b for a, b in example.rationales or ()):
            parts.append(f'<path d="M{left:.1f} {line + 6}h{size:.1f}" stroke="{COLORS[0]}" stroke-width="3"/>')
        left += size
    return svg([column("\n".join(parts), 0, line + 14)], line + 14)


def leakage() -> alt.LayerChart:
    records = read_records([ROOT / "studies" / "records" / "independent_reader.jsonl"])
    frame = pd.DataFrame(
        [
            {
                "fidelity": record["fidelity"],
                "reader": record["independent-reader-accuracy"],
                "run": "leaks" if record["leaks"] else "does not leak",
            }
            for record in records
            if record.get("leaks") is not None and "fidelity" in record
        ]
    )
    scale = alt.Scale(domain=[0.4, 1])
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, size=45, opacity=0.75)
        .encode(
            x=alt.X("fidelity:Q", title="fidelity: accuracy of the explainer's own network", scale=scale),
            y=alt.Y("reader:Q", title="accuracy of the independent reader", scale=scale),
            color=alt.Color("run:N", scale=alt.Scale(range=COLORS), title="selector"),
            shape=alt.Shape("run:N", title="selector"),
        )
    )
    diagonal = alt.Chart(pd.DataFrame({"x": [0.4, 1], "y": [0.4, 1]})).mark_line(color=GRAY, strokeDash=[4, 4])
    chart: alt.LayerChart = diagonal.encode(x="x:Q", y="y:Q") + points
    return chart


def collapse() -> alt.LayerChart:
    models, rows = with_first_seeds(rows_of(study_records())), []
    for row, label in ROWS.items():
        entropy, shift = (compare(models, row, measure, list(SETTINGS)) for measure in MEASURES)
        assert entropy is not None and shift is not None, f"the records lack measures of {row}"  # noqa: PT018
        rows.append({"model": label, "entropy": round(entropy.value, 3), "shift": round(shift.value, 2)})
    frame = pd.DataFrame(rows)
    frame["kind"] = np.where(frame["model"].str.startswith("vanilla"), "vanilla", "technique")
    base = alt.Chart(frame).encode(
        x=alt.X(
            "entropy:Q",
            title="normalized entropy, difference from vanilla",
            scale=alt.Scale(domain=[-0.05, 0.6], nice=False),
        ),
        y=alt.Y(
            "shift:Q",
            title="shift under three synonyms, ratio to vanilla",
            scale=alt.Scale(domain=[0, 1.1], nice=False),
        ),
    )
    color = alt.Color("kind:N", scale=alt.Scale(range=COLORS), legend=None)
    curve = base.transform_filter("datum.kind == 'vanilla'").mark_line(color=GRAY, strokeDash=[4, 4])
    right = base.transform_filter("datum.model != 'word-at'").mark_text(align="left", dx=8, dy=-4)
    left = base.transform_filter("datum.model == 'word-at'").mark_text(align="right", dx=-8, dy=-4)
    labels = right.encode(text="model:N", color=color) + left.encode(text="model:N", color=color)
    chart: alt.LayerChart = curve + base.mark_point(filled=True, size=60).encode(color=color) + labels
    return chart


def save(chart: alt.LayerChart, path: Path) -> None:
    """The colors are those of the plots of results: the documentation replaces them by colors of its theme."""
    axis: dict[str, Any] = {
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": GRAY,
        "tickColor": GRAY,
    }
    chart = chart.properties(width=WIDTH, height=HEIGHT, background=PAPER, padding=12).configure(font="sans-serif")
    chart = chart.configure_axis(labelFontSize=12, titleFontSize=13, **axis).configure_view(stroke=GRID)
    legend: dict[str, Any] = {"labelColor": INK, "titleColor": INK}
    chart.configure_legend(labelFontSize=12, titleFontSize=12, **legend).save(str(path))


def run(demo: Path, out: Path) -> None:
    """The folder of the demo's models, and that of the figures."""
    model, test = sg.load(demo / "vanilla", device="cpu"), sg.load_corpus(CORPUS).splits["test"]
    save(faithfulness(model, [example.text for example in test[:TEXTS]]), out / "faithfulness.svg")
    (out / "plausibility.svg").write_text(plausibility(model, test[0]), encoding="utf-8")
    save(leakage(), out / "leakage.svg")
    save(collapse(), out / "collapse.svg")
