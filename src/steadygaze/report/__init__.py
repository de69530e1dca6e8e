"""What people are handed: numbers with intervals, a training curve and highlighted texts on one page.  No torch."""

from steadygaze.report.interval import bootstrap, bootstrap_rows, mean_row
from steadygaze.report.page import render, write

__all__ = ["bootstrap", "bootstrap_rows", "mean_row", "render", "write"]
