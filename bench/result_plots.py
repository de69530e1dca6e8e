"""Draw the plots at the top of the results pages, as SVG with the data they show.

python bench/result_plots.py docs/figures/results

stability-forest.svg     flips and lost top words of the main rows, ratio to vanilla: records stability-*
stability-accuracy.svg   the same against macro-F1, with the cost of each technique
synonym-flips.svg        label flips with synonym groups: studies/records/synonym_groups_five_seeds.jsonl; the long
                         student: synonym_groups_long_student.jsonl
leakage-fidelity.svg     post-hoc accuracy against fidelity: studies/records/independent_reader.jsonl
rationales.svg           right sentence on palate: studies/records/planted_reviews-*; movies.jsonl
interlocking.svg         X1 against skew and bias: studies/records/planted_reviews-*
movie-rationales.svg     F1 with human rationales: studies/records/movies.jsonl
image-fills.svg          post-hoc accuracy by explainer and fill: studies/records/black_boxes-*
small-data.svg           macro-F1 with few texts: studies/records/small_data.jsonl
long-texts.svg           accuracy and coverage: studies/records/long_texts.jsonl
published-seat.svg       shift under noise in Table 1 of SEAT, ours and the paper's: studies/records/seat-table1-*
published-seat-seeds.svg JSD between seeds, Figure 2 of SEAT: studies/records/seat-figure2-*
published-kitada.svg     score and correlation in Table 2 of Kitada & Iyatomi: studies/records/kitada-table2-*
published-epsilon.svg    score against the size of the perturbation, Figure 4 of Kitada & Iyatomi: kitada-figure4-*
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import vl_convert

from published_plots import published_epsilon, published_kitada, published_seat, published_seat_seeds
from stability_plots import stability_accuracy, stability_forest
from studies.figures.leakage import image_fills, leakage_fidelity
from studies.figures.rationales import interlocking, movie_rationales, rationales
from studies.figures.style import GRAY, GRID, INK, PAPER, Chart
from studies.figures.synonyms import synonym_flips
from studies.figures.text_sizes import long_texts, small_data

PLOTS: dict[str, tuple[Callable[[], Chart], str]] = {
    "stability-forest": (
        stability_forest,
        "Forest plot of label flips and lost top words relative to vanilla, by technique.",
    ),
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
