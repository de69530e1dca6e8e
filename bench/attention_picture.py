"""Draw docs/figures/synonym-shift.svg: attention of the demo's two models before and after one synonym substitution.

Run `make demo` first, then `python bench/attention_picture.py runs/demo docs/figures/synonym-shift.svg`.
"""

import argparse
from html import escape
from pathlib import Path

import numpy as np
from scipy.spatial.distance import jensenshannon

import steadygaze as sg
from steadygaze.cli.demo import CORPUS
from steadygaze.results.explanation import Explanation

SUBSTITUTION = ("utterly magnificent", "utterly superb")
WIDTH, HEIGHT, PANEL, MARGIN, LINE, CHARACTER = 1120, 300, 540, 16, 24, 7.9


def panel(explanation: Explanation, title: str, x: float, y: float) -> str:
    """One text with a box behind each word; the darker the box, the higher the weight."""
    parts = [f'<text x="{x}" y="{y}" class="title">{escape(title)}</text>']
    left, line = x, y + 30
    for token, (start, end), weight in zip(explanation.tokens, explanation.spans, explanation.weights, strict=True):
        size = (end - start) * CHARACTER
        glued = start > 0 and not explanation.text[start - 1].isspace()
        left += 0 if glued or left == x else CHARACTER
        if left + size > x + PANEL and not glued:
            left, line = x, line + LINE
        box = f'x="{left:.1f}" y="{line - 16}" width="{size:.1f}" height="21" fill-opacity="{min(1, 1.6 * weight):.3f}"'
        parts.append(f'<rect {box}/><text x="{left:.1f}" y="{line}" textLength="{size:.1f}">{escape(token)}</text>')
        left += size
    return "\n".join(parts)


def prediction(explanation: Explanation) -> str:
    return f"{explanation.label} {explanation.probabilities[explanation.label]:.1%}"


def picture(models: dict[str, sg.TextClassifier], text: str) -> str:
    """A column for each model: the original text, the text with the synonym, the divergence between them."""
    parts = []
    for column, (name, model) in enumerate(models.items()):
        x = MARGIN + column * (PANEL + MARGIN)
        before, after = model.explain(text), model.explain(text.replace(*SUBSTITUTION))
        shift = jensenshannon(np.array(before.weights), np.array(after.weights)) ** 2
        parts.append(panel(before, f"{name} → {prediction(before)}", x, 28))
        changed = f"{name}, one synonym → {prediction(after)}; attention shifts by {shift:.3f} nats"
        parts.append(panel(after, changed, x, 178))
    style = "text{font:13px monospace;fill:#1a2027}.title{font:bold 15px sans-serif}rect{fill:#f0a030}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    ground = f'<path d="M0 0H{WIDTH}V{HEIGHT}H0Z" fill="#fff"/>'
    return "\n".join([head, f"<style>{style}</style>", ground, *parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demo", type=Path, help="folder of the demo's models")
    parser.add_argument("out", type=Path, help="SVG file to write")
    options = parser.parse_args()
    texts = [example.text for example in sg.load_corpus(CORPUS).splits["test"]]
    text = next(text for text in texts if SUBSTITUTION[0] in text and "zookeeper" in text)
    models = {name: sg.load(str(options.demo / name)) for name in ("vanilla", "consensus")}
    options.out.write_text(picture(models, text), encoding="utf-8")


if __name__ == "__main__":
    main()
