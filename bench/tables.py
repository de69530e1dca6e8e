"""Tables of records that hold what was measured at the chosen epoch and at the last, on validation and test texts."""

import re
from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

Records = list[dict[str, Any]]


def values(those: Records, measure: str, when: str = "chosen", split: str = "test") -> list[float]:
    """In %, of each seed that has it."""
    return [100 * record[when][split][measure] for record in those if measure in record.get(when, {}).get(split, {})]


def shown(those: Records, measure: str, when: str = "chosen", split: str = "test") -> str:
    """The mean, and how far seeds differ."""
    return mean_and_deviation(values(those, measure, when, split))


def mean_and_deviation(numbers: Sequence[float], digits: int = 1) -> str:
    """The mean ± the standard deviation.

    >>> mean_and_deviation([100.0, 100.0]), mean_and_deviation([1.26]), mean_and_deviation([])
    ('100 ± 0.0', '1.3', '')
    """
    if not numbers:
        return ""
    shown = "100" if digits == 1 and f"{mean(numbers):.1f}" == "100.0" else f"{mean(numbers):.{digits}f}"
    return shown + (f" ± {stdev(numbers):.{digits}f}" if len(numbers) > 1 else "")


def line(cells: Iterable[str]) -> None:
    print("| " + " | ".join(cells) + " |")


def head(*names: str) -> None:
    line(names)
    line("---" for _ in names)


def markdown(table: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is the heading."""
    heading, *rows = ("| " + " | ".join(cells) + " |" for cells in table)
    return "\n".join([heading, "|---" * len(table[0]) + "|", *rows]).replace("|  |", "| |").replace("|  |", "| |")


def minus_signs(page: str) -> str:
    """Negative numbers with a minus sign instead of a hyphen; zero without a sign.

    >>> minus_signs("| -0.012 [-0.020, -0.000] | 1e-3 |")
    '| −0.012 [−0.020, 0.000] | 1e-3 |'
    """
    page = re.sub(r"(?<=[ |(\[*])-(?=0(\.0+)?(?![\d.]))", "", page)
    return re.sub(r"(?<=[ |(\[*])-(?=\d)", "−", page)
