"""Explanation: one text, what was predicted of it and how much each word weighed, for a notebook, a page or a terminal.

A weight is drawn in proportion to the text's largest: blue speaks for the explained class, orange (signed explainers
only) against it.  Both hues are translucent, so that the text stays legible on light and dark alike, and the styles are
inline because notebooks strip style sheets.  Every text is escaped.  No torch here.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from steadygaze.atomic import write_text
from steadygaze.errors import UserError
from steadygaze.types import Label, Span

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.text import Text

FOR, AGAINST = (37, 99, 235), (190, 78, 0)  # blue and orange: told apart by every common colour blindness
OPAQUE = 0.6  # of the heaviest word: WCAG contrast stays above 4.5 in both colour schemes
FAINT = (96, 102, 114)  # what a weightless word's background would be in a terminal
SHOWN = 0.12  # share of the largest weight below which a terminal, whose colours are solid, draws no background
UNREAD = "not read: longer than the limit"

_CONTROLS = {**dict.fromkeys((*range(32), *range(127, 160)), "\ufffd"), 9: "\t", 10: "\n", 13: " "}
_UNDERLINE = "text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:0.2em"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif }}</style>
</head><body><main>{body}</main></body></html>
"""


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why a text was classified so."""

    text: str
    tokens: tuple[str, ...]
    """Words of the user's own text, in its own spelling."""
    spans: tuple[Span, ...]
    weights: tuple[float, ...]
    """One per token.  Attention sums to 1; other explainers may be signed."""
    label: Label
    probabilities: dict[Label, float]
    question: str | None = None
    target: Label | None = None
    """The class that is explained.  None: the predicted one."""
    explainer: str = "attention"
    granularity: str = "word"
    read_to: int | None = None
    """Everything from this character on was cut off and got no weight.  None: the whole text was read."""
    evidence: tuple[Span, ...] | None = None
    """A known or human rationale, drawn beside the weights."""

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.spans) == len(self.weights):
            sizes = f"{len(self.tokens)} tokens, {len(self.spans)} spans and {len(self.weights)} weights"
            raise ValueError(f"Explanation: {sizes}; there must be as many of each")
        if not math.isfinite(sum(self.weights)):
            raise ValueError("Explanation: some weight is not a finite number")

    def __len__(self) -> int:
        return len(self.tokens)

    def top(self, k: int = 5) -> list[tuple[str, float]]:
        """The k heaviest tokens, whatever their sign; of equals the earlier first."""
        return [(self.tokens[i], self.weights[i]) for i in self.heaviest(k)]

    def heaviest(self, k: int = 5) -> list[int]:
        """Where the k heaviest tokens stand, heaviest first."""
        return heapq.nlargest(k, range(len(self)), key=lambda i: abs(self.weights[i]))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: lists, strings and numbers."""
        return {
            "text": self.text,
            "question": self.question,
            "label": self.label,
            "target": self.target,
            "probabilities": {str(label): p for label, p in self.probabilities.items()},
            "tokens": list(self.tokens),
            "spans": list(map(list, self.spans)),
            "weights": list(self.weights),
            "explainer": self.explainer,
            "granularity": self.granularity,
            "read_to": self.read_to,
            "evidence": None if self.evidence is None else list(map(list, self.evidence)),
        }

    def to_pandas(self) -> "DataFrame":
        """One row per token: token, start, end, weight."""
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas() needs pandas, which is not installed: pip install pandas.") from None
        starts, ends = [start for start, _ in self.spans], [end for _, end in self.spans]
        return pandas.DataFrame({"token": self.tokens, "start": starts, "end": ends, "weight": self.weights})

    def to_html(self, path: str | Path | None = None) -> str:
        """A whole page that loads nothing and runs nothing; written to `path` if there is one."""
        title = shorten(f"{self.label}: {self.text}", 60, placeholder="…")
        page = _PAGE.format(title=escape(title), body=self._repr_html_())
        if path is not None:
            write_text(Path(path), page)
        return page

    def _repr_html_(self) -> str:
        small = '<div style="font-size:0.85em;opacity:0.8">{}</div>'.format
        asked = "" if self.question is None else small(f"Question: {escape(self.question)}")
        verdict = f"<div><strong>{escape(str(self.label))}</strong> {escape(self._sureness())}</div>"
        lines = "".join(small(escape(line)) for line in self._lines())
        html = f"<figure style='margin:0 0 1.5em'>{verdict}{asked}{marked(self)}{lines}{small(legend([self]))}</figure>"
        return html.encode(errors="replace").decode()  # a lone surrogate would stop the notebook's own encoder

    def __rich__(self) -> "Text":
        from rich.text import Text

        drawn, largest = Text(), _largest(self.weights)
        if self.question is not None:
            drawn.append(f"Question: {_printable(self.question)}\n", style="italic")
        for piece in _pieces(self):
            drawn.append(_printable(piece.text), style=_terminal_style(piece, largest))
        drawn.append(f"\n→ {_printable(str(self.label))}", style="bold").append(f" {_printable(self._sureness())}")
        for line in self._lines():
            drawn.append(f"\n{_printable(line)}")
        return drawn

    def __str__(self) -> str:
        return self.__rich__().plain

    def __repr__(self) -> str:
        top = ", ".join(f"{token} {weight:.3f}" for token, weight in self.top(3))
        text = shorten(self.text, 40, placeholder="…")
        return f"<Explanation {text!r}: {self.label} {self._sureness()}; {self.explainer}: {top}>"

    def _sureness(self) -> str:
        sure = f"{self.probabilities[self.label]:.1%}" if self.label in self.probabilities else ""
        other = f"(explained: {self.target})" if self.target not in (None, self.label) else ""
        return f"{sure} {other}".strip()

    def _lines(self) -> list[str]:
        """What the colours say, in words: it must be there without them too."""
        top = [f"{token} {weight:.3f}" for token, weight in self.top() if weight]
        lines = [f"{self.explainer}: {' · '.join(top) or 'no word has any weight'}"]
        if self.evidence is not None:
            reason = [" ".join(self.text[start:end].split()) for start, end in self.evidence]
            lines.append(f"known reason: {' · '.join(reason) or 'none'}")
        if cut_off(self):
            lines.append(f"{UNREAD} (from character {self.read_to} of {len(self.text)})")
        return lines


class _Piece(NamedTuple):
    """A run of characters of which the same is true."""

    text: str
    tokens: tuple[int, ...]  # several where byte-level pieces share a character
    weight: float
    reason: bool
    read: bool


def _pieces(e: Explanation) -> Iterator[_Piece]:
    """The whole text in order, cut wherever a token, the evidence or the reading begins or ends."""
    end_of_reading = len(e.text) if e.read_to is None else e.read_to
    edges = {0, len(e.text), end_of_reading, *(edge for span in (*e.spans, *(e.evidence or ())) for edge in span)}
    begins = defaultdict(list)
    for i, (start, _) in enumerate(e.spans):
        begins[start].append(i)
    on: tuple[int, ...] = ()
    for start, end in pairwise(sorted(edge for edge in edges if edge <= len(e.text))):
        on = tuple(i for i in (*on, *begins[start]) if e.spans[i][1] > start)
        reason = any(begin <= start < stop for begin, stop in e.evidence or ())
        yield _Piece(e.text[start:end], on, sum(e.weights[i] for i in on), reason, start < end_of_reading)


def marked(e: Explanation) -> str:
    """The user's text as HTML: every word carries its number as a tooltip and its weight as a background."""
    largest, pieces = _largest(e.weights), list(_pieces(e))
    html = "".join(_span(e, piece, largest) for piece in pieces if piece.read)
    if cut_off(e):
        tail = "".join(_span(e, piece, largest) for piece in pieces if not piece.read)
        html += f'<small> [{UNREAD}] </small><span style="opacity:0.6" title="{UNREAD}">{tail}</span>'
    style = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;margin:0.3em 0"
    return f'<div class="text" dir="auto" style="{style}">{html}</div>'


def legend(explanations: Iterable[Explanation]) -> str:
    """What the marks of these explanations mean, as HTML."""
    explanations = list(explanations)
    swatch = '<span style="background-color:{};padding:0.1em 0.4em;border-radius:3px">{}</span>'.format
    shades = {"less": 0.15, "more": 0.5, "most weight": 1.0}
    if any(weight < 0 for e in explanations for weight in e.weights):
        shades = {"against the class": -1.0, "no weight": 0.0, "for the class": 1.0}
    keys = ["".join(swatch(_colour(share, 1.0), word) for word, share in shades.items())]
    if any(e.evidence for e in explanations):
        keys.append(f'<span style="{_UNDERLINE}">underlined</span>: the known reason')
    if any(map(cut_off, explanations)):
        keys.append(f'<span style="opacity:0.7">grey</span>: {UNREAD}')
    return " &ensp; ".join(keys)


def cut_off(e: Explanation) -> bool:
    """Whether some of the text was not read."""
    return e.read_to is not None and e.read_to < len(e.text)


def _span(e: Explanation, piece: _Piece, largest: float) -> str:
    numbers = escape(", ".join(f"{e.tokens[i]}: {e.weights[i]:.4f}" for i in piece.tokens))
    style = _UNDERLINE if piece.reason else ""
    if piece.weight:
        style += f";background-color:{_colour(piece.weight, largest)};border-radius:3px"
    attributes = (f' title="{numbers}"' if numbers else "") + (f' style="{style.strip(";")}"' if style else "")
    return f"<span{attributes}>{escape(piece.text)}</span>" if attributes else escape(piece.text)


def _largest(weights: Iterable[float]) -> float:
    return max(map(abs, weights), default=0.0) or 1.0  # nothing weighs anything: whatever it is divided by


def _colour(weight: float, largest: float) -> str:
    red, green, blue = FOR if weight > 0 else AGAINST
    return f"rgba({red},{green},{blue},{OPAQUE * min(1.0, abs(weight) / largest):.3f})"


def _terminal_style(piece: _Piece, largest: float) -> str:
    styles = ["underline"] if piece.reason else []
    if not piece.read:
        styles.append("dim")
    elif (share := min(1.0, abs(piece.weight) / largest)) >= SHOWN:
        hue = FOR if piece.weight > 0 else AGAINST
        red, green, blue = (round(f + share * (h - f)) for f, h in zip(FAINT, hue, strict=True))
        styles.append(f"#ffffff on rgb({red},{green},{blue})")
    return " ".join(styles)


def _printable(text: str) -> str:
    """Without what could move the cursor or stop the encoder: a text may hold escape sequences."""
    return text.translate(_CONTROLS).encode(errors="replace").decode()
