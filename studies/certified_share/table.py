"""Certified shares of rows, means over seeds: the tables of docs/how-to/certify.md."""

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from studies.certified_share.run import MARGIN
from studies.tables import RECORDS, markdown, read_records


def selected_rows(rows: dict[tuple[str, str], list[dict[str, Any]]]) -> set[tuple[str, str]]:
    """For each encoder, the row that validation texts select."""

    def validation(key: tuple[str, str], name: str) -> float:
        return float(mean(record["validation"][name] for record in rows[key]))

    selected = set()
    for encoder in {encoder for encoder, _ in rows}:
        floor = validation((encoder, "vanilla, no groups"), "macro-f1") - MARGIN
        keys = [key for key in rows if key[0] == encoder and validation(key, "macro-f1") >= floor]
        selected.add(max(keys, key=lambda key: validation(key, "certified")))
    return selected


def table(records: list[Path] = [RECORDS / "certified_share.jsonl"]) -> str:  # noqa: B006
    """Means over seeds, on test texts if the column does not name another split."""
    rows = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for record in read_records(records):
        rows[record["encoder"], record["row"]].append(record)
    measures = ["certified", "certified, not vacuous", "certified and right", "can change", "top-5"]
    lines = [["row", "seeds", "macro-F1", "certified on validation", *measures]]
    for key, runs in rows.items():
        percent = [f"{100 * mean(r['test'][name] for r in runs):.1f} %" for name in measures]
        f1 = f"{mean(r['test']['macro-f1'] for r in runs):.3f}"
        validation = f"{100 * mean(r['validation']['certified'] for r in runs):.1f} %"
        row = f"**{key[1]}**" if key in selected_rows(rows) else key[1]
        lines.append([row, str(len(runs)), f1, validation, *percent])
    return markdown(lines)
