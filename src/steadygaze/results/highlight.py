"""Highlight words by weight: as HTML for a notebook or a page, and in a terminal.

The strength of a color is that of results/shade.py; weights below its floor are gray.  A rationale also covers the
spaces between its words.  Positive weights are blue and negative weights orange.  Both colors are translucent, so
that the text is legible on light and dark backgrounds.  Styles are inline because notebooks remove style sheets.
Every text is escaped.  Does not import torch.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from steadygaze.core.errors import printable as printable
from steadygaze.core.types import Picked, Span, Unit
from steadygaze.results.shade import FLOOR, LEVELS, UNITS, level_text, meaning, strength, weight_text

if TYPE_CHECKING:
    from rich.text import Text

FOR, AGAINST = (37, 99, 235), (190, 78, 0)  # blue and orange: distinct in common forms of color blindness
OPAQUE = 0.6  # full color: WCAG contrast stays above 4.5 in both color schemes
FAINT = (96, 102, 114)  # background of weight 0 in a terminal
GRAY = 0.14  # opacity of a weight below the floor
RATIONALE = "selected: the input of the predictor"
UNREAD = "truncated: longer than the limit"

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
    """The attributes of an Explanation that this file uses; explanation.py imports this file."""

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
    def unit(self) -> Unit: ...
    @property
    def rationale(self) -> tuple[Picked, ...] | None: ...


def page(title: str, body: str) -> str:
    """An HTML page without scripts or external files.  The title is text, the body HTML."""
    return _PAGE.format(title=escape(title), body=body)


def highlight_html(e: WeightedText, other: WeightedText | None = None) -> str:
    """Highlight a text as HTML, with the weights as tooltips.

    `other`: the other text of a pair.
    """
    total, pieces = total_weight(e, other), list(_pieces(e))
    html = "".join(_span(e, piece, total) for piece in pieces if piece.read)
    if is_truncated(e):
        tail = "".join(_span(e, piece, total) for piece in pieces if not piece.read)
        html += f'<small> [{UNREAD}] </small><span style="opacity:0.6" title="{UNREAD}">{tail}</span>'
    style = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.9;margin:0.3em 0"
    return f'<div class="text" dir="auto" style="{style}">{html}</div>'


def legend(explanations: Iterable[WeightedText], marked: str = "the human rationale") -> str:
    """The legend of these explanations, as HTML; `marked`: the underlined words."""
    explanations = list(explanations)
    keys = [_scale(unit, [e for e in explanations if e.unit == unit]) for unit in UNITS]
    keys = [key for key in keys if key]
    if all(e.rationale is not None for e in explanations):
        keys = [_swatch(1.0, 1.0, RATIONALE)]
    if any(e.rationales for e in explanations):
        keys.append(f'<span style="{_UNDERLINE}">underlined</span>: {marked}')
    if any(map(is_truncated, explanations)):
        keys.append(f'<span style="opacity:0.7">gray</span>: {UNREAD}')
    return " &ensp; ".join(keys)


def _swatch(sign: float, part: float, text: str) -> str:
    style = f"background-color:{_color(sign, part)};padding:0.1em 0.4em;border-radius:3px;white-space:nowrap"
    return f'<span style="{style}">{text}</span>'


def _scale(unit: Unit, explanations: list[WeightedText]) -> str:
    """The colors of a unit, with the weights that have them."""
    if not explanations:
        return ""
    if unit == "selection":
        return _swatch(1.0, 1.0, meaning(unit))
    shades = [(level_text(level, unit), min(1.0, (level / LEVELS[-1]) ** 0.5)) for level in LEVELS]
    keys = [_swatch(1.0, part, text) for text, part in shades]
    if any(weight < 0 for e in explanations for weight in e.weights):
        against = [_swatch(-1.0, part, f"−{text}") for text, part in reversed(shades)]
        keys = ["against ", *against, *keys, " for the class"]
    gray = _swatch(0.0, 0.0, f"below {level_text(FLOOR, unit)}")
    return f"{meaning(unit)}: {''.join(keys)} {gray}"


def highlight_rich(e: WeightedText, other: WeightedText | None = None) -> "Text":
    """Highlight a text for a terminal."""
    from rich.text import Text

    output, total = Text(), total_weight(e, other)
    for piece in _pieces(e):
        output.append(printable(piece.text), style=_terminal_style(piece, strength(piece.weight, e.unit, total)))
    return output


def is_truncated(e: WeightedText) -> bool:
    """Return whether the text was truncated."""
    return e.read_to is not None and e.read_to < len(e.text)


class _Piece(NamedTuple):
    """A run of characters with the same tokens and style."""

    text: str
    tokens: tuple[int, ...]  # several if byte-level subwords share a character
    weight: float
    reason: bool
    read: bool


def _pieces(e: WeightedText) -> Iterator[_Piece]:
    """Split the text at the edges of tokens, rationales and truncation."""
    read_end = len(e.text) if e.read_to is None else e.read_to
    edges = {0, len(e.text), read_end, *(edge for span in (*e.spans, *(e.rationales or ())) for edge in span)}
    begins = defaultdict(list)
    for i, (start, _) in enumerate(e.spans):
        begins[start].append(i)
    active: tuple[int, ...] = ()
    weight = 0.0
    for start, end in pairwise(sorted(edge for edge in edges if edge <= len(e.text))):
        active = tuple(i for i in (*active, *begins[start]) if e.spans[i][1] > start)
        reason = any(begin <= start < stop for begin, stop in e.rationales or ())
        inside = not active and any(begin <= start < stop for begin, stop, _ in e.rationale or ())
        weight = weight if inside else sum(e.weights[i] for i in active)
        yield _Piece(e.text[start:end], active, weight, reason, start < read_end)


def _span(e: WeightedText, piece: _Piece, total: float) -> str:
    numbers = escape(", ".join(f"{e.tokens[i]}: {weight_text(e.weights[i], e.unit, total, 4)}" for i in piece.tokens))
    style = _UNDERLINE if piece.reason else ""
    if piece.weight:
        rounded = "" if e.rationale is not None else ";border-radius:3px"  # a sentence has one background
        style += f";background-color:{_color(piece.weight, strength(piece.weight, e.unit, total))}{rounded}"
    attributes = (f' title="{numbers}"' if numbers else "") + (f' style="{style.strip(";")}"' if style else "")
    return f"<span{attributes}>{escape(piece.text)}</span>" if attributes else escape(piece.text)


def total_weight(e: WeightedText, other: WeightedText | None = None) -> float:
    """Σ|w| of a text, and of the other text of a pair."""
    return sum(abs(weight) for text in (e, other) if text is not None for weight in text.weights)


def _color(weight: float, part: float) -> str:
    """Gray for the strength 0."""
    red, green, blue = (FOR if weight > 0 else AGAINST) if part else FAINT
    return f"rgba({red},{green},{blue},{OPAQUE * part or GRAY:.3f})"


def _terminal_style(piece: _Piece, part: float) -> str:
    styles = ["underline"] if piece.reason else []
    if not piece.read:
        styles.append("dim")
    elif part:
        hue = FOR if piece.weight > 0 else AGAINST
        red, green, blue = (round(f + part * (h - f)) for f, h in zip(FAINT, hue, strict=True))
        styles.append(f"#ffffff on rgb({red},{green},{blue})")
    return " ".join(styles)
