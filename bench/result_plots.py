"""Draw the plots at the top of the results pages, as SVG with the data they show.

    python bench/result_plots.py docs/figures/results

    stability-forest.svg     shift of attention of the main rows, ratio to vanilla: bench/records/stability-*.jsonl.gz
    stability-accuracy.svg   the same against macro-F1, with the cost of each technique
    synonym-flips.svg        label flips with synonym groups: bench/records/synonym_groups_five_seeds.jsonl; the long
                             student: synonym_groups_long_student.jsonl
    leakage-fidelity.svg     post-hoc accuracy against fidelity: bench/records/independent_reader.jsonl
    rationales.svg           right sentence on palate: the table of docs/results/rationales.md; movies.jsonl
    interlocking.svg         X1 against skew and bias: the table of docs/results/rationales.md
    movie-rationales.svg     F1 with human rationales: bench/records/movies.jsonl
    image-fills.svg          post-hoc accuracy by explainer and fill: the tables of docs/results/shortcuts.md
    small-data.svg           macro-F1 with few texts: the table of docs/results/small-data.md
    long-texts.svg           accuracy and coverage: bench/records/long_texts.jsonl
    published-seat.svg       shift under noise in Table 1 of SEAT, ours and the paper's: bench/records/seat-table1-*
    published-seat-seeds.svg JSD between seeds, Figure 2 of SEAT: bench/records/seat-figure2-*
    published-kitada.svg     score and correlation in Table 2 of Kitada & Iyatomi: bench/records/kitada-table2-*
    published-epsilon.svg    score against the size of the perturbation, Figure 4 of Kitada & Iyatomi: kitada-figure4-*

Four plots are from tables of a page: not all records of these studies are in the repository.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from itertools import takewhile
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import pandas as pd
import vl_convert
from scipy.stats import t as student

import published_page as published
from movies_table import load as load_movies
from stability_page import LABELS
from stability_records import study_records
from stability_statistics import difference, ratio
from stability_table import Rows, _compared, rows_of, with_first_seeds
from synonym_table import BASE
from synonym_table import Records as SynonymRecords

ROOT = Path(__file__).parents[1]
RECORDS, PAGES = ROOT / "bench" / "records", ROOT / "docs" / "results"
INK, GRID, PAPER = "#1a2027", "#d5dae0", "#ffffff"
"""Text, lines and background: the site replaces them by the colors of its theme."""
COLORS = ["#3f83cc", "#c9651b", "#3a9a5b", "#9a6fd0"]
"""With a contrast of 3 or more on white and on the dark background of the site."""
GRAY = "#808891"

Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


# Stability

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
TEMPERED = ("tempered-1.5", "tempered-2.0", "tempered-3.0")
FOREST = {
    "three synonyms seen in training": "jensen-shannon/3-synonyms",
    "three unseen synonyms": "jensen-shannon/3-held-out",
    "PGD on the word vectors": "jensen-shannon/pgd-attention",
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
    return rows, list(rows["vanilla"])


def plain(row: str) -> str:
    """The label of a row, without Markdown and without the rule of selection."""
    return re.sub(r"[*`]|, by F1$|, KL$| \(ε = 0.2\)", "", LABELS[row])


def stability_forest() -> Chart:
    rows, settings = stability_rows()
    lines = []
    for row in FOREST_ROWS:
        label = f"control: {plain(row)}" if row in TEMPERED else plain(row)
        for panel, key in FOREST.items():
            estimate = _compared(ratio, rows, row, key, settings)
            kind = "control" if row in TEMPERED else "technique"
            lines.append({"row": label, "panel": panel, "kind": kind, **rounded(estimate._asdict())})
    frame = pd.DataFrame(lines)
    color = alt.Color("kind:N", scale=alt.Scale(domain=["technique", "control"], range=[COLORS[0], GRAY]), legend=None)
    base = alt.Chart(frame).encode(y=alt.Y("row:N", title=None, sort=list(dict.fromkeys(frame["row"]))), color=color)
    scale = alt.Scale(type="log", domain=[0.03, 2], nice=False)
    axis = alt.Axis(values=[0.03, 0.1, 0.3, 1])
    low = alt.X("low:Q", scale=scale, axis=axis, title="← more stable; ratio to vanilla")
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[4, 4]).encode(x=alt.datum(1))
    bars = base.mark_rule(strokeWidth=2).encode(x=low, x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=alt.X("value:Q", scale=scale))
    return (rule + bars + points).properties(width=165, height=170).facet(panels(FOREST), columns=3)


LABELED_LEFT = ("word-at", "word-iat", "synonym augmentation", "anchored", "consensus", "attention-rp", "vanilla")
"""Rows whose label is to the left of the point; that of the others is to the right."""
LIFTED = {
    "word-iat": 8,
    "synonym augmentation": 5,
    "vanilla, scores / 3": -12,
    "consensus, word-at teachers": 16,
    "seat (joint)": -2,
}
"""Row -> pixels by which its label is lower."""


def stability_accuracy() -> Chart:
    rows, settings = stability_rows()
    lines = [{"row": "vanilla", "shift": 1.0, "f1": 0.0, "cost": 1.0, "kind": "vanilla, scores divided", "order": 0}]
    for row in (*COSTS, *TEMPERED):
        if row.startswith("vanilla"):
            continue
        shift = _compared(ratio, rows, row, "jensen-shannon/3-synonyms", settings).value
        f1 = _compared(difference, rows, row, "macro-f1", settings).value
        kind = "vanilla, scores divided" if row in TEMPERED else "technique"
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
            mark.mark_text(**side, dy=LIFTED.get(line["row"], 0), color=INK, fontSize=11).encode(text="row:N")
        )
    return alt.layer(curve.encode(order="order:Q"), points, *labels).properties(width=540, height=400)


# Synonym groups

LONG_STUDENT = "4-4-t2-e8-own-x0.5-s4"
GROUPED = {
    "vanilla": "vanilla",
    "word-at": "word-at",
    "4-4-t2-e2": "consensus with two short teachers",
    LONG_STUDENT: "consensus, long student",
}
GROUPS = {
    "none": "no groups",
    "cf": "counter-fitted table",
    "wn": "WordNet",
    "both": "both tables",
    "linked": "both tables, linked",
}
TABLES = {"cf3": "3 substitutions, counter-fitted table", "wn3": "3 substitutions, WordNet"}


def synonym_flips() -> Chart:
    files = [str(RECORDS / f"synonym_groups_{part}.jsonl") for part in ("long_student", "five_seeds")]
    records = SynonymRecords(files, "test", ["rotten_tomatoes", "sst2", "tweet_emotion"])
    lines = []
    for row, technique in GROUPED.items():
        for group, groups in {name: label for name, label in GROUPS.items() if records.present((row, name))}.items():
            for probe, panel in TABLES.items():
                key = f"label-flip/{probe}"
                ours, plain_values = (
                    {c: [cell[key] for cell in records.cells[c, variant]] for c in records.corpora}
                    for variant in ((row, group), BASE)
                )
                estimate = ratio(ours, plain_values)
                assert abs(estimate.value - records.ratio((row, group), key)) < 1e-9, (row, group, probe)
                if (row, group) == BASE:
                    estimate = type(estimate)(1.0, 1.0, 1.0)  # the denominator
                lines.append({"technique": technique, "groups": groups, "panel": panel, **estimate._asdict()})
    names = list(GROUPED.values())
    base = alt.Chart(pd.DataFrame([rounded(line) for line in lines])).encode(
        y=alt.Y("groups:N", sort=list(GROUPS.values()), title="groups from"),
        yOffset=alt.YOffset("technique:N", sort=names),
        color=alt.Color("technique:N", sort=names, scale=alt.Scale(domain=names, range=COLORS), **wide()),
    )
    x = alt.X("low:Q", title="← fewer label flips; ratio to vanilla", scale=alt.Scale(domain=[0, 1.05], nice=False))
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    shape = alt.Shape("technique:N", sort=names, scale=alt.Scale(domain=names), **wide())
    points = base.mark_point(filled=True, size=45, opacity=1).encode(x="value:Q", shape=shape)
    return (bars + points).properties(width=250, height=150).facet(panels(TABLES.values()), columns=2)


# Label leakage

SELECTORS = {
    "l2x": "L2X",
    "l2x-y": "L2X with ŷ",
    "pretrained-y": "… random pretraining",
    "neutral-y": "… mask-neutral (IMDB only)",
}
CORPORA = {"imdb": "IMDB", "yelp": "Yelp", "planted": "planted corpus"}


def leakage_fidelity() -> Chart:
    lines = [json.loads(line) for line in (RECORDS / "independent_reader.jsonl").read_text().splitlines()]
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
    ticks = alt.Axis(format="%", values=[0.4, 0.6, 0.8, 1], tickCount=4)
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
    return plot.facet(panels(CORPORA.values(), "corpus"), columns=3)


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
    return round(max(mean(shares), 1 - mean(shares)), 3)


def image_fills() -> Chart:
    page = (PAGES / "shortcuts.md").read_text(encoding="utf-8")
    lines = []
    for name in ("MNIST 3/8", "Fashion-MNIST pullover/shirt"):
        for cells in markdown_rows(page, f"| {name} |"):
            for fill in ("mean", "zero", "gray"):
                if cells[f"{fill} fill"]:
                    explainer = re.sub(r" \(.*", "", cells[name]).replace("… ", "L2X with ŷ, ")
                    value = numbers(cells[f"{fill} fill"])[0]
                    lines.append({"images": name, "explainer": explainer, "fill": fill, "accuracy": value})
    frame = pd.DataFrame(lines)
    base = alt.Chart(frame).encode(
        x=alt.X(
            "fill:N", sort=["mean", "zero", "gray"], title="fill of unselected pixels", axis=alt.Axis(labelAngle=0)
        ),
        y=alt.Y("explainer:N", sort=list(dict.fromkeys(frame["explainer"])), title=None),
    )
    scale = alt.Scale(scheme="viridis", domain=[0, 1])
    cells = base.mark_rect().encode(
        color=alt.Color("accuracy:Q", scale=scale, title="post-hoc accuracy (higher: better)")
    )
    ink = alt.when("datum.accuracy > 0.62").then(alt.value("#111111")).otherwise(alt.value("#fefefe"))
    text = base.mark_text(fontSize=11).encode(text=alt.Text("accuracy:Q", format=".2f"), color=ink)
    both = (cells + text).properties(width=180, height=290)
    return both.facet(panels(("MNIST 3/8", "Fashion-MNIST pullover/shirt"), "images"), columns=2)


# Rationales

STEPS = {"skewed": ("none", "10", "15", "20"), "biased": ("none", "0.7", "0.75", "0.8")}
TITLES = {"skewed": "skew: epochs on first sentences", "biased": "bias: token agrees with label"}


def _planted(column: str) -> pd.DataFrame:
    """F1 or X1 of RNP and A2R, ours with standard deviations and the paper's."""
    page = (PAGES / "rationales.md").read_text(encoding="utf-8")
    cells = {
        (row["aspect"], row["setting"]): row
        for row in markdown_rows(page, "| aspect | setting |")
        if row["aspect"] != "appearance"
    }
    head = "paper X1" if column == "X1" else "paper F1, RNP / A2R"
    lines = []
    for kind, steps in STEPS.items():
        for aspect in ("palate", "aroma"):
            for step in steps:
                row = cells[aspect, "standard" if step == "none" else f"{kind} {step}"]
                theirs = numbers(row[head])
                for place, model in enumerate(("RNP", "A2R")):
                    value, deviation = numbers(row[f"{model} {column}"])
                    bounds = {"low": max(0, value - deviation), "high": min(100, value + deviation)}
                    shared = {"kind": kind, "aspect": aspect, "step": step}
                    lines.append({**shared, "model": model, "value": value, **bounds})
                    if theirs:
                        lines.append({**shared, "model": f"{model}, paper", "value": theirs[place]})
    return pd.DataFrame(lines)


def interlocking() -> Chart:
    frame = _planted("X1")
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
    return (bars + line + points).properties(width=width, height=height)


RANDOM_SENTENCE = 100 * mean(1 / sentences for sentences in (5, 6, 7))
"""Percent of planted reviews in which a random sentence is the right one; they have five, six or seven."""


def _with_random(chart: alt.LayerChart, frame: pd.DataFrame) -> alt.LayerChart:
    """The curves over a line for a random sentence."""
    rule = once(frame).mark_rule(color=GRAY, strokeDash=[1, 3], strokeWidth=1.5).encode(y=alt.datum(RANDOM_SENTENCE))
    note = once(frame).mark_text(color=INK, fontSize=10, dy=-8, align="right")
    words = note.encode(x=alt.value(131), y=alt.datum(RANDOM_SENTENCE), text=alt.value("random"))
    return alt.layer(rule, words, chart)


def rationales() -> Chart:
    """The right sentence of planted reviews on palate, and F1 on movie reviews."""
    frame = _planted("F1")
    palate = frame[frame["aspect"] == "palate"]
    first, second = (
        _with_random(_curves(palate[palate["kind"] == kind], kind, title, 135, 150), palate).properties(title=name)
        for kind, title, name in (
            ("skewed", "right sentence, % →", "generated reviews, skew"),
            ("biased", "", "generated reviews, bias"),
        )
    )
    results, _ = load_movies([str(RECORDS / "movies.jsonl")])
    kinds = ["word vectors", "MiniLM", "no model"]
    lines = [
        {
            "row": label,
            "kind": kinds[label.endswith(" on MiniLM")],
            **rounded(t_interval([100 * record["chosen"]["test"]["f1"] for record in results[row]])),
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
    return alt.hconcat(alt.hconcat(first, second), third).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )


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
    results, _ = load_movies([str(RECORDS / "movies.jsonl")])
    lines, marks = [], []
    for split in ("test", "validation"):
        for row, label in MOVIES.items():
            scores = [100 * record["chosen"][split]["f1"] for record in results[row]]
            lines.append({"row": label, "split": f"{split} reviews", **rounded(t_interval(scores))})
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
    return both.facet(panels(("test reviews", "validation reviews"), "split"), columns=2)


# Small data and long texts


def small_data() -> Chart:
    page = (PAGES / "small-data.md").read_text(encoding="utf-8")
    names = {
        "TF-IDF": "TF-IDF regression, scikit-learn's settings",
        "C = 10, balanced": "TF-IDF regression, C = 10, balanced classes",
        "default, no extra": "steadygaze, defaults",
        "default, extra `glove`": "steadygaze, defaults with GloVe vectors",
    }
    lines = []
    for row in markdown_rows(page, "| corpus | texts | TF-IDF | TF-IDF, balanced"):
        for column, model in names.items():
            value, half = numbers(row[column])
            bounds = {"low": value - half, "high": value + half}
            lines.append(
                {"corpus": row["corpus"], "texts": row["texts"], "model": model, "f1": value, **rounded(bounds)}
            )
    models = list(names.values())
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
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y="f1:Q", shape=shape)
    both = (base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q") + points).properties(width=190, height=155)
    return both.facet(panels(dict.fromkeys(frame["corpus"]), "corpus"), columns=3)


READINGS = {"truncated256": "first 256 pieces", "truncated509": "first 509 pieces", "windows": "windows of 256"}
SHARES = {"accuracy": "accuracy", "coverage": "words with an attention weight"}


def long_texts() -> Chart:
    records = [json.loads(line) for line in (RECORDS / "long_texts.jsonl").read_text().splitlines()]
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
    return panel.resolve_scale(x="independent")


# Published tables


def published_seat() -> Chart:
    lines = []
    for technique, label in published.TECHNIQUES.items():
        for encoder, name in SEAT_PANELS.items():
            blocks = published.blocks_of("seat-table1", encoder)
            ours = published.against_vanilla(published.paired, "seat-table1", technique, [published.JSD], blocks)
            paper = published.paper_ratio(technique, encoder)
            shared = {"row": label, "panel": name}
            lines.append({**shared, "kind": OURS, **rounded(ours._asdict())})
            lines.append({**shared, "kind": "paper", **rounded({"value": paper, "low": paper, "high": paper})})
    frame, kinds = pd.DataFrame(lines), [OURS, "paper"]
    scale = alt.Scale(type="log", domain=[3e-7, 300], nice=False)
    axis = alt.Axis(values=[1e-6, 1e-4, 1e-2, 1, 100], tickCount=5, labelExpr="datum.value == 1 ? '1' : " + POWERS)
    row = alt.Y("row:N", title=None, sort=list(published.TECHNIQUES.values()))
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
    return both.facet(panels(tuple(SEAT_PANELS.values())), columns=3)


POWERS = "datum.value == 100 ? '100' : datum.value == 0.01 ? '0.01' : datum.value < 1e-5 ? '10⁻⁶' : '10⁻⁴'"
SEAT_PANELS = {"rnn": "RNN", "bilstm": "BiLSTM", published.MINILM: "MiniLM (paper: BERT)"}
OURS = "ours, with 95 % interval if it is wider than the mark"


def published_seat_seeds() -> Chart:
    lines = []
    for value in published.records("seat-figure2")[0].values:
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
    return (bars + points).properties(width=420, height=150)


def published_kitada() -> Chart:
    lines = []
    for technique in list(published.TECHNIQUES)[:-1]:
        for panel, measures in KITADA.items():
            ours = published.over_five(technique, measures)
            paper = published.paper_difference(technique, measures == [published.CORRELATION])
            shared = {"row": published.TECHNIQUES[technique], "panel": panel}
            lines.append({**shared, "kind": "ours, with 95 % interval", **rounded(ours._asdict())})
            lines.append({**shared, "kind": "paper", **rounded({"value": paper})})
    return alt.hconcat(*(_differences(pd.DataFrame(lines), panel) for panel in KITADA))


def _differences(frame: pd.DataFrame, panel: str) -> alt.LayerChart:
    first, kinds = panel == next(iter(KITADA)), ["ours, with 95 % interval", "paper"]
    frame = frame[frame["panel"] == panel]
    base = alt.Chart(frame).encode(
        y=alt.Y("row:N", title=None, sort=list(published.TECHNIQUES.values()), axis=alt.Axis(labels=first)),
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
    return (zero + bars + points).properties(width=265, height=140, title=panel)


KITADA = {
    "macro-F1 (SNLI: accuracy), five data sets": [published.F1, published.ACCURACY],
    "correlation of attention with gradients": [published.CORRELATION],
}


def published_epsilon() -> Chart:
    lines = []
    for value in published.records("kitada-figure4")[0].values:
        data, _, technique, variant, _ = value.labels
        if data == "SST" and value.value is not None and value.interval is not None:
            size, (low, high) = float(variant.removeprefix("ε = ")), value.interval
            numbers_of = {"value": value.value / 100, "low": low / 100, "high": high / 100}
            lines.append({"panel": EPSILON_PANELS[0], "technique": technique, "epsilon": size, **rounded(numbers_of)})
    for technique, variants in published.validation_scores().items():
        for variant, scores in variants.items():
            numbers_of = {"value": mean(scores), "low": min(scores), "high": max(scores)}
            shared = {"panel": EPSILON_PANELS[1], "technique": technique, "epsilon": float(variant)}
            lines.append({**shared, **rounded(numbers_of)})
    base = alt.Chart(pd.DataFrame(lines)).encode(
        x=alt.X("epsilon:Q", title="size of the perturbation, ε", axis=alt.Axis(values=[0, 1, 5, 15, 30])),
        color=alt.Color("technique:N", scale=alt.Scale(domain=EPSILON, range=[GRAY, *COLORS]), **wide()),
    )
    scale = alt.Scale(domain=[0.3, 0.9])
    curves = base.mark_line().encode(y=alt.Y("value:Q", title="macro-F1 (higher: better) →", scale=scale))
    shape = alt.Shape("technique:N", scale=alt.Scale(domain=EPSILON), **wide())
    points = base.mark_point(filled=True, size=50, opacity=1).encode(y=alt.Y("value:Q", scale=scale), shape=shape)
    bars = base.mark_rule().encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    return (curves + bars + points).properties(width=280, height=260).facet(panels(EPSILON_PANELS), columns=2)


EPSILON_PANELS = ("SST-2, test texts", "SNLI, validation texts")


EPSILON = ("Vanilla", "Word AT", "Word iAT", "Attention AT", "Attention iAT")


# Shared


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """Numbers with four digits: the same on every machine."""
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in line.items()}


def t_interval(values: list[float]) -> dict[str, float]:
    half = float(student.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return {"value": mean(values), "low": mean(values) - half, "high": mean(values) + half}


def numbers(cell: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", cell.replace("−", "-"))]


def markdown_rows(page: str, header: str) -> list[dict[str, str]]:
    """The rows of the table whose header begins so."""
    lines = page[page.index(f"\n{header}") :].splitlines()[1:]
    names, _, *rows = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in table_lines(lines))
    return [dict(zip(names, row, strict=True)) for row in rows]


def table_lines(lines: list[str]) -> Iterable[str]:
    return takewhile(lambda line: line.startswith("|"), lines)


def once(frame: pd.DataFrame) -> alt.Chart:
    """For a mark that is drawn once in each panel."""
    return alt.Chart(frame).transform_aggregate(count="count()")


def panels(names: Iterable[str], field: str = "panel") -> alt.Facet:
    return alt.Facet(f"{field}:N", sort=list(names), title=None, header=head())


def head() -> alt.Header:
    return alt.Header(labelFontSize=13, labelFontWeight="bold", labelColor=INK)


def below() -> alt.Legend:
    return alt.Legend(orient="bottom")


def wide(columns: int = 0) -> dict[str, Any]:
    """A legend below the plot whose labels are not cut off."""
    return {"title": None, "legend": alt.Legend(orient="bottom", labelLimit=400, columns=columns or alt.Undefined)}


PLOTS: dict[str, tuple[Callable[[], Chart], str]] = {
    "stability-forest": (stability_forest, "Forest plot of the shift of attention relative to vanilla, by technique."),
    "stability-accuracy": (stability_accuracy, "Shift of attention against macro-F1; larger points cost more."),
    "synonym-flips": (synonym_flips, "Label flips under three substitutions, by technique and synonym groups."),
    "leakage-fidelity": (leakage_fidelity, "Post-hoc accuracy against fidelity of selectors on three data sets."),
    "image-fills": (image_fills, "Heat map of post-hoc accuracy by explainer and fill."),
    "interlocking": (interlocking, "Share of reviews whose first sentence is selected, by skew and bias."),
    "rationales": (rationales, "Right sentence of planted reviews by skew and bias, and F1 on movie reviews."),
    "movie-rationales": (movie_rationales, "F1 with human rationales on movie reviews, with two baselines."),
    "small-data": (small_data, "Macro-F1 with 200 to 1,000 training texts on three corpora."),
    "long-texts": (long_texts, "Accuracy and coverage of three ways to read long reviews."),
    "published-seat": (published_seat, "Shift of attention under noise relative to vanilla, ours and the paper's."),
    "published-seat-seeds": (published_seat_seeds, "JSD between the attention of random seeds, vanilla and SEAT."),
    "published-kitada": (
        published_kitada,
        "Score and correlation with gradients against vanilla, ours and the paper's.",
    ),
    "published-epsilon": (published_epsilon, "Macro-F1 on SST-2 and SNLI against the size of the perturbation."),
}
"""File -> function, and title."""


def fingerprint(chart: Chart) -> str:
    """SHA-256 of the data of a chart."""
    sets = chart.to_dict()["datasets"]
    return hashlib.sha256(json.dumps(list(sets.values()), sort_keys=True).encode()).hexdigest()


def svg(name: str) -> str:
    """The plot, with its title and the fingerprint of its data."""
    make, title = PLOTS[name]
    chart = make()
    axis = {"labelFontSize": 12, "titleFontSize": 12, "labelColor": INK, "titleColor": INK, "titleFontWeight": "normal"}
    styled = (
        chart.configure(font="sans-serif", background=PAPER, padding=10)
        .configure_axis(
            **axis,
            gridColor=GRID,
            domainColor=GRAY,
            tickColor=GRAY,
            labelLimit=260,
            labelFlush=False,
            labelOverlap=False,
        )
        .configure_legend(labelFontSize=12, titleFontSize=12, labelColor=INK, titleColor=INK, titleFontWeight="normal")
        .configure_view(stroke=GRID)
        .configure_title(color=INK, fontSize=13)
    )
    drawn = vl_convert.vegalite_to_svg(styled.to_dict())
    extra = f"<title>{escape(title)}</title><metadata>{fingerprint(chart)}</metadata>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{extra}", drawn, count=1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the plots")
    parser.add_argument("--only", nargs="*", choices=PLOTS, default=list(PLOTS), help="plots to draw")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        (arguments.out / f"{name}.svg").write_text(svg(name), encoding="utf-8")
        print(name, file=sys.stderr)


if __name__ == "__main__":
    main()
