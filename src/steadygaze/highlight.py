"""How a weighed text is drawn: as HTML for a notebook or a page, and in the colours of a terminal.

A weight is drawn in proportion to the text's largest.  Of attention, whose weights are shares, blue is how large a
share; of signed explainers blue speaks for the explained class and orange against it.  Both hues are translucent, so
that the text stays legible on light and dark alike, and the styles are inline because notebooks strip style sheets.
Every text is escaped.  No torch here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from steadygaze.types import Span

if TYPE_CHECKING:
    from rich.text import Text

FOR, AGAINST = (37, 99, 235), (190, 78, 0)  # blue and orange: told apart by every common colour blindness
OPAQUE = 0.6  # of the heaviest word: WCAG contrast stays above 4.5 in both colour schemes
FAINT = (96, 102, 114)  # what a weightless word's background would be in a terminal
SHOWN = 0.12  # share of the largest weight below which a terminal, whose colours are solid, draws no background
SHARE = "share of the attention: what the decoder was given of each word"
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


class Weighed(Protocol):
    """What is asked of an Explanation here; a protocol, because explanation.py imports this file."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def spans(self) -> tuple[Span, ...]: ...
    @property
    def weights(self) -> tuple[float, ...]: ...
    @property
    def explainer(self) -> str: ...
    @property
    def evidence(self) -> tuple[Span, ...] | None: ...
    @property
    def read_to(self) -> int | None: ...


def page(title: str, body: str) -> str:
    """A whole HTML page that loads nothing and runs nothing.  The title is text, the body HTML."""
    return _PAGE.format(title=escape(title), body=body)


def marked(e: Weighed) -> str:
    """The user's text as HTML: every word carries its number as a tooltip and its weight as a background."""
    largest, pieces = _largest(e.weights), list(_pieces(e))
    html = "".join(_span(e, piece, largest) for piece in pieces if piece.read)
    if cut_off(e):
        tail = "".join(_span(e, piece, largest) for piece in pieces if not piece.read)
        html += f'<small> [{UNREAD}] </small><span style="opacity:0.6" title="{UNREAD}">{tail}</span>'
    style = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;margin:0.3em 0"
    return f'<div class="text" dir="auto" style="{style}">{html}</div>'


def legend(explanations: Iterable[Weighed]) -> str:
    """What the marks of these explanations mean, as HTML."""
    explanations = list(explanations)
    swatch = '<span style="background-color:{};padding:0.1em 0.4em;border-radius:3px">{}</span>'.format
    shades = {"less": 0.15, "more": 0.5, "most weight": 1.0}
    if any(weight < 0 for e in explanations for weight in e.weights):
        shades = {"against the class": -1.0, "no weight": 0.0, "for the class": 1.0}
    keys = ["".join(swatch(_colour(share, 1.0), word) for word, share in shades.items())]
    if any(e.explainer == "attention" for e in explanations):
        keys.append(SHARE)
    if any(e.evidence for e in explanations):
        keys.append(f'<span style="{_UNDERLINE}">underlined</span>: the known reason')
    if any(map(cut_off, explanations)):
        keys.append(f'<span style="opacity:0.7">grey</span>: {UNREAD}')
    return " &ensp; ".join(keys)


def painted(e: Weighed) -> "Text":
    """The user's text for a terminal: every word on a background as strong as its weight."""
    from rich.text import Text

    drawn, largest = Text(), _largest(e.weights)
    for piece in _pieces(e):
        drawn.append(printable(piece.text), style=_terminal_style(piece, largest))
    return drawn


def cut_off(e: Weighed) -> bool:
    """Whether some of the text was not read."""
    return e.read_to is not None and e.read_to < len(e.text)


def printable(text: str) -> str:
    """Without what could move the cursor or stop the encoder: a text may hold escape sequences."""
    return text.translate(_CONTROLS).encode(errors="replace").decode()


class _Piece(NamedTuple):
    """A run of characters of which the same is true."""

    text: str
    tokens: tuple[int, ...]  # several where byte-level pieces share a character
    weight: float
    reason: bool
    read: bool


def _pieces(e: Weighed) -> Iterator[_Piece]:
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


def _span(e: Weighed, piece: _Piece, largest: float) -> str:
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
