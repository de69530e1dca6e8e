"""Metric cards, from the registry of measures."""

import math
from pathlib import Path

from markdown_text import code, paragraphs, table
from steadygaze.properties.measures import (
    correctness_measures,
    faithfulness_measures,
    plausibility_measures,
    shortcut_measures,
    stability_measures,
)
from steadygaze.properties.measures.measure import PROBES, Measure

TOPICS = {
    "Correctness": correctness_measures,
    "Stability": stability_measures,
    "Faithfulness": faithfulness_measures,
    "Shortcuts and leakage": shortcut_measures,
    "Plausibility": plausibility_measures,
}
DIRECTION = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "descriptive, or it depends on the perturbation",
}


def pages(_: Path) -> dict[str, str]:
    return {"metrics/index.md": _index(), **{_path(topic): _page(topic) for topic in TOPICS}}


def _path(topic: str) -> str:
    return f"metrics/{topic.lower().replace(' ', '-')}.md"


def _index() -> str:
    parts = [
        "# Metrics\n",
        "Each number of an audit is a measure, often with a probe: `jensen-shannon/noise` is the measure "
        "`jensen-shannon` under the probe `noise`. Every number has a 95 % interval. The "
        "[verdicts](../how-to/read-a-report.md) follow from the intervals.\n",
    ]
    for topic, module in TOPICS.items():
        link = _path(topic).removeprefix("metrics/")
        rows = [
            (f"[`{m.name}`]({link}#{_anchor(m.name)})", m.sentence, DIRECTION[m.direction]) for m in module.MEASURES
        ]
        parts += [f"## {topic}\n", table(("measure", "meaning", "direction"), rows)]
    parts += ["## Probes and comparisons\n", table(("probe", "meaning"), [(code(n), t) for n, t in PROBES.items()])]
    return "\n".join(parts)


def _page(topic: str) -> str:
    module = TOPICS[topic]
    return "\n".join(
        [
            f"# {topic}\n",
            "The card of each measure gives its function, bounds, direction and source.\n",
            *map(_card, module.MEASURES),
            "## Definitions\n",
            "The docstring of the module, with the equations:\n",
            paragraphs(str(module.__doc__)),
        ]
    )


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
