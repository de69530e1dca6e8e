"""Accuracies on the selected words by model, and counts of warnings: tables of docs/results/shortcuts.md."""

from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from steadygaze.results.leakage_warnings import BLACK_BOX_GAP, GAP, MARGIN
from studies.independent_reader.plan import MAIN_ROWS, RELEASED_ROWS, K
from studies.tables import RECORDS, read_records

READER = "independent-reader-accuracy"
COLUMNS = {
    "fidelity": "own approximator",
    "post-hoc-accuracy": "black box",
    READER: "independent reader",
    f"{READER}/by-class=0": "… class 0",
    f"{READER}/by-class=1": "… class 1",
    f"{READER}/random-words": "… random words",
    f"{READER}/no-words": "… no words",
    "leakage-gap": "gap to the reader",
    "leakage-gap/black-box": "gap to the black box",
    "opinion-share": "opinion words",
    "unseen-share": "unseen words",
}
GROUPS = {
    "leaking: conditioned on the prediction, plain": ("l2x-y",),
    "leaking: mask-neutral, or padding can be selected": RELEASED_ROWS,
    "not leaking: fitted": ("pretrained-y", "l2x"),
    "not leaking by construction: no approximator": ("leave-one-out", "truth"),
}
ORDER = (*MAIN_ROWS, "leave-one-out", "truth", *RELEASED_ROWS)


def mean_and_range(values: list[float]) -> str:
    """The mean, and the lowest and the highest seed."""
    if not values:
        return ""
    return f"{mean(values):.3f} ({min(values):.3f}–{max(values):.3f})" if len(values) > 1 else f"{values[0]:.3f}"


def table(records: list[Path] = [RECORDS / "independent_reader.jsonl"]) -> str:  # noqa: B006
    cells: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    trained, lines = read_records(records), list[str]()
    for record in trained:
        cells[record["corpus"]][record["row"]].append(record)
    for corpus, rows in cells.items():
        lines.append(f"\n**{corpus}**, k = {K[corpus]}\n")
        lines.append("| explainer | seeds | " + " | ".join(COLUMNS.values()) + " | warned |")
        lines.append("|---" * (len(COLUMNS) + 3) + "|")
        for row in sorted(rows, key=ORDER.index):
            numbers = [mean_and_range([run[name] for run in rows[row] if name in run]) for name in COLUMNS]
            warned = sum(run["leaks"] for run in rows[row])
            lines.append(f"| {row} | {len(rows[row])} | " + " | ".join(numbers) + f" | {warned} of {len(rows[row])} |")
    lines.append(
        "\n| runs | number | warned (both gaps) | gap to black box alone | gap to reader alone |\n|---|---|---|---|---|"
    )
    for name, which in GROUPS.items():
        runs = [run for run in trained if run["row"] in which]
        alone = [sum(run[f"{gap} low"] > MARGIN for run in runs) for gap in (BLACK_BOX_GAP, GAP)]
        lines.append(f"| {name} | {len(runs)} | {sum(run['leaks'] for run in runs)} | {alone[0]} | {alone[1]} |")
    return "\n".join(lines)
