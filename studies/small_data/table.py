"""Tables of docs/results/small-data.md from the records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from steadygaze.study.seed_statistics import holm
from studies.small_data.plan import CORPORA, DIFFERENCES, NAMES, OTHER_CORPORA
from studies.tables import RECORDS, markdown, mean_and_interval, minus_signs, read_records


def score_tables(records: list[dict[str, Any]]) -> str:
    """Markdown: mean macro-F1 of every row and cell, and the paired differences of our models from two regressions."""
    scores: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        scores[record["corpus"], record["size"]][record["row"]][record["seed"]] = record["macro-f1"]
    rows = [row for row in NAMES if any(row in values for values in scores.values())]
    pairs = [(row, base) for base in DIFFERENCES for row in ("default", "glove") if row in rows]
    means, differences = [], []
    names = CORPORA | OTHER_CORPORA
    for corpus, size in sorted(scores, key=lambda key: ([*names].index(key[0]), *key)):
        values, cell = scores[corpus, size], [names[corpus], f"{size:,}"]
        means.append(cell + [mean_and_interval([*values[row].values()]) for row in rows])
        differences.append([paired(values, *pair) for pair in pairs])
    tables = [markdown([["corpus", "texts", *(NAMES[row] for row in rows)], *means])]
    if pairs:
        heading = [f"{NAMES[row]} − {DIFFERENCES[base]}" for row, base in pairs]
        lines = [[*line[:2], *cells] for line, cells in zip(means, starred(differences), strict=True)]
        tables.append(minus_signs(markdown([["corpus", "texts", *heading], *lines])))
    return "\n\n".join(tables)


def starred(differences: Sequence[Sequence[Sequence[float]]]) -> list[list[str]]:
    """Means with 95 % t intervals; a star: p < 0.05 after Holm's correction for all differences of the table."""
    p = iter(holm([float(ttest_1samp(numbers, 0).pvalue) for row in differences for numbers in row]))
    return [[mean_and_interval(numbers, "+") + "*" * (next(p) < 0.05) for numbers in row] for row in differences]


def sizes_table(records: Iterable[dict[str, Any]]) -> str:
    """Markdown: mean macro-F1 and CPU time of both sizes of network and batch."""
    cells: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        cells[record["corpus"], record["size"]][record["row"]].append(record)
    lines = [["corpus", "texts", "seeds", NAMES["hidden-128"], "CPU time", NAMES["hidden-64"], "CPU time"]]
    for corpus, size in sorted(cells, key=lambda key: (key[1], [*CORPORA].index(key[0]))):
        runs = [cells[corpus, size][row] for row in ("hidden-128", "hidden-64")]
        means = [[f"{np.mean([run['macro-f1'] for run in row]):.3f}", _cpu_time(row)] for row in runs]
        lines.append([CORPORA[corpus], f"{size:,}", str(len(runs[0])), *means[0], *means[1]])
    return markdown(lines)


def _cpu_time(runs: Sequence[Mapping[str, Any]]) -> str:
    return f"{np.mean([run['cpu_seconds'] for run in runs]):.0f} s"


def paired(values: Mapping[str, Mapping[int, float]], row: str, base: str) -> list[float]:
    """By seed, what this row is above the other."""
    return [values[row][seed] - values[base][seed] for seed in values[row] if seed in values[base]]


def entropies(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Mean normalized entropy of the attention of each row."""
    by_row: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if "entropy" in record:
            by_row[record["row"]].append(record["entropy"])
    return {row: float(np.mean(values)) for row, values in by_row.items()}


def report(records: list[dict[str, Any]]) -> str:
    """The tables, and the entropies below them."""
    if {record["row"] for record in records} == {"hidden-128", "hidden-64"}:
        return sizes_table(records)
    lines = [f"normalized entropy of the attention, {NAMES[row]}: {v:.2f}" for row, v in entropies(records).items()]
    return "\n".join([score_tables(records), "", *lines])


def table(records: list[Path] = [RECORDS / "small_data.jsonl"]) -> str:  # noqa: B006
    """Records: files or folders."""
    return report(read_records(records))


def page_values() -> dict[str, Any]:
    """The tables and numbers of the page."""
    records, other = (read_records([RECORDS / f"small_data{part}.jsonl"]) for part in ("", "_other"))
    scores, differences = score_tables(records).split("\n\n")
    other_scores, other_differences = score_tables(other).split("\n\n")
    usual = [run for run in records if (run["corpus"], run["size"], run["row"]) == ("sst2", 200, "standard")]
    return {
        "scores": scores,
        "differences": differences,
        "other_scores": other_scores,
        "other_differences": other_differences,
        "sizes": sizes_table(read_records([RECORDS / "small_data_settings.jsonl"])),
        "entropy": entropies(records),
        "failed_fit": min(run["macro-f1"] for run in usual),
        "fits": len(records),
    }
