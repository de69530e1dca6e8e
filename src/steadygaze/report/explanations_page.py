"""The page of explained texts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from steadygaze.report.page import render, write
from steadygaze.results.explanation import Explanation

DRAWN = 1000
"""Largest number of texts on a page."""


def write_explanations(
    path: Path, explanations: Iterator[Explanation], model: str, notes: Sequence[str] = (), overwrite: bool = False
) -> dict[str, int]:
    """Write a page of the first DRAWN texts; return the numbers of explained and drawn texts."""
    drawn = list(islice(explanations, DRAWN))
    total = len(drawn) + sum(1 for _ in explanations)
    others = {explanation.explainer for explanation in drawn if explanation.explainer != "attention"}
    weights = f"the {others.pop()} score of each word" if others else "the attention weight of each word"
    weights = "the selected words" if drawn and drawn[0].rationale is not None else weights
    lead = "  ".join([f"Predictions of the model {model}, and {weights}.", *notes])
    remarks = [f"{total - len(drawn):,} more texts were explained and are not shown."] if total > len(drawn) else []
    if any(explanation.true_label is not None for explanation in drawn):
        wrong = sum(explanation.is_wrong for explanation in drawn)
        remarks = [f"{wrong:,} of the {len(drawn):,} predictions on this page are wrong.", *remarks]
    write(path, render("Explanations", lead=lead, explanations=drawn, notes=remarks), overwrite)
    return {"explained": total, "drawn": len(drawn)}
