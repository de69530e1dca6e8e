"""Numbers of the stability study that decide claims: comparisons over three data sets, from its records."""

from collections.abc import Callable, Iterable, Iterator

from studies.numbers import Number
from studies.papers.data import STABILITY
from studies.stability.comparison import Rows, compare_with_start, compare_with_vanilla, rows_of
from studies.stability.plan import MAIN_SETTINGS
from studies.stability.records import study_records
from studies.stability.statistics import Estimate, Values, difference, paired, paired_difference, ratio

Statistic = Callable[[Values, Values], Estimate]
AGAINST_ALL: dict[str, Statistic] = {"ratio": ratio, "difference": difference}
"""Compared with all vanilla models of a setting."""
AGAINST_START: dict[str, Statistic] = {"paired": paired, "paired_difference": paired_difference}
"""Compared with the vanilla models that a model starts from."""


def numbers(names: Iterable[str]) -> Iterator[Number]:
    """STATISTIC.ROW.MEASURE, and vanilla.MEASURE: the mean of vanilla on SST-2."""
    rows = rows_of(study_records())
    for name in sorted(names):
        statistic, _, rest = name.partition(".")
        if statistic == "vanilla":
            models = rows["vanilla"]["sst2-bilstm"].values()
            yield STABILITY.mean(name, [record[rest] for record in models])
        else:
            row, _, measure = rest.partition(".")
            estimate = _estimate(rows, statistic, row, measure)
            seeds = min(len(rows[row][setting]) for setting in MAIN_SETTINGS if setting in rows[row])
            yield STABILITY.number(name, estimate.value, (estimate.low, estimate.high), seeds)


def _estimate(rows: Rows, statistic: str, row: str, measure: str) -> Estimate:
    if statistic in AGAINST_START:
        estimate = compare_with_start(AGAINST_START[statistic], rows, row, measure, MAIN_SETTINGS)
    else:
        estimate = compare_with_vanilla(AGAINST_ALL[statistic], rows, row, measure, MAIN_SETTINGS)
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return estimate
