"""Accuracies on the selected words by model, and counts of warnings: numbers of docs/results/shortcuts.md."""

from collections import defaultdict
from pathlib import Path

from steadygaze.results.leakage_warnings import BLACK_BOX_GAP, GAP, MARGIN
from studies.independent_reader.plan import MAIN_ROWS, RELEASED_ROWS, K
from studies.numbers import Number, Origin
from studies.study import Data
from studies.tables import RECORDS, Records, read_records, summary, summary_heading

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
    "leaking": ("l2x-y",),
    "leaking-released": RELEASED_ROWS,
    "not-leaking": ("pretrained-y", "l2x"),
    "not-leaking-untrained": ("leave-one-out", "truth"),
}
"""Rows by whether their method leaks: conditioned on the prediction; mask-neutral, or padding can be selected; fitted
without leakage; without an approximator."""
LEAKING = (*GROUPS["leaking"], *RELEASED_ROWS)
FILE = RECORDS / "independent_reader.jsonl"
ORDER = (*MAIN_ROWS, "leave-one-out", "truth", *RELEASED_ROWS)


ORIGIN = Origin("8bc7eea9", "python -m studies run independent_reader --out DIR --device cuda --workers 14")
NUMBERS = {
    "fidelity": "fidelity",
    "post-hoc": "post-hoc-accuracy",
    "reader": READER,
    "random-words": f"{READER}/random-words",
    "no-words": f"{READER}/no-words",
    "class-0": f"{READER}/by-class=0",
    "gap": GAP,
    "black-box-gap": BLACK_BOX_GAP,
    "opinions": "opinion-share",
    "unseen": "unseen-share",
}
"""Names of numbers -> measures of the records."""
Cells = dict[tuple[str, str], Records]


def cells_of(records: Records) -> Cells:
    """Corpus and row -> runs; rows in the order of the table."""
    cells: Cells = defaultdict(list)
    for record in records:
        cells[record["corpus"], record["row"]].append(record)
    corpora = [*dict.fromkeys(corpus for corpus, _ in cells)]
    return dict(sorted(cells.items(), key=lambda item: (corpora.index(item[0][0]), ORDER.index(item[0][1]))))


def warnings(runs: Records) -> dict[str, int]:
    """How many runs are warned about, by both gaps and by each alone."""
    alone = {name: sum(run[f"{gap} low"] > MARGIN for run in runs) for name, gap in GAPS.items()}
    return {"runs": len(runs), "warned": sum(run["leaks"] for run in runs)} | alone


GAPS = {"black-box-gap-alone": BLACK_BOX_GAP, "reader-gap-alone": GAP}


def rows(records: Records) -> list[list[str]]:
    columns = [column for name in COLUMNS.values() for column in summary_heading(name)]
    lines = [["data", "k", "selector", "seeds", *columns, "warned"]]
    for (corpus, row), runs in cells_of(records).items():
        numbers = [cell for name in COLUMNS for cell in summary([run[name] for run in runs if name in run])]
        start = [corpus, str(K[corpus]), row, str(len(runs))]
        lines.append([*start, *numbers, str(sum(run["leaks"] for run in runs))])
    return lines


def numbers() -> list[Number]:
    records = read_records([FILE])
    entries = []
    for (corpus, row), runs in cells_of(records).items():
        for name, measure in NUMBERS.items():
            if values := [run[measure] for run in runs if measure in run]:
                entries.append(ORIGIN.mean(f"{name}.{corpus}.{row}", values))
                if name == "no-words":
                    entries.append(ORIGIN.number(f"constant-prediction.{corpus}.{row}", max(values)))
                if name in ("post-hoc", "unseen"):
                    ends = {"lowest": min(values), "highest": max(values)}
                    entries += [ORIGIN.number(f"{name}-{end}.{corpus}.{row}", value) for end, value in ends.items()]
        entries.append(ORIGIN.number(f"warned.{corpus}.{row}", sum(run["leaks"] for run in runs), n=len(runs)))
    for name, which in GROUPS.items():
        runs = [run for run in records if run["row"] in which]
        entries += [ORIGIN.number(f"{count}.{name}", value) for count, value in warnings(runs).items()]
    fitted = [run for run in records if run["row"] in GROUPS["not-leaking"]]
    indistinct = sum(run["fidelity"] <= run["post-hoc-accuracy"] for run in fitted)
    missed = [run for run in records if run["row"] in LEAKING and not run["leaks"]]
    return [
        *entries,
        ORIGIN.number("fidelity-not-above-post-hoc", indistinct, n=len(fitted)),
        *(ORIGIN.number(f"missed.{name}", run[NUMBERS[name]]) for run in missed for name in ("reader", "gap")),
    ]


def data(records: list[Path] = [FILE]) -> Data:  # noqa: B006
    return {"independent-reader.csv": rows(read_records(records))}
