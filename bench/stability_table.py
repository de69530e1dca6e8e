"""docs/results/stability-tables.md, from the records of bench/stability.py.

    python bench/stability_table.py > docs/results/stability-tables.md

studies/stability/statistics.py defines ratios, differences and intervals.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean, mean
from typing import NamedTuple

from steadygaze.study.seed_statistics import holm
from studies.stability.comparison import (  # noqa: F401  # some for bench/published_page.py
    FIRST_SEEDS,
    PROBES,
    Rows,
    compare_with_start,
    compare_with_vanilla,
    rows_of,
    values,
    with_first_seeds,
)
from studies.stability.plan import GRID, MAIN_SETTINGS, SELECTION_PROBES, STARTS_FROM_VANILLA
from studies.stability.records import SELECTION, STUDY, Record, read
from studies.stability.statistics import Estimate, difference, paired, paired_difference, ratio
from studies.tables import mean_and_deviation, minus_signs

SHIFTS = {f"JSD {name}": f"jensen-shannon/{probe}" for name, probe in PROBES.items()}
MODEL_RATIOS = {
    "Δp FGM": "prediction-change/fgm-label",
    "Δp 3 syn": "prediction-change/3-synonyms",
    "Δp 3 held-out": "prediction-change/3-held-out",
    "flips 3 syn": "label-flip/3-synonyms",
    "flips 3 held-out": "label-flip/3-held-out",
    "comp": "comprehensiveness",
}
DIFFERENCES = {
    "F1": "macro-f1",
    "suff": "sufficiency",
    "Pearson": "pearson/gradient",
    "normalized entropy": "normalized-entropy",
}
OVERLAPS = {f"top-7 {name}": f"top-k-overlap/{probe}" for name, probe in PROBES.items()}
ORDERS = {f"τ {name}": f"kendall/{probe}" for name, probe in PROBES.items()}
MEASURES = {
    "F1": "macro-f1",
    "confidence": "confidence",
    "normalized entropy": "normalized-entropy",
    "distance to uniform": "distance-to-uniform",
    "top-7 of teachers": "overlap",
    **SHIFTS,
    **MODEL_RATIOS,
    **OVERLAPS,
    **ORDERS,
    "suff": "sufficiency",
    "Pearson": "pearson/gradient",
}
NOTES = """# Stability: all tables

This appendix has every number behind [Stability of attention](stability.md). Read that page for the finding, its size,
the recommendation and the caveats. `bench/stability_table.py` makes this page.

- Records: `studies/records/{file}`, {jobs} of them.
- Commit of the study: `{commit}`, steadygaze {version}, torch {torch}, device {device}.
- "Three data sets" leaves out hate, which has its own tables. The ablations were run on SST-2 alone.
- Configurations were selected with commit `{selection}` (`studies/records/{selection_file}`), and not again.
- JSD: Jensen–Shannon divergence between original and perturbed attention, in nats.
- Δp: total variation between predictions. comp, suff: comprehensiveness and sufficiency.
- top-7: overlap of the seven top-weighted words. τ: Kendall's τ_b between the two orders of the words.
- Ratios divide by the mean of all vanilla seeds of a setting, for every technique. Differences subtract it.
- Several settings: the geometric mean of their ratios, the mean of their differences.
- In brackets: 95 % t intervals over the seeds of technique and vanilla (Welch), on these data sets.
- `*`: differs from vanilla, p < 0.05 after Holm's correction for all comparisons of the table.
- Each technique has 5 seeds per setting; `vanilla`, `vanilla-groups` and `word-at` (ε = 0.2) have 25.
- `-groups`: the model reads the synonyms of a group as one word. The groups are of the training table.
- `{first}` divides five vanilla models by the mean of all 25: a row of seeds 0–4 that equals it shows no effect.
- Models that start from a vanilla model are also divided by that model.
- Rows with the configuration of another row are left out: {same}.
- The grid of `anchored` had a duplicate: `noise` = 2 is the default. Its 4 runs are in the selection.
"""

SIGNIFICANT = 0.05


class Cell(NamedTuple):
    """A comparison in a table."""

    estimate: Estimate | None
    form: str


def table(header: Sequence[str], lines: Iterable[Sequence[str | Cell]]) -> str:
    """Significant comparisons have a star: p < 0.05 after Holm's correction for all comparisons of the table."""
    rows = list(lines)
    family = [cell.estimate.p for row in rows for cell in row if isinstance(cell, Cell) and cell.estimate]
    corrected = iter(holm(family))
    marked = [[cell if isinstance(cell, str) else _marked(cell, corrected) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *marked])


def _marked(cell: Cell, corrected: Iterator[float]) -> str:
    text = format_estimate(*cell)
    return f"{text}*" if cell.estimate and next(corrected) < SIGNIFICANT else text


def vanilla_table(rows: Rows, settings: list[str], ratios: dict[str, str], differences: dict[str, str]) -> str:
    lines = []
    for row, runs in rows.items():
        present = [s for s in settings if s in runs]
        if row == "vanilla" or not present:
            continue
        cells: list[str | Cell] = [difference_cell(rows, row, key, present) for key in differences.values()]
        cells += [ratio_cell(rows, row, key, present) for key in ratios.values()]
        lines.append([row, str(len(present)), *cells])
    header = ["technique", "settings", *(f"{name} (difference)" for name in differences), *ratios]
    return table(header, lines)


def format_estimate(estimate: Estimate | None, form: str) -> str:
    if estimate is None:
        return ""
    value, low, high = (format_number(number, form) for number in estimate[:3])
    return value if low == high == "nan" else f"{value} [{low}, {high}]"


def format_number(number: float, form: str = "+.3f") -> str:
    """The number; zero has no sign."""
    text = format(number, form)
    return text if float(text) else text.lstrip("+-")


def ratio_cell(rows: Rows, row: str, key: str, settings: list[str]) -> Cell:
    return Cell(compare_with_vanilla(ratio, rows, row, key, settings), ".2f")


def difference_cell(rows: Rows, row: str, key: str, settings: list[str]) -> Cell:
    return Cell(compare_with_vanilla(difference, rows, row, key, settings), "+.3f")


def start_ratio_cell(rows: Rows, row: str, key: str, settings: list[str], form: str = ".2f") -> Cell:
    return Cell(compare_with_start(paired, rows, row, key, settings), form)


def start_difference_cell(rows: Rows, row: str, key: str, settings: list[str]) -> Cell:
    return Cell(compare_with_start(paired_difference, rows, row, key, settings), "+.3f")


def start_table(rows: Rows, settings: list[str], ratios: dict[str, str], differences: dict[str, str]) -> str:
    """Each model against the vanilla model it starts from: effects of vanilla seeds cancel."""
    lines = []
    for row, runs in rows.items():
        if row.startswith(STARTS_FROM_VANILLA) and (present := [s for s in settings if s in runs]):
            cells = [start_difference_cell(rows, row, key, present) for key in differences.values()]
            cells += [start_ratio_cell(rows, row, key, present) for key in ratios.values()]
            lines.append([row, str(len(present)), *cells])
    return table(["technique", "settings", *(f"{name} (difference)" for name in differences), *ratios], lines)


def setting_table(rows: Rows, setting: str) -> str:
    lines = []
    for row, runs in rows.items():
        if present := list(runs.get(setting, {}).values()):
            numbers = [[r[key] for r in present if r.get(key) is not None] for key in MEASURES.values()]
            cells = [mean_and_deviation(column, 4) for column in numbers]
            collapsed = sum(r["collapsed"] for r in present)
            lines.append([f"{row} ({len(present)})", *cells, f"{collapsed}/{len(present)}"])
    return table(["technique (models)", *MEASURES, "collapsed"], lines)


def seed_table(records: list[Record]) -> str:
    runs = [r for r in records if r["phase"] == "seeds"]
    plain = {r["setting"]: r for r in runs if r["row"] == "vanilla"}
    keys = ("jensen-shannon/seeds", "top-k-overlap/seeds", "prediction-change/seeds")
    lines = []
    for r in runs:
        base = plain[r["setting"]]
        ratios = [f"{r[k] / base[k]:.2f}" for k in (keys[0], keys[2])]
        lines.append([r["setting"], r["row"], str(r["models"]), *(f"{r[k]:.4f}" for k in keys), *ratios])
    header = ["setting", "technique", "models", "JSD", "top-7 overlap", "Δp", "JSD / vanilla's", "Δp / vanilla's"]
    return table(header, sorted(lines))


def selection_table(records: list[Record]) -> str:
    """Every configuration of the grids on the validation splits."""
    configurations: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for r in records:
        if r["phase"] == "select":
            configurations[r["row"], json.dumps(r.get("config", {}))].append(r)
    lines = []
    for row in ("vanilla", *GRID):
        for (name, config), runs in configurations.items():
            if name == row:
                shift = geometric_mean(r[f"jensen-shannon/{probe}"] for r in runs for probe in SELECTION_PROBES)
                lines.append([row, config, str(len(runs)), f"{mean(r['macro-f1'] for r in runs):.4f}", f"{shift:.5f}"])
    return table(["technique", "configuration", "models", "macro-F1", "shift (JSD, geometric mean)"], lines)


def configuration_table(rows: Rows) -> str:
    lines = []
    for row, runs in rows.items():
        used: dict[str, set[str]] = defaultdict(set)
        for setting, records in runs.items():
            for record in records.values():
                used[json.dumps(record.get("config", {}))].add(setting)
        lines += [[row, config, ", ".join(sorted(where))] for config, where in used.items()]
    return table(["technique", "configuration (others by default)", "settings"], lines)


def substitution_table(rows: Rows) -> str:
    """Texts and substitutions of the word probes, and shares with function words and negations."""
    lines = []
    for setting, runs in rows["vanilla"].items():
        first = runs[min(runs)]
        for probe in ("1-synonym", "3-synonyms", "3-held-out", "1-wordnet"):
            skipped = first.get("skipped", {}).get(f"jensen-shannon/{probe}", 0)
            shares = [f"{first[f'{kind}/{probe}']:.4f}" for kind in ("function-words", "negations")]
            lines.append(
                [
                    setting,
                    probe,
                    f"{first['n'] - skipped} of {first['n']}",
                    f"{first[f'words-substituted/{probe}']:.2f}",
                    *shares,
                ]
            )
    header = ["setting", "probe", "texts measured", "substitutions per text", "with a function word", "with a negation"]
    return table(header, lines)


def header(file: Path) -> Record:
    """The fields that all records share."""
    first: Record = json.loads(gzip.decompress(file.read_bytes()).partition(b"\n")[0])
    return first


def page() -> str:
    (origin, records), (earlier, tried) = ((header(file), read(file)) for file in (STUDY, SELECTION))
    same = {r["row"]: r["same-as"].split(".")[2] for r in records if "same-as" in r}
    records = [record for record in records if record["row"] not in same]
    rows = rows_of(records)
    settings = list(rows["vanilla"])
    shown = with_first_seeds(rows)
    files = {"file": STUDY.name, "selection_file": SELECTION.name}
    equal = ", ".join(f"`{row}` as `{other}`" for row, other in sorted(same.items()))
    parts = [NOTES.format(selection=earlier["commit"], first=FIRST_SEEDS, same=equal, **files, **origin)]

    def compare(title: str, where: list[str]) -> None:
        ratios, orders = {**SHIFTS, **MODEL_RATIOS}, {**OVERLAPS, **ORDERS}
        own = "against the vanilla model it starts from"
        parts.append(f"## {title}, against vanilla\n\n" + vanilla_table(shown, where, ratios, DIFFERENCES))
        parts.append(f"### {title}: rank-based stability\n\n" + vanilla_table(shown, where, {}, orders))
        parts.append(f"### {title}: each model {own}\n\n" + start_table(rows, where, ratios, DIFFERENCES))
        parts.append(f"### {title}: rank-based stability, {own}\n\n" + start_table(rows, where, {}, orders))

    compare("Three data sets", MAIN_SETTINGS)
    for setting in settings:
        compare(setting, [setting])
        parts.append(f"### {setting}: means ± standard deviation over models\n\n" + setting_table(shown, setting))
    parts.append("## Between seeds\n\n" + seed_table(records))
    parts.append("## Word substitutions (vanilla, seed 0)\n\n" + substitution_table(rows))
    parts.append("## Selection on validation data (SST-2, Rotten Tomatoes)\n\n" + selection_table(tried))
    parts.append("## Selected configurations\n\n" + configuration_table(rows))
    return minus_signs("\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def main() -> None:
    print(page(), end="")


if __name__ == "__main__":
    main()
