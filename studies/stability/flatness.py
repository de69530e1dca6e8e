"""How far vanilla attention shifts that is as flat as a technique's: its scores are divided after training."""

from statistics import mean

import numpy as np

from studies.stability.comparison import Rows, compare_with_start, compare_with_vanilla, values
from studies.stability.plan import STARTS_FROM_VANILLA, TEMPERATURES
from studies.stability.statistics import difference, paired, paired_difference

ENTROPY = "normalized-entropy"


def tempered_log_ratio(rows: Rows, row: str, setting: str, key: str) -> float:
    """ln of the ratio to vanilla, interpolated at the row's normalized entropy between temperatures 1, 1.5, 2 and 3."""
    own = {setting: {seed: rows["vanilla"][setting][seed] for seed in rows["tempered-1.5"][setting]}}
    entropies, logs = [0.0], [0.0]
    for t in TEMPERATURES:
        runs = rows[f"tempered-{t}"]
        (gain, flat), (plain, start) = (
            (_values(part, ENTROPY, setting), _values(part, key, setting)) for part in (runs, own)
        )
        entropies.append(mean(gain) - mean(plain))
        logs.append(float(np.log(paired({setting: flat}, {setting: start}).value)))
    return float(np.interp(_entropy_difference(rows, row, setting), entropies, logs))


def _entropy_difference(rows: Rows, row: str, setting: str) -> float:
    """Difference in normalized entropy from vanilla."""
    if row.startswith(STARTS_FROM_VANILLA):
        estimate = compare_with_start(paired_difference, rows, row, ENTROPY, [setting])
    else:
        estimate = compare_with_vanilla(difference, rows, row, ENTROPY, [setting])
    return estimate.value if estimate else 0.0


def _values(runs: dict[str, dict[int, dict[str, float]]], key: str, setting: str) -> list[float]:
    numbers = values(runs, key, [setting])
    assert numbers is not None, f"the records have no {key}"
    return list(numbers[setting])
