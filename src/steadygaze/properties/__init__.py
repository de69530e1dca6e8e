"""Properties of explanations, and the registry that everything about measures is read from.

A property of a user is registered in the same way, by its own module: PROPERTIES["name"] = Property(...).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Registry
from steadygaze.results.comparison import Column
from steadygaze.results.policy import Policy
from steadygaze.results.row import Fact, MeasureKey, PropertyFact

if TYPE_CHECKING:
    from steadygaze.properties.measures.measure import Measure
    from steadygaze.properties.property import Property

PROPERTIES: "Registry[Property]" = Registry.of(
    {
        "correctness": "steadygaze.properties.correctness:CORRECTNESS",
        "stability": "steadygaze.properties.stability:STABILITY",
        "robustness": "steadygaze.properties.robustness:ROBUSTNESS",
        "faithfulness": "steadygaze.properties.faithfulness:FAITHFULNESS",
        "seed-consistency": "steadygaze.properties.seed_consistency:SEED_CONSISTENCY",
        "shortcut-leakage": "steadygaze.properties.leakage:LEAKAGE",
        "plausibility": "steadygaze.properties.plausibility:PLAUSIBILITY",
    }
)
"""Properties by name.  `PROPERTIES["name"] = Property(...)` registers your own."""


def all_measures() -> "dict[str, Measure]":
    """All measures by name.  Properties share a measure of the same name: its rows are those of all of them."""
    by_name: dict[str, Measure] = {}
    for item in PROPERTIES.values():
        for measure in item.measures:
            first = by_name.get(measure.name)
            by_name[measure.name] = measure if first is None else first.with_rows_of(measure)
    return by_name


def row_names(*names: str) -> list[str]:
    """The names of all rows, or of those of these measures.

    >>> row_names("pearson", "average-precision")
    ['pearson/gradient', 'pearson/gradient-through-attention', 'average-precision', 'average-precision/above-random']
    """
    return [str(key) for key in _keys() if not names or key.measure in names]


def rows_under(*conditions: str) -> list[str]:
    """The names of all rows under these conditions.

    >>> rows_under("reworded")
    ['weight-correlation/reworded', 'label-flip/reworded']
    """
    return [str(key) for key in _keys() if key.probe in conditions]


def _keys() -> "Iterator[MeasureKey]":
    return (key for measure in all_measures().values() for key in measure.keys)


def measure_of(name: str) -> "Measure":
    """The measure of a row such as jensen-shannon/noise: its own entry, else the one before the slash."""
    known = all_measures()
    return known.get(name) or known[MeasureKey.parse(name).measure]


def columns() -> tuple[Column, ...]:
    """The columns of a comparison."""
    return tuple(column for measure in all_measures().values() for column in measure.columns)


def facts() -> dict[str, Fact]:
    """Descriptions of measures, for reports."""
    return {name: measure.fact for name, measure in all_measures().items()}


def property_facts() -> tuple[PropertyFact, ...]:
    """Descriptions of properties, for reports."""
    return tuple(item.fact for item in PROPERTIES.values())


def conditions() -> dict[str, str]:
    """Probes and comparisons, with their descriptions."""
    return {name: sentence for item in PROPERTIES.values() for name, sentence in item.conditions.items()}


def own_properties() -> "dict[str, Property]":
    """The properties with checks or measures that are not part of steadygaze; a worker process registers them."""
    return {name: item for name, item in PROPERTIES.items() if item.own_functions}


def check_name(name: str) -> None:
    """Raise an error if no audit has a row of this name."""
    if name in row_names():
        return
    measure = MeasureKey.parse(name).measure
    if not measure or not (names := row_names(measure)):
        raise unknown("measure", name, dict.fromkeys(key.measure for key in _keys()))
    raise UserError(f"{name} is not the name of a row; the rows of {measure} are {', '.join(names)}")


def check_policy(*parts: Policy) -> Policy | None:
    """All requirements together; None if there are none.  Unknown names are refused before the audit."""
    requirements = tuple(requirement for part in parts for requirement in part.requirements)
    allowed = tuple(verdict for part in parts for verdict in part.verdicts)
    for requirement in requirements:
        check_name(requirement.measure)
    names = [name for item in PROPERTIES.values() if item.rule for name in (item.name, item.title)]
    for verdict in allowed:
        if verdict.name not in names:
            raise unknown("verdict", verdict.name, names)
    return Policy(requirements, allowed) if requirements or allowed else None
