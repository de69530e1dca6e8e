"""The tables of docs/results/stability.md, from the records of bench/stability.py.

    cat runs/stability/records/*.json > records.jsonl
    python bench/stability_table.py records.jsonl > tables.md

docs/results/stability-tables.md is that with a heading and notes before it.

A ratio is the geometric mean over runs of (technique / vanilla of the same setting and seed), a consensus student being
paired with the vanilla model of its first teacher's seed; in brackets its 95 % bootstrap interval over runs, and how
many runs are better.  Runs of one setting share their data: they are not independent draws.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

TEACHERS = 5
RATIOS = {
    "JSD noise": "jensen-shannon/noise",
    "JSD FGM": "jensen-shannon/worst-label",
    "JSD PGD": "jensen-shannon/worst-attention",
    "JSD 1 syn": "jensen-shannon/1-synonym",
    "JSD 3 syn": "jensen-shannon/3-synonyms",
    "JSD 3 unseen": "jensen-shannon/3-neighbours",
    "Δp FGM": "prediction-change/worst-label",
    "Δp 3 syn": "prediction-change/3-synonyms",
    "flips 3 syn": "flipped/3-synonyms",
    "comp": "comprehensiveness",
}
DIFFERENCES = {"F1": "macro-f1", "suff": "sufficiency", "Pearson": "pearson/gradient", "evenness": "evenness"}
ABSOLUTE = {
    "F1": "macro-f1",
    "confidence": "confidence",
    "evenness": "evenness",
    "from uniform": "distance-to-uniform",
    "top-7 kept": "overlap",
    **RATIOS,
    "suff": "sufficiency",
    "Pearson": "pearson/gradient",
}
MORE_IS_BETTER = {"F1", "comp", "Pearson"}

Record = dict[str, Any]


def rows_of(records: Iterable[Record]) -> dict[str, dict[tuple[str, int], Record]]:
    """row -> (setting, seed) -> record, of the test phase."""
    found: dict[str, dict[tuple[str, int], Record]] = defaultdict(dict)
    for record in records:
        if record["phase"] == "test" and "error" not in record:
            found[record["row"]][record["setting"], record["seed"]] = record
    return found


def pairs(
    row: str, runs: dict[tuple[str, int], Record], plain: dict[tuple[str, int], Record]
) -> list[tuple[Record, Record]]:
    """Each run with the vanilla run it is held against."""
    step = TEACHERS if row.startswith("consensus") else 1
    return [
        (r, plain[s, seed * step]) for (s, seed), r in sorted(runs.items()) if (s, seed * step) in plain and seed < 5
    ]


def interval(values: np.ndarray) -> tuple[float, float]:
    draws = np.random.default_rng(0).choice(values, (4000, len(values))).mean(1)
    return tuple(np.quantile(draws, [0.025, 0.975]))


def ratio(found: list[tuple[Record, Record]], key: str, more: bool) -> str:
    logs = np.array([math.log(max(a[key], 1e-12) / b[key]) for a, b in found])
    low, high = interval(logs)
    better = int((logs > 0).sum() if more else (logs < 0).sum())
    return f"{math.exp(logs.mean()):.2f} [{math.exp(low):.2f}, {math.exp(high):.2f}] {better}/{len(logs)}"


def difference(found: list[tuple[Record, Record]], key: str) -> str:
    apart = np.array([a[key] - b[key] for a, b in found])
    low, high = interval(apart)
    return f"{apart.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def table(header: list[str], lines: Iterable[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *lines]) + "\n"


def against_vanilla(rows: dict[str, dict[tuple[str, int], Record]], settings: set[str]) -> str:
    lines = []
    for row, runs in rows.items():
        here = {key: record for key, record in runs.items() if key[0] in settings}
        found = pairs(row, here, rows["vanilla"])
        if row == "vanilla" or not found:
            continue
        cells = [difference(found, key) for key in DIFFERENCES.values()]
        cells += [ratio(found, key, name in MORE_IS_BETTER) for name, key in RATIOS.items()]
        lines.append([row, *cells])
    return table(["technique", *(f"{name} (difference)" for name in DIFFERENCES), *RATIOS], lines)


def absolute(rows: dict[str, dict[tuple[str, int], Record]], setting: str) -> str:
    lines = []
    for row, runs in rows.items():
        here = [record for (s, _), record in runs.items() if s == setting]
        if here:
            cells = [_mean([r[key] for r in here if r[key] is not None]) for key in ABSOLUTE.values()]
            collapsed = sum(r["collapsed"] for r in here)
            lines.append([f"{row} ({len(here)})", *cells, f"{collapsed}/{len(here)}"])
    return table(["technique (models)", *ABSOLUTE, "collapsed"], lines)


def seeds(records: list[Record]) -> str:
    found = [r for r in records if r["phase"] == "seeds" and "error" not in r]
    plain = {r["setting"]: r for r in found if r["row"] == "vanilla"}
    lines = []
    for r in found:
        base = plain.get(r["setting"])
        keys = ("jensen-shannon/seeds", "prediction-change/seeds")
        ratios = [f"{r[k] / base[k]:.2f}" if base else "" for k in keys]
        lines.append([r["setting"], r["row"], str(r["models"]), *(f"{r[k]:.4f}" for k in keys), *ratios])
    return table(["setting", "technique", "models", "JSD", "Δp", "JSD / vanilla's", "Δp / vanilla's"], sorted(lines))


def chosen(rows: dict[str, dict[tuple[str, int], Record]]) -> str:
    lines = []
    for row, runs in rows.items():
        used: dict[str, set[str]] = defaultdict(set)
        for (setting, _), record in runs.items():
            used[json.dumps(record["config"])].add(setting)
        lines += [[row, config, ", ".join(sorted(where))] for config, where in used.items()]
    return table(["technique", "settings (others as by default)", "where"], lines)


def _mean(values: list[float]) -> str:
    return "" if not values else f"{np.mean(values):.4f} ± {np.std(values):.4f}"


def main() -> None:
    records = [json.loads(line) for file in sys.argv[1:] for line in Path(file).read_text().splitlines()]
    records = list({record["id"]: record for record in records}.values())
    rows = rows_of(records)
    settings = {s for runs in rows.values() for s, _ in runs}
    words = {s for s in settings if "minilm" not in s}
    print("## Against vanilla, all word encoders\n\n" + against_vanilla(rows, words))
    for setting in sorted(settings):
        print(f"## {setting}: against vanilla\n\n" + against_vanilla(rows, {setting}))
        print(f"### {setting}: means ± standard deviation over models\n\n" + absolute(rows, setting))
    print("## Between seeds\n\n" + seeds(records))
    print("## Settings\n\n" + chosen(rows))


if __name__ == "__main__":
    main()
