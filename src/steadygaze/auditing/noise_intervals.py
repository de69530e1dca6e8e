"""Query noise in the intervals of an audit.

Every number of a text comes from answers of its own, so that an interval over texts contains their noise, unless it is
on one side: two noisy explanations differ even if nothing changes.  A row of a perturbation is therefore extended
towards `Measure.identical`, by the largest distance from it that the interval of the row …/repeated allows:

    [low, high]  ->  [low − d, high] for divergences and flips,  [low, high + d] for correlations and overlaps

The true value without noise is inside: noise adds at most d.  A `no` then needs a shift that noise cannot explain.
"""

from collections.abc import Iterable
from dataclasses import replace

from steadygaze.properties import measure_of
from steadygaze.properties.measures.measure import LABEL_KEPT, REPEATED, REWORDED, SUBSTITUTIONS
from steadygaze.results.note import NoteCode, note
from steadygaze.results.row import MeasureKey, Row

PERTURBED = frozenset({*REWORDED, *SUBSTITUTIONS, *LABEL_KEPT})


def with_query_noise(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows with extended intervals, if the model is noisy."""
    rows = tuple(rows)
    repeated = {(row.key.measure, row.settings.get("explainer")): row for row in rows if row.key.probe == REPEATED}
    return tuple(_extended(row, repeated.get((row.key.measure, row.settings.get("explainer")))) for row in rows)


def _extended(row: Row, repeated: Row | None) -> Row:
    identical = measure_of(row.measure).identical
    if repeated is None or repeated.interval is None or row.interval is None or identical is None:
        return row
    if row.key.probe not in PERTURBED:
        return row
    (low, high), (worst_low, worst_high) = row.interval, repeated.interval
    if identical > 0:
        shift = identical - worst_low
        interval = low, min(identical, high + shift)
    else:
        shift = worst_high - identical
        interval = max(identical, low - shift), high
    remark = note(NoteCode.QUERY_NOISE, measure=str(MeasureKey(row.key.measure, REPEATED)), shift=shift, n=repeated.n)
    return replace(row, interval=interval, notes=(*row.notes, remark))
