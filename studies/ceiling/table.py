"""The share of the exact best order of words that known orders reach, by model."""

from pathlib import Path

from studies.numbers import Number, Origin
from studies.tables import RECORDS, Records, markdown, read_records

FILE = RECORDS / "ceiling.jsonl"
ORIGIN = Origin("13a2361b", "python -m studies run ceiling --out OUT")
KNOWN = ("good orders", "greedy", "beam")
ROWS = {"comprehensiveness/relative": "removed", "sufficiency/relative": "alone"}


def reach(record: dict[str, dict[str, dict[str, float]]], name: str, row: str) -> float:
    """1: the exact best order; 0: the mean of all orders."""
    known, exact, shuffled = (record["means"][key][row] for key in (name, "exact", "shuffled"))
    return (known - shuffled) / (exact - shuffled)


def numbers() -> list[Number]:
    """The mean, the median and the lowest share of the models; equal models count alike."""
    records, result = read_records([FILE]), []
    for name in KNOWN:
        for row, short in ROWS.items():
            shares = sorted(reach(record, name, row) for record in records)
            prefix = f"{name.replace(' ', '-')}.{short}"
            result.append(ORIGIN.number(f"{prefix}.mean", sum(shares) / len(shares), n=len(shares)))
            result.append(ORIGIN.number(f"{prefix}.median", shares[len(shares) // 2], n=len(shares)))
            result.append(ORIGIN.number(f"{prefix}.lowest", shares[0], n=len(shares)))
    return [*result, ORIGIN.number("texts", sum(record["n"] for record in records))]


def table(records: list[Path] = [FILE]) -> str:  # noqa: B006
    """By model: the share of the exact best order that is reached, by removing and by keeping alone."""
    runs: Records = read_records(records)
    lines = [["model", "texts", *(f"{name}, {short}" for name in KNOWN for short in ROWS.values())]]
    for record in runs:
        shares = [f"{reach(record, name, row):.2f}" for name in KNOWN for row in ROWS]
        lines.append([record["model"], str(record["n"]), *shares])
    return markdown(lines)
