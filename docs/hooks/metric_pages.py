"""Metric cards, from the registry of measures."""

import math
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from markdown_text import code, paragraphs, table
from steadygaze.certificates import certificate_bounds, soft_stability, substitution_certificate, worst_rewrites
from steadygaze.properties import PROPERTIES, conditions
from steadygaze.properties import measures as packages
from steadygaze.properties.measures.measure import Measure
from steadygaze.properties.property import Property

DIRECTION = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "descriptive, or it depends on the perturbation",
}


def pages(_: Path) -> dict[str, str]:
    cards = {_path(item): _page(item) for item in _described()}
    return {"metrics/index.md": _index(), **cards, "metrics/certificates.md": _certificates()}


def _described() -> list[Property]:
    return [item for item in PROPERTIES.values() if item.measures]


def _modules() -> list[Any]:
    """The modules that describe measures."""
    names = [module.name for module in iter_modules(packages.__path__, f"{packages.__name__}.")]
    return [module for module in map(import_module, names) if hasattr(module, "MEASURES")]


def _path(item: Property) -> str:
    return f"metrics/{item.name}.md"


def _index() -> str:
    parts = [
        "# Metrics\n",
        "Each number of an audit is a measure, often with a probe: `jensen-shannon/noise` is the measure "
        "`jensen-shannon` under the probe `noise`. Every number has a 95 % interval. The "
        "[verdicts](../how-to/read-a-report.md) follow from the intervals.\n",
    ]
    for item in _described():
        link = _path(item).removeprefix("metrics/")
        rows = [(f"[`{m.name}`]({link}#{_anchor(m.name)})", m.sentence, DIRECTION[m.direction]) for m in item.measures]
        parts += [f"## {item.title}\n", table(("measure", "meaning", "direction"), rows)]
    parts += [
        "[Certificates](certificates.md) has the definitions of certificates.\n",
        "## Probes and comparisons\n",
        table(("probe", "meaning"), [(code(n), t) for n, t in conditions().items()]),
    ]
    return "\n".join(parts)


def _page(item: Property) -> str:
    modules = [module for module in _modules() if any(measure in item.measures for measure in module.MEASURES)]
    definitions = [paragraphs(str(module.__doc__)) for module in modules]
    return "\n".join(
        [
            f"# {item.title}\n",
            "The card of each measure gives its function, bounds, direction and source.\n",
            *map(_card, item.measures),
            "## Definitions\n",
            "The docstring of each module, with the equations:\n",
            "\n\n".join(definitions),
        ]
    )


def _certificates() -> str:
    modules = {
        "Attention weights": certificate_bounds,
        "Substitutions": substitution_certificate,
        "Worst rewrite": worst_rewrites,
        "Soft stability": soft_stability,
    }
    parts = [f"## {title}\n\n{paragraphs(str(module.__doc__))}\n" for title, module in modules.items()]
    return "\n".join(["# Certificates\n", *parts])


def _card(measure: Measure) -> str:
    rows = [
        ("bounds", _bounds(measure)),
        ("direction", DIRECTION[measure.direction]),
        ("source", "" if measure.citation == "—" else measure.citation),
        ("one number per", "text; the report has the mean" if measure.per_example else "set of texts"),
        ("function", code(_name(measure))),
        ("rows in an audit", ", ".join(code(key) for key in measure.keys)),
    ]
    shown = [(name, value) for name, value in rows if value]
    heading = f"## {measure.name} {{ #{_anchor(measure.name)} }}"
    return f"{heading}\n\n{measure.sentence}\n\n{table(('property', 'value'), shown)}"


def _name(measure: Measure) -> str:
    function = getattr(measure.function, "func", measure.function)
    return f"{function.__module__}.{function.__name__}"


def _bounds(measure: Measure) -> str:
    known = {math.log(2): "ln 2", math.inf: "∞", -math.inf: "−∞"}
    low, high = (known.get(bound, f"{bound:g}") for bound in measure.bounds)
    return f"{low} to {high}"


def _anchor(name: str) -> str:
    return name.replace("/", "-")
