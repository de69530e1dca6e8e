"""Accuracy and coverage of three ways to read long reviews: the first table of docs/results/long-texts.md."""

from collections import defaultdict
from pathlib import Path

from studies.tables import RECORDS, mean_and_deviation, read_records


def table(records: list[Path] = [RECORDS / "long_texts.jsonl"]) -> str:  # noqa: B006
    """One row per kind of reading: mean ± standard deviation over seeds, in %."""
    rows = defaultdict(list)
    for record in read_records(records):
        rows[record["row"]].append(record)
    columns = ("accuracy", "accuracy, long", "accuracy, short", "coverage", "coverage, long", "fully covered")
    lines = [f"| reading | seeds | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    for row in ("truncated256", "truncated509", "windows"):
        cells = [mean_and_deviation([100 * record[column] for record in rows[row]]) for column in columns]
        lines.append(f"| {row} | {len(rows[row])} | {' | '.join(cells)} |")
    return "\n".join(lines)
