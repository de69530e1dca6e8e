"""Plots and pictures of texts as part of the page, so that they take the colors of its theme."""

import re
from pathlib import Path

IMAGE = re.compile(r'<img alt="([^"]*)" src="[^"]*figures/((?:results/)?[\w-]+\.svg)" ?/?>')
OTHERS = ("flow.svg",)
"""Pictures with colors of their own: they stay images."""
COLORS = {
    '"#1a2027"': '"currentColor"',
    '"#d5dae0"': '"var(--plot-grid)"',
    '"#f0a030"': '"var(--plot-highlight)"',
    'fill="#ffffff"': 'fill="none"',
}
"""Colors of the plots -> colors of the page."""
SPOKEN = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"|<title>.*?</title>|<metadata>.*?</metadata>|<style>.*?</style>')
"""The text alternative of the image and the theme replace these."""
COLUMN = re.compile(r"<svg x=.*?</svg>", re.DOTALL)
"""Columns of a picture, which stand below each other on a narrow screen."""


def inline(html: str, docs: Path) -> str:
    """Replace images of plots by their SVG elements, with the text alternative as label."""
    return IMAGE.sub(
        lambda match: match[0] if match[2] in OTHERS else _element(docs / "figures" / match[2], match[1]), html
    )


def _element(file: Path, label: str) -> str:
    svg = SPOKEN.sub("", file.read_text(encoding="utf-8").strip())
    for color, theme in COLORS.items():
        svg = svg.replace(color, theme)
    if columns := COLUMN.findall(svg):
        hidden = "".join(column.replace("<svg ", '<svg aria-hidden="true" ', 1) for column in columns)
        return f'<span class="plot columns" role="img" aria-label="{label}">{hidden}</span>'
    svg = re.sub(r'(id="|url\(#)', rf"\1{file.stem}-", svg)  # unique on the page
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return f'<span class="plot" tabindex="0" role="group" aria-label="Plot, may scroll">{svg}</span>'
