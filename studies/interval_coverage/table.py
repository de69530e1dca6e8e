"""The table of docs/how-to/compare-techniques.md."""

from pathlib import Path

from studies.interval_coverage.run import SEEDS
from studies.numbers import Number, Origin
from studies.tables import RECORDS, Records, markdown, read_records

FILE = RECORDS / "interval_coverage.jsonl"
ORIGIN = Origin("a8488b48", "python -m studies run interval_coverage --out DIR")
SHOWN = {"mean": "means over texts", "texts × seeds": "macro-F1", "its difference": "difference of macro-F1"}
"""The intervals of `compare`, and their names in the documentation."""


def shares(records: Records, seeds: int, kind: str) -> tuple[float, float]:
    """The lowest and the highest coverage of the simulations with so many seeds."""
    several = [record["coverage"][kind] for record in records if record["seeds"] == seeds]
    return min(several), max(several)


def numbers() -> list[Number]:
    records = read_records([FILE])
    return [
        ORIGIN.number(f"{end}.{kind.replace(' ', '-')}.{seeds}-seeds", share)
        for seeds in SEEDS
        for kind in SHOWN
        for end, share in zip(("lowest", "highest"), shares(records, seeds, kind), strict=True)
    ]


def table(records: list[Path] = [FILE]) -> str:  # noqa: B006
    """The lowest and the highest coverage of the simulations, in %, by number of seeds."""
    runs = read_records(records)
    lines = [["seeds", *SHOWN.values()]]
    for seeds in SEEDS:
        ends = [shares(runs, seeds, kind) for kind in SHOWN]
        lines.append([str(seeds), *(f"{100 * low:.0f} to {100 * high:.0f} %" for low, high in ends)])
    return markdown(lines)
