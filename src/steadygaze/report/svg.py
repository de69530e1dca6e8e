"""What vl-convert draws -> what a page holds: SVG without colours, fonts, roles or names of its own."""

import re
from xml.etree import ElementTree as Tree

SHADES = {
    "ink": "#010101",
    "muted": "#020202",
    "line": "#030303",
    "series-1": "#110101",
    "series-2": "#120101",
    "series-3": "#130101",
    "series-4": "#140101",
    "series-5": "#150101",
    "series-6": "#160101",
}
"""Class -> a colour that stands for it while the picture is being made."""
KEPT = {"d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "transform", "text-anchor", "opacity"}
KEPT |= {"fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "font-weight", "fill", "stroke"}
DRAWN = {"svg", "g", "path", "line", "rect", "text", "tspan"}
"""Anything else (links, images, scripts, styles) has no business in a picture."""
LARGEST = 1.15
"""Times its own size: a narrow picture does not become a poster."""
_CLASSES = {shade: name for name, shade in SHADES.items()}
_LONG = re.compile(r"-?\d+\.\d{3,}")


def tidy(svg: str, name: str) -> str:
    """Responsive, without what a page decides: colours become classes, numbers have two decimals."""
    root = Tree.fromstring(svg)
    width, height = root.attrib["width"], root.attrib["height"]
    body = "".join(_written(child) for child in root)
    size = f'viewBox="0 0 {width} {height}" style="max-width:{round(LARGEST * float(width))}px"'
    return f'<svg class="plot plot-{name}" {size} aria-hidden="true">{body}</svg>'


def _written(element: Tree.Element) -> str:
    kind = element.tag.rpartition("}")[2]
    if kind not in DRAWN or _invisible(element):
        return ""
    inside = "".join(f"{_written(child)}" for child in element)
    if kind == "g" and not inside:
        return ""
    made = Tree.Element(kind, _attributes(element))
    made.text = element.text if kind in ("text", "tspan") else None
    if kind == "g" and not made.attrib:
        return inside
    opened, _, closed = Tree.tostring(made, encoding="unicode", short_empty_elements=False).rpartition("</")
    return f"{opened}{inside}</{closed}"


def _invisible(element: Tree.Element) -> bool:
    empty = element.tag.endswith("path") and element.get("d", "") in ("", "M0,0h0v0h0Z")
    clear = element.get("fill") == "transparent" and "stroke" not in element.attrib
    return empty or clear or element.get("display") == "none" or "background" in element.get("class", "")


def _attributes(element: Tree.Element) -> dict[str, str]:
    found = {key: _LONG.sub(_rounded, value) for key, value in element.attrib.items() if key in KEPT}
    classes = []
    for key in ("fill", "stroke"):
        if shade := _CLASSES.get(found.get(key, "")):
            classes.append(f"{key}-{shade}")
            del found[key]
    if found.get("transform") == "translate(0,0)":
        del found["transform"]
    for key in ("opacity", "stroke-width"):
        if found.get(key) == "1":
            del found[key]
    return {**({"class": " ".join(classes)} if classes else {}), **found}


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found.group()):.2f}".rstrip("0").rstrip(".")
