"""Measures: tensors -> one number per example.  No measure calls a model; MEASURES describes them.

Every audit has a row for each of NAMES, with a number or the reason why it is missing.
"""

from itertools import chain
from operator import itemgetter

from steadygaze.core.errors import UserError, unknown
from steadygaze.properties.measures import (
    correctness_measures,
    faithfulness_measures,
    plausibility_measures,
    shortcut_measures,
    stability_measures,
)
from steadygaze.properties.measures.measure import Measure
from steadygaze.results.row import Fact, MeasureKey

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in chain(
        correctness_measures.MEASURES,
        stability_measures.MEASURES,
        faithfulness_measures.MEASURES,
        shortcut_measures.MEASURES,
        plausibility_measures.MEASURES,
    )
}
_KEYS = [key for measure in MEASURES.values() for key in measure.keys]
NAMES = tuple(map(str, _KEYS))
COLUMNS = tuple(
    column
    for _, column in sorted(chain(*(measure.columns.items() for measure in MEASURES.values())), key=itemgetter(0))
)
"""The columns of a comparison."""
FACTS = {name: Fact(m.sentence, *m.bounds, m.direction, m.citation) for name, m in MEASURES.items()}
"""Descriptions, for the report."""


def measure_of(name: str) -> Measure:
    """The measure of a row such as jensen-shannon/noise: its own entry, else the one before the slash."""
    return MEASURES.get(name) or MEASURES[MeasureKey.parse(name).measure]


def measure_names(*measures: str) -> list[str]:
    """All names of these measures.

    >>> measure_names("pearson", "average-precision")
    ['pearson/gradient', 'pearson/gradient-through-attention', 'average-precision', 'average-precision/above-random']
    """
    return [str(key) for measure in measures for key in _KEYS if key.measure == measure]


def probe_names(*probes: str) -> list[str]:
    """All names with these probes.

    >>> probe_names("seeds")
    ['jensen-shannon/seeds', 'top-k-overlap/seeds', 'prediction-change/seeds', 'label-flip/seeds']
    """
    return [str(key) for key in _KEYS if key.probe in probes]


def check_name(name: str) -> None:
    """Raise an error if no audit has a row of this name."""
    if name in NAMES:
        return
    measure = MeasureKey.parse(name).measure
    if not (names := measure_names(measure)):
        raise unknown("measure", name, dict.fromkeys(key.measure for key in _KEYS))
    raise UserError(f"{name} is not the name of a row; the rows of {measure} are {', '.join(names)}")
