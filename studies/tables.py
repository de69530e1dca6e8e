"""Functions that read the records of studies and write their Markdown tables."""

import gzip
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from steadygaze.results.intervals import t_interval

Records = list[dict[str, Any]]
RECORDS = Path(__file__).parent / "records"
"""Records of all studies and timings."""


def read_records(paths: Iterable[str | Path]) -> Records:
    """Records of folders, and of files with one record a line (also .gz).  Failed jobs are printed and left out."""
    records: Records = []
    for path in map(Path, paths):
        records += folder_records(path) if path.is_dir() else [json.loads(line) for line in _text(path).splitlines()]
    for record in records:
        if "error" in record:
            print("failed:", {k: v for k, v in record.items() if k != "error"}, file=sys.stderr)
    return [record for record in records if "error" not in record]


def folder_records(folder: Path) -> Records:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def _text(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text(encoding="utf-8")


def values(runs: Records, measure: str, when: str = "chosen", split: str = "test") -> list[float]:
    """The measure of every run that has it, in %.  `when`: chosen (the selected epoch) or last."""
    return [100 * run[when][split][measure] for run in runs if measure in run.get(when, {}).get(split, {})]


def mean_and_deviation(numbers: Sequence[float], digits: int = 1) -> str:
    """The mean ± the standard deviation.

    >>> mean_and_deviation([100.0, 100.0]), mean_and_deviation([1.26]), mean_and_deviation([])
    ('100 ± 0.0', '1.3', '')
    """
    if not numbers:
        return ""
    average = "100" if digits == 1 and f"{mean(numbers):.1f}" == "100.0" else f"{mean(numbers):.{digits}f}"
    return average + (f" ± {stdev(numbers):.{digits}f}" if len(numbers) > 1 else "")


def mean_and_half(numbers: Sequence[float]) -> tuple[float, float]:
    """The mean, and half the width of its 95 % t interval."""
    low, high = t_interval(numbers)
    return mean(numbers), (high - low) / 2


def with_deviation(names: Iterable[str]) -> list[str]:
    """Columns of `deviation_cells` in a CSV file."""
    return [column for name in names for column in (name, f"{name}, SD")]


def deviation_cells(numbers: Sequence[float], digits: int = 1) -> list[str]:
    """The mean and the standard deviation; cells are empty without them.

    >>> deviation_cells([1.0, 3.0]), deviation_cells([1.26]), deviation_cells([])
    (['2.0', '1.4'], ['1.3', ''], ['', ''])
    """
    cells = [f"{mean(numbers):.{digits}f}"] if numbers else [""]
    return [*cells, f"{stdev(numbers):.{digits}f}" if len(numbers) > 1 else ""]


def summary_heading(name: str) -> list[str]:
    """Columns of `summary` in a CSV file."""
    return [name, f"{name}, ±", f"{name}, lowest", f"{name}, highest"]


def summary(numbers: Sequence[float], digits: int = 3) -> list[str]:
    """The mean, half the width of its 95 % t interval, the lowest and the highest; cells are empty without them.

    >>> summary([0.1, 0.3]), summary([0.5]), summary([])
    (['0.200', '1.271', '0.100', '0.300'], ['0.500', '', '', ''], ['', '', '', ''])
    """
    if len(numbers) < 2:
        return [*(f"{number:.{digits}f}" for number in numbers), *[""] * (4 - len(numbers))]
    return [f"{number:.{digits}f}" for number in (*mean_and_half(numbers), min(numbers), max(numbers))]


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
