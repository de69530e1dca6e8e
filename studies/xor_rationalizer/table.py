"""Accuracies and counts of warnings of rationalizers: the table of docs/concepts/leakage.md."""

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from studies.tables import RECORDS, markdown, read_records


def table(records: list[Path] = [RECORDS / "xor_rationalizer.jsonl"]) -> str:  # noqa: B006
    """Means over seeds, and counts of warnings."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in read_records(records):
        rows[record["row"]].append(record)
    lines = [["row", "n", "accuracy", "reader", "random", "warned", "audit", "faithful: yes", "cost"]]
    for row, runs in rows.items():
        scores = [f"{mean(run[name] for run in runs):.3f}" for name in ("accuracy", "reader", "random")]
        warned = [f"{sum(run[name] for run in runs)} of {len(runs)}" for name in ("warned", "audit warned")]
        faithful = sum(run["faithfulness"] == "yes" for run in runs)
        cost = mean(run["reader seconds"] / run["fit seconds"] for run in runs)
        lines.append([row, str(len(runs)), *scores, *warned, str(faithful), f"{cost:.0%}"])
    return markdown(lines)
