"""Numbers of docs/results/long-texts.md: accuracy and coverage of three readings, cost, overlap and memory."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from studies.numbers import Number, Origin
from studies.study import Data
from studies.tables import RECORDS, Records, deviation_cells, read_records, with_deviation

FILE = RECORDS / "long_texts.jsonl"
RUN = "python -m studies run long_texts --out DIR"
READING = Origin("cf686cf0", f"{RUN} --device cuda")
COST = Origin("39bbf97b", f"{RUN} --part cost --device cuda")
WINDOWS = Origin("7f8c3f20", f"{RUN} --part overlap")
MEMORY = Origin("7f8c3f20", f"{RUN} --part memory --words WORDS")
NAMES = {"truncated256": "first 256 pieces", "truncated509": "first 509 pieces", "windows": "windows of 256"}
COLUMNS = ("accuracy", "accuracy, long", "accuracy, short", "coverage", "coverage, long", "fully covered")
WINDOW = 256
STEPS = {"forward": "forward", "backward": "training"}
SHORT = ("512", "1024", "mixed")
"""Texts of the measurements on a CPU."""


def readings(records: Records) -> dict[str, Records]:
    rows: dict[str, Records] = defaultdict(list)
    for record in sorted(records, key=lambda record: record["seed"]):
        rows[record["row"]].append(record)
    return {row: rows[row] for row in NAMES if row in rows}


def rows(records: Records) -> list[list[str]]:
    """One row per kind of reading: mean and standard deviation over seeds, in %."""
    table = [["reading", "seeds", *with_deviation(COLUMNS)]]
    for row, runs in readings(records).items():
        cells = [cell for column in COLUMNS for cell in deviation_cells([100 * run[column] for run in runs])]
        table.append([NAMES[row], str(len(runs)), *cells])
    return table


def cost_columns() -> dict[str, dict[str, float]]:
    """Time per piece over that of single windows: floor, each step on each device, and an earlier pass."""
    before, after, again, cpu = read_records([RECORDS / "long_texts_cost.jsonl"])
    columns = {"floor": after["forward, floor"], "before": before["forward"]}
    for step, name in STEPS.items():
        columns |= {f"h200-{name}": after[step], f"repeated-{name}": again[step]}
        columns[f"cpu-{name}"] = {texts: ratio for texts, ratio in cpu[step].items() if texts in SHORT}
    return {
        name: {texts.replace(" ", "-"): ratio for texts, ratio in column.items() if "one window" not in texts}
        for name, column in columns.items()
    }


def cost_rows() -> list[list[str]]:
    columns = cost_columns()
    texts = list(columns["floor"])
    cells = ([f"{column[name]:.2f}" if name in column else "" for column in columns.values()] for name in texts)
    return [["texts", *columns], *([name, *line] for name, line in zip(texts, cells, strict=True))]


def window_numbers() -> Iterator[Number]:
    overlap, *memory = read_records([RECORDS / "long_texts_windows.jsonl"])
    for size, values in overlap["similarity"].items():
        for name, value in values.items():
            yield WINDOWS.number(f"similarity.{size}.{name.replace(' ', '-')}", value, n=overlap["texts"])
        yield WINDOWS.number(f"floor.{size}", WINDOW / (WINDOW - int(size)))
    for record in memory:
        peaks = record["peak MB before, predict, explain"]
        for name, peak in zip(("before", "predict", "explain"), peaks, strict=True):
            yield MEMORY.number(f"memory.{record['words']}.{name}", peak)


def numbers() -> list[Number]:
    runs = readings(read_records([FILE]))
    accuracy = {row: [run["accuracy"] for run in group] for row, group in runs.items()}
    return [
        *(
            READING.mean(f"{name.replace(', ', '-').replace(' ', '-')}.{row}", [run[name] for run in group])
            for row, group in runs.items()
            for name in COLUMNS
        ),
        *(
            READING.mean(f"windows-above.{row}", [a - b for a, b in zip(accuracy["windows"], others, strict=True)])
            for row, others in accuracy.items()
            if row != "windows"
        ),
        READING.number("long-reviews", runs["windows"][0]["long"]),
        *(
            COST.number(f"cost.{name}.{texts}", x)
            for name, column in cost_columns().items()
            for texts, x in column.items()
        ),
        *window_numbers(),
    ]


def data(records: list[Path] = [FILE]) -> Data:  # noqa: B006
    return {"long-texts.csv": rows(read_records(records)), "long-texts-cost.csv": cost_rows()}
