"""Draw docs/figures/synonym-shift.svg: attention of the demo's two models before and after one synonym substitution.

Run `make demo` first, then `python -m studies.figures attention_picture runs/demo docs/figures/synonym-shift.svg`.
"""

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from scipy.spatial.distance import jensenshannon

import steadygaze as sg
from steadygaze.cli.demo import CORPUS
from steadygaze.core.rounding import percent
from steadygaze.results.explanation import Explanation

SUBSTITUTION = ("utterly magnificent", "utterly superb")
COLUMN, MARGIN, LINE, CHARACTER = 450, 10, 24, 7.9
INK, PAPER, HIGHLIGHT = "#1a2027", "#ffffff", "#f0a030"
DARK = {INK: "#e2e4e9", PAPER: "#1e2129", HIGHLIGHT: "#7a4600"}
"""Colors of a viewer in dark mode; docs/hooks/plot_svg.py uses those of the page instead."""
STYLE = "".join(f'[fill="{light}"]{{fill:{dark}}}' for light, dark in DARK.items())


def panel(explanation: Explanation, titles: Sequence[str], top: float) -> tuple[str, float]:
    """One text with a box behind each word, and its lower end; the darker the box, the higher the weight."""
    bold = f'fill="{INK}" font-family="sans-serif" font-size="15" font-weight="bold"'
    starts = [top + 20 * number for number in range(len(titles))]
    parts = [
        f'<text x="{MARGIN}" y="{y}" {bold}>{escape(title)}</text>' for title, y in zip(titles, starts, strict=True)
    ]
    left, line = float(MARGIN), starts[-1] + 27
    for token, (start, end), weight in zip(explanation.tokens, explanation.spans, explanation.weights, strict=True):
        size = (end - start) * CHARACTER
        glued = start > 0 and not explanation.text[start - 1].isspace()
        left += 0 if glued or left == MARGIN else CHARACTER
        if left + size > COLUMN - MARGIN and not glued:
            left, line = float(MARGIN), line + LINE
        box = f'x="{left:.1f}" y="{line - 16}" width="{size:.1f}" height="21" fill-opacity="{min(1, 1.6 * weight):.3f}"'
        word = f'x="{left:.1f}" y="{line}" textLength="{size:.1f}" fill="{INK}" font-family="monospace" font-size="13"'
        parts.append(f'<rect {box} fill="{HIGHLIGHT}"/><text {word}>{escape(token)}</text>')
        left += size
    return "\n".join(parts), line


def prediction(explanation: Explanation) -> str:
    return f"{explanation.label} {percent(explanation.probabilities[explanation.label], digits=1)}"


def picture(models: dict[str, sg.TextClassifier], text: str) -> str:
    """A column for each model: the original text, the text with the synonym, the divergence between them."""
    contents, height = [], 0.0
    for name, model in models.items():
        before, after = model.explain(text), model.explain(text.replace(*SUBSTITUTION))
        shift = jensenshannon(np.array(before.weights), np.array(after.weights)) ** 2
        upper, end = panel(before, [f"{name}: {prediction(before)}"], 22)
        titles = [f"{name}, one synonym: {prediction(after)}", f"attention shifts by {shift:.3f} nats"]
        lower, height = panel(after, titles, end + 40)
        contents.append(f"{upper}\n{lower}")
    bottom = round(height) + MARGIN + 4
    return svg([column(content, number, bottom) for number, content in enumerate(contents)], bottom)


def column(content: str, number: int, height: int) -> str:
    """The columns of a picture stand below each other on a narrow page: docs/hooks/plot_svg.py."""
    size = f'width="{COLUMN}" height="{height}" viewBox="0 0 {COLUMN} {height}"'
    return f'<svg x="{number * COLUMN}" {size}>\n{content}\n</svg>'


def svg(columns: Sequence[str], height: int) -> str:
    """A picture that follows the color mode of its viewer."""
    width = len(columns) * COLUMN
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    style = f"<style>@media (prefers-color-scheme: dark) {{{STYLE}}}</style>"
    ground = f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    return "\n".join([head, style, ground, *columns, "</svg>", ""])


def run(demo: Path, out: Path) -> None:
    """The folder of the demo's models, and the SVG file to write."""
    texts = [example.text for example in sg.load_corpus(CORPUS).splits["test"]]
    text = next(text for text in texts if SUBSTITUTION[0] in text and "zookeeper" in text)
    models = {name: sg.load(str(demo / name)) for name in ("vanilla", "consensus")}
    out.write_text(picture(models, text), encoding="utf-8")
