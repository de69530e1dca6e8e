"""Colors, legends and numbers that the plots of the results pages share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from studies.tables import RECORDS as RECORDS
from studies.tables import mean_and_half

ROOT = Path(__file__).parents[2]
INK, GRID, PAPER = "#1a2027", "#d5dae0", "#ffffff"
"""Text, lines and background: the site replaces them by the colors of its theme."""
COLORS = ["#3f83cc", "#c9651b", "#3a9a5b", "#9a6fd0"]
"""With a contrast of 3 or more on white and on the dark background of the site."""
GRAY = "#808891"

Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """Numbers with four digits: the same on every machine."""
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in line.items()}


def interval(values: list[float]) -> dict[str, float]:
    """The mean and the ends of its 95 % t interval."""
    value, half = mean_and_half(values)
    return {"value": value, "low": value - half, "high": value + half}


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
