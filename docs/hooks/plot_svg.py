"""Plots of results as part of the page, so that they take the colors of its theme."""

import re
from pathlib import Path

IMAGE = re.compile(r'<img alt="([^"]*)" src="[^"]*figures/results/([\w-]+)\.svg" ?/?>')
COLORS = {
    '"#1a2027"': '"currentColor"',
    '"#d5dae0"': '"var(--plot-grid)"',
    'fill="#ffffff"': 'fill="none"',
}
"""Colors that bench/result_plots.py writes -> colors of the page."""
SPOKEN = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"|<title>.*?</title>|<metadata>.*?</metadata>')
"""The text alternative of the image replaces these."""


def inline(html: str, docs: Path) -> str:
    """Replace images of plots by their SVG elements, with the text alternative as label."""
    return IMAGE.sub(lambda match: _element(docs / "figures" / "results" / f"{match[2]}.svg", match[1]), html)


def _element(file: Path, label: str) -> str:
    svg = SPOKEN.sub("", file.read_text(encoding="utf-8").strip())
    for color, theme in COLORS.items():
        svg = svg.replace(color, theme)
    svg = re.sub(r'(id="|url\(#)', rf"\1{file.stem}-", svg)  # unique on the page
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f'<span class="plot" tabindex="0" role="group" aria-label="Plot, may scroll">{svg}</span>'
