"""Altair charts, converted to SVG by vl-convert.  Needs `steadygaze[report]`.

Colors become CSS classes (SHADES), so that the style sheet of a page sets them for light and dark.  The same points
give the same SVG.
"""

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as Tree

import altair as alt
import vl_convert

from steadygaze.results.formatting import BINS, bin_of

Points = list[dict[str, Any]]

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
"""CSS class -> its placeholder color in the chart."""
ATTRIBUTES = {
    "d",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "dx",
    "dy",
    "width",
    "height",
    "transform",
    "text-anchor",
    "opacity",
}
ATTRIBUTES |= {"fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "font-weight", "fill", "stroke"}
ELEMENTS = {"svg", "g", "path", "line", "rect", "text", "tspan"}
"""Other elements (links, images, scripts, styles) are removed."""
LARGEST = 1.15
"""Largest magnification of a narrow chart."""
_CLASSES = {shade: name for name, shade in SHADES.items()}
_LONG = re.compile(r"-?\d+\.\d{3,}")


def clean_svg(svg: str, name: str) -> str:
    """Make an SVG responsive, replace colors by classes and round numbers to two decimals."""
    root = Tree.fromstring(svg)
    width, height = root.attrib["width"], root.attrib["height"]
    body = "".join(_written(child) for child in root)
    size = f'viewBox="0 0 {width} {height}" style="max-width:{round(LARGEST * float(width))}px"'
    return f'<svg class="plot plot-{name}" {size} aria-hidden="true">{body}</svg>'


def _written(element: Tree.Element) -> str:
    kind = element.tag.rpartition("}")[2]
    if kind not in ELEMENTS or _invisible(element):
        return ""
    inside = "".join(f"{_written(child)}" for child in element)
    if kind == "g" and not inside:
        return ""
    copy = Tree.Element(kind, _attributes(element))
    copy.text = element.text if kind in ("text", "tspan") else None
    if kind == "g" and not copy.attrib:
        return inside
    opened, _, closed = Tree.tostring(copy, encoding="unicode", short_empty_elements=False).rpartition("</")
    return f"{opened}{inside}</{closed}"


def _invisible(element: Tree.Element) -> bool:
    empty = element.tag.endswith("path") and element.get("d", "") in ("", "M0,0h0v0h0Z")
    transparent = element.get("fill") == "transparent" and "stroke" not in element.attrib
    return empty or transparent or element.get("display") == "none" or "background" in element.get("class", "")


def _attributes(element: Tree.Element) -> dict[str, str]:
    attributes = {key: _LONG.sub(_rounded, value) for key, value in element.attrib.items() if key in ATTRIBUTES}
    classes = []
    for key in ("fill", "stroke"):
        if shade := _CLASSES.get(attributes.get(key, "")):
            classes.append(f"{key}-{shade}")
            del attributes[key]
    if attributes.get("transform") == "translate(0,0)":
        del attributes["transform"]
    for key in ("opacity", "stroke-width"):
        if attributes.get(key) == "1":
            del attributes[key]
    return {**({"class": " ".join(classes)} if classes else {}), **attributes}


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")


INK, MUTED, LINE = SHADES["ink"], SHADES["muted"], SHADES["line"]
SERIES = [shade for name, shade in SHADES.items() if name.startswith("series")]
WIDTH = 300
MIN_DISTINCT = 5
"""Different values under which a group is drawn as points: a shape would be made up."""
TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
NATS = "distance (nats; 0: no change, 0.69: nothing in common)"


def draw(name: str, points: Points, of: str) -> str:
    """SVG of one picture."""
    chart = CHARTS[name](points, of).configure(**LOOK)
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict(), allowed_base_urls=[])  # it may ask nobody for anything
    return clean_svg(svg, name)


def _moves(points: Points, of: str) -> Any:
    order = list(dict.fromkeys(point["probe"] for point in points))
    box = {"color": MUTED, "strokeWidth": 1}
    return (
        alt.Chart(alt.InlineData(values=points), width=WIDTH - 40, height=alt.Step(30))
        .mark_boxplot(
            size=14,
            box={"fill": SERIES[0], "fillOpacity": 0.35, "stroke": SERIES[0]},
            median={"color": INK, "strokeWidth": 2},
            rule=box,
            ticks=False,
            outliers={"filled": True, "fill": SERIES[0], "opacity": 0.5, "size": 9},
        )
        .encode(
            x=alt.X("distance:Q", title=NATS, scale=alt.Scale(zero=True)),
            y=alt.Y("probe:N", title=None, sort=order, axis=alt.Axis(grid=False, labelLimit=140)),
        )
    )


def _seeds(points: Points, of: str) -> Any:
    names = {name: [p["distance"] for p in points if bin_of(p["max"]) == name] for name in BINS}
    labels = {name: f"{name}|n = {len(distances):,}" for name, distances in names.items()}
    values = [
        {"bin": labels[name], "distance": distance, "shape": len(set(distances)) >= MIN_DISTINCT}
        for name, distances in names.items()
        for distance in distances
    ]
    top = max(value["distance"] for value in values) or 1.0
    y = alt.Y("distance:Q", title="distance (nats)", scale=alt.Scale(domainMin=0))
    base = alt.Chart()
    shape = (
        base.transform_filter("datum.shape")
        .transform_density("distance", as_=["distance", "density"], groupby=["bin"], extent=[0, top])
        .transform_joinaggregate(peak="max(density)", groupby=["bin"])
        .transform_filter("datum.density > 0.01 * datum.peak")  # no line where there is nobody
        .transform_calculate(mirror="-datum.density")
        .mark_area(orient="horizontal", fill=SERIES[0], fillOpacity=0.35, stroke=SERIES[0], strokeWidth=1)
        .encode(y=y, x=alt.X("mirror:Q", axis=None), x2="density:Q")
    )
    dots = (
        base.transform_filter("!datum.shape")
        .mark_point(filled=True, fill=SERIES[0], size=14)
        .encode(y=y, x=alt.X(datum=0, axis=None))
    )
    middle = base.mark_tick(orient="horizontal", color=INK, thickness=2, size=26).encode(
        y="median(distance):Q", x=alt.X(datum=0)
    )
    header = alt.Header(
        title="share of the top-weighted word",
        titleOrient="bottom",
        labelOrient="bottom",
        labelExpr="split(datum.label, '|')",
        labelLineHeight=13,
    )
    columns = alt.Column("bin:N", sort=[labels[name] for name in BINS], header=header)
    layers = alt.layer(shape, dots, middle).properties(width=WIDTH // 4 - 8, height=170)
    return layers.facet(data=alt.InlineData(values=values), column=columns, spacing=8).resolve_scale(x="independent")


def _aopc(points: Points, of: str) -> Any:
    names = list(dict.fromkeys(point["explainer"] for point in points))
    explainers = [name for name in names if name != "random"]
    order = [*explainers, *(name for name in names if name == "random")]
    shades = [SERIES[i % len(SERIES)] for i in range(len(explainers))] + [MUTED] * (len(order) - len(explainers))
    dashes = [[1, 0] if i < len(SERIES) else [2, 2] for i in range(len(explainers))] + [[6, 4]] * (
        len(order) - len(explainers)
    )
    legend = alt.Legend(orient="bottom", columns=2, title=None, labelLimit=150, symbolStrokeWidth=2, symbolSize=60)
    base = alt.Chart(alt.InlineData(values=points), width=WIDTH, height=120).encode(
        x=alt.X("share:Q", title="share of the words, top-weighted first", axis=alt.Axis(format="%", tickCount=5)),
        color=alt.Color("explainer:N", scale=alt.Scale(domain=order, range=shades), legend=legend),
        strokeDash=alt.StrokeDash("explainer:N", scale=alt.Scale(domain=order, range=dashes), legend=legend),
        shape=alt.Shape("explainer:N", scale=alt.Scale(domain=order), legend=legend),
    )

    def panel(field: str, title: str) -> Any:
        y = alt.Y(f"{field}:Q", title="lost probability", scale=alt.Scale(zero=True))
        lines = base.mark_line(strokeWidth=1.75, point={"filled": True, "size": 28}).encode(y=y)
        return lines.properties(title=title)

    return alt.vconcat(
        panel("erased", "These words erased: higher is better"), panel("kept", "Only these words kept: lower is better")
    ).resolve_scale(x="shared")


def _gradient(points: Points, of: str) -> Any:
    largest = max(max(point.values()) for point in points)
    end: float = next((edge for edge in TICKS[3:] if edge >= largest), 1.0)
    scale = alt.Scale(type="sqrt", domain=[0, end])
    ticks = alt.Axis(values=[tick for tick in TICKS if tick <= end], format="~%")
    diagonal = alt.Chart(alt.InlineData(values=[{"a": at, "b": at} for at in (0.0, end)])).mark_line(
        stroke=MUTED, strokeDash=[4, 4], strokeWidth=1
    )
    dots = alt.Chart(alt.InlineData(values=points)).mark_point(filled=True, fill=SERIES[0], opacity=0.4, size=12)
    x, y = f"share of the {of} (%)", "share of the gradient (%)"
    return alt.layer(
        diagonal.encode(x="a:Q", y="b:Q"),
        dots.encode(
            x=alt.X("attention:Q", title=x, scale=scale, axis=ticks),
            y=alt.Y("gradient:Q", title=y, scale=scale, axis=ticks),
        ),
    ).properties(width=WIDTH, height=WIDTH - 40)


CHARTS: dict[str, Callable[[Points, str], Any]] = {
    "moves": _moves,
    "seeds": _seeds,
    "aopc": _aopc,
    "gradient": _gradient,
}
LOOK: dict[str, Any] = {
    "background": "transparent",
    "aria": False,
    "font": "sans-serif",
    "padding": 4,
    "view": {"stroke": None},
    "title": {"fontSize": 11, "fontWeight": 600, "anchor": "start", "frame": "group", "color": INK, "offset": 6},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": 400,
        "titleFontSize": 11,
        "labelFontSize": 11,
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "tickCount": 5,
        "labelFlush": False,
    },
    "header": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "titleFontWeight": 400,
        "titleFontSize": 11,
        "titlePadding": 2,
    },
    "legend": {"labelColor": INK, "labelFontSize": 11},
}
