"""Plots at the top of the results pages: SVG files with a fingerprint of the data that they show."""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import vl_convert

from studies.figures.leakage import image_fills, leakage_fidelity
from studies.figures.oracles import oracle_power, oracle_thresholds
from studies.figures.papers import published_epsilon, published_kitada, published_seat, published_seat_seeds
from studies.figures.rationales import interlocking, movie_rationales, rationales
from studies.figures.stability import stability_accuracy, stability_forest
from studies.figures.style import GRAY, GRID, INK, PAPER, ROOT, Chart
from studies.figures.synonyms import synonym_flips
from studies.figures.text_sizes import long_texts, small_data

PLOTS: dict[str, tuple[Callable[[], Chart], str]] = {
    "stability-forest": (
        stability_forest,
        "Forest plot of label flips and lost top words relative to vanilla, by technique.",
    ),
    "stability-accuracy": (
        stability_accuracy,
        "Shift of attention against macro-F1; larger points cost more.",
    ),
    "synonym-flips": (synonym_flips, "Label flips under three substitutions, by technique and synonym groups."),
    "leakage-fidelity": (leakage_fidelity, "Post-hoc accuracy against fidelity of selectors on three data sets."),
    "image-fills": (image_fills, "Heat map of post-hoc accuracy by explainer and fill."),
    "interlocking": (interlocking, "Share of reviews whose first sentence is selected, by skew and bias."),
    "rationales": (rationales, "Right sentence of planted reviews by skew and bias, and F1 on movie reviews."),
    "movie-rationales": (movie_rationales, "F1 with human rationales on movie reviews, with two baselines."),
    "small-data": (small_data, "Macro-F1 with 200 to 1,000 training texts on three corpora."),
    "long-texts": (long_texts, "Accuracy and coverage of three ways to read long reviews."),
    "oracle-thresholds": (
        oracle_thresholds,
        "Share of wrong and undecided answers against each threshold, by verdict.",
    ),
    "oracle-power": (oracle_power, "Share of decided answers against the number of texts, by verdict."),
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


def run(plots: list[str] = [], *, out: Path = ROOT / "docs" / "figures" / "results") -> None:  # noqa: B006
    """All plots, or those that are named."""
    if unknown := [name for name in plots if name not in PLOTS]:
        sys.exit(f"{unknown[0]!r} is not a plot.  There are: {', '.join(PLOTS)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in plots or PLOTS:
        (out / f"{name}.svg").write_text(svg(name), encoding="utf-8")
        print(name, file=sys.stderr)
