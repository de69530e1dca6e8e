"""How a weighed text is drawn: as HTML for a notebook or a page, and in the colours of a terminal.

A weight is drawn in proportion to the weight that has the full colour, which depends on its text of T words read:

    full = max(max |w|,  min(STANDS_OUT / T, HALF) Σ|w|)

The heaviest word has the full colour where it stands out, and weights that are all alike stay pale, as they should.
Of a selection every word is drawn, the lightest with the part PICKED of the full colour: a word is in it or it is not.
Of a rationale what lies between its words is drawn too: a sentence reads as one.
Of attention, whose weights are shares, blue is how large a share; of signed explainers blue speaks for the explained
class and orange against it.  Both hues are translucent, so that the text stays legible on light and dark alike, and
the styles are inline because notebooks strip style sheets.  Every text is escaped.  No torch here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from steadygaze.core.errors import printable as printable
from steadygaze.core.types import Picked, Span

if TYPE_CHECKING:
    from rich.text import Text

FOR, AGAINST = (37, 99, 235), (190, 78, 0)  # blue and orange: told apart by every common colour blindness
OPAQUE = 0.6  # of the heaviest word: WCAG contrast stays above 4.5 in both colour schemes
FAINT = (96, 102, 114)  # what a weightless word's background would be in a terminal
STANDS_OUT = 5  # times an even share of the weight: a word that has so much has the full colour
HALF = 0.5  # of all weight does too, where the words are so few that it is less than that
SHOWN = 0.25  # of the full colour: below it a terminal, whose colours are solid, draws none; an even share is 1/5
PICKED = 0.4  # of the full colour: what a word has for being selected; the rest is for its weight
SHARE = "share of the attention: what the decoder was given of each word"
SCALE = f"strongest: the heaviest word, if it has {STANDS_OUT} even shares, or half of all; weights all alike stay pale"
SELECTED = "of a selection every word has a mark"
RATIONALE = "selected: all that the predictor read"
UNREAD = "not read: longer than the limit"

_UNDERLINE = "text-decoration:underline;text-decoration-thickness:2px;text-underline-offset:0.2em"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="generator" content="steadygaze"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body {{ max-width: 44rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif }}</style>
</head><body><main>{body}</main></body></html>
"""


class WeightedText(Protocol):
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
    def rationales(self) -> tuple[Span, ...] | None: ...
    @property
    def read_to(self) -> int | None: ...
    @property
    def selected(self) -> bool: ...
    @property
    def rationale(self) -> tuple[Picked, ...] | None: ...


def page(title: str, body: str) -> str:
    """A whole HTML page that loads nothing and runs nothing.  The title is text, the body HTML."""
    return _PAGE.format(title=escape(title), body=body)


def highlight_html(e: WeightedText, beside: WeightedText | None = None) -> str:
    """The user's text as HTML: every word carries its number as a tooltip and its weight as a background.

    `beside`: the other text of a pair; the colors of both are on one scale.
    """
    full, pieces = _full(e, beside), list(_pieces(e))
    html = "".join(_span(e, piece, full) for piece in pieces if piece.read)
    if is_truncated(e):
        tail = "".join(_span(e, piece, full) for piece in pieces if not piece.read)
        html += f'<small> [{UNREAD}] </small><span style="opacity:0.6" title="{UNREAD}">{tail}</span>'
    style = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;margin:0.3em 0"
    return f'<div class="text" dir="auto" style="{style}">{html}</div>'


def legend(explanations: Iterable[WeightedText]) -> str:
    """What the marks of these explanations mean, as HTML."""
    explanations = list(explanations)
    swatch = '<span style="background-color:{};padding:0.1em 0.4em;border-radius:3px">{}</span>'.format
    shades = {"less": 1 / STANDS_OUT, "more": 0.5, "most weight": 1.0}
    if any(weight < 0 for e in explanations for weight in e.weights):
        shades = {"against the class": -1.0, "no weight": 0.0, "for the class": 1.0}
    keys = ["".join(swatch(_colour(share, abs(share)), word) for word, share in shades.items()), SCALE]
    if any(e.selected for e in explanations):
        keys.append(SELECTED)
    if all(e.rationale is not None for e in explanations):
        keys = [swatch(_colour(1.0, 1.0), RATIONALE)]
    if any(e.explainer == "attention" for e in explanations):
        keys.append(SHARE)
    if any(e.rationales for e in explanations):
        keys.append(f'<span style="{_UNDERLINE}">underlined</span>: the known reason')
    if any(map(is_truncated, explanations)):
        keys.append(f'<span style="opacity:0.7">grey</span>: {UNREAD}')
    return " &ensp; ".join(keys)


def highlight_rich(e: WeightedText, beside: WeightedText | None = None) -> "Text":
    """The user's text for a terminal: every word on a background as strong as its weight."""
    from rich.text import Text

    drawn, full = Text(), _full(e, beside)
    for piece in _pieces(e):
        drawn.append(printable(piece.text), style=_terminal_style(piece, _strength(e, piece, full)))
    return drawn


def is_truncated(e: WeightedText) -> bool:
    """Whether some of the text was not read."""
    return e.read_to is not None and e.read_to < len(e.text)


class _Piece(NamedTuple):
    """A run of characters of which the same is true."""

    text: str
    tokens: tuple[int, ...]  # several where byte-level pieces share a character
    weight: float
    reason: bool
    read: bool


def _pieces(e: WeightedText) -> Iterator[_Piece]:
    """The whole text in order, cut wherever a token, the rationales or the reading begins or ends."""
    end_of_reading = len(e.text) if e.read_to is None else e.read_to
    edges = {0, len(e.text), end_of_reading, *(edge for span in (*e.spans, *(e.rationales or ())) for edge in span)}
    begins = defaultdict(list)
    for i, (start, _) in enumerate(e.spans):
        begins[start].append(i)
    on: tuple[int, ...] = ()
    before = 0.0
    for start, end in pairwise(sorted(edge for edge in edges if edge <= len(e.text))):
        on = tuple(i for i in (*on, *begins[start]) if e.spans[i][1] > start)
        reason = any(begin <= start < stop for begin, stop in e.rationales or ())
        inside = not on and any(begin <= start < stop for begin, stop, _ in e.rationale or ())
        before = before if inside else sum(e.weights[i] for i in on)
        yield _Piece(e.text[start:end], on, before, reason, start < end_of_reading)


def _span(e: WeightedText, piece: _Piece, full: float) -> str:
    numbers = escape(", ".join(f"{e.tokens[i]}: {e.weights[i]:.4f}" for i in piece.tokens))
    style = _UNDERLINE if piece.reason else ""
    if piece.weight:
        rounded = "" if e.rationale is not None else ";border-radius:3px"  # a sentence is one piece
        style += f";background-color:{_colour(piece.weight, _strength(e, piece, full))}{rounded}"
    attributes = (f' title="{numbers}"' if numbers else "") + (f' style="{style.strip(";")}"' if style else "")
    return f"<span{attributes}>{escape(piece.text)}</span>" if attributes else escape(piece.text)


def _full(e: WeightedText, beside: WeightedText | None = None) -> float:
    """The weight that has the full colour."""
    both = [e] if beside is None else [e, beside]
    sizes = [abs(weight) for one in both for weight in one.weights]
    if e.rationale is not None:
        return max(sizes, default=0.0) or 1.0
    read = sum(one.read_to is None or start < one.read_to for one in both for start, _ in one.spans)
    fair = min(STANDS_OUT / max(1, read), HALF) * sum(sizes)
    return max([*sizes, fair]) or 1.0  # nothing weighs anything: whatever it is divided by


def _strength(e: WeightedText, piece: _Piece, full: float) -> float:
    """Of the full colour."""
    share = min(1.0, abs(piece.weight) / full)
    return PICKED + (1 - PICKED) * share if e.selected and piece.weight else share


def _colour(weight: float, strength: float) -> str:
    red, green, blue = FOR if weight > 0 else AGAINST
    return f"rgba({red},{green},{blue},{OPAQUE * strength:.3f})"


def _terminal_style(piece: _Piece, strength: float) -> str:
    styles = ["underline"] if piece.reason else []
    if not piece.read:
        styles.append("dim")
    elif strength >= SHOWN:
        hue = FOR if piece.weight > 0 else AGAINST
        red, green, blue = (round(f + strength * (h - f)) for f, h in zip(FAINT, hue, strict=True))
        styles.append(f"#ffffff on rgb({red},{green},{blue})")
    return " ".join(styles)
