"""Stability of attention: every technique on real data, many seeds, hyper-parameters selected on validation data alone.

    python bench/stability.py --out DIR --data DIR --glove FILE --synonyms DIR [--workers 14] [--device cuda]
                              [--selection FILE] [--records FILE] [--seconds N] [--only REGEX] [--limit N] [--epochs N]

The cells of the study are run by the engine of `steadygaze compare` (src/steadygaze/study/engine.py).  One cell trains
the models of a row and setting, on a GPU as one program; one cell measures one model; one compares the seeds of a row.
A run can be stopped and resumed: finished cells are not repeated.  bench/stability_synonyms.py makes the tables of
`--synonyms`.  `--records` writes the records of finished cells every few seconds and at the end, for
bench/stability_records.py.

Hyper-parameters are selected first, on the validation splits of SST-2 and Rotten Tomatoes with two seeds, by one rule:
the smallest shift of attention (geometric mean over the probes of stability_plan.SELECTION_PROBES) among configurations
within 0.005 of vanilla's macro-F1.  Published techniques are also selected by macro-F1 alone, as in their papers.
`--selection` takes the records of an earlier selection instead.
"""

import argparse
import json
import re
import subprocess
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import torch

import steadygaze
from stability_models import TRAINING_TABLE, Study, train
from stability_plan import (
    BOTH_RULES,
    GRID,
    MARGIN,
    SELECTION_PROBES,
    SETTINGS,
    Config,
    ModelGroup,
    row_groups,
    selection_groups,
)
from stability_probe import WORD_PROBES, compare_seeds, measure
from stability_records import Record, read
from steadygaze.core.atomic_files import write_text
from steadygaze.core.untrusted_files import digest_file
from steadygaze.data.corpora import load_corpus
from steadygaze.study.cell_record import Cell, cell_folder, read_record
from steadygaze.study.code_version import code_version, source_digest
from steadygaze.study.engine import choose_executor, run_round
from steadygaze.study.executor import Executor

BENCH = Path(__file__).parent
CODE = ("stability_models.py", "stability_probe.py", "stability_ensemble.py")
"""Modules of this folder that determine results."""
INTERVAL = 10
"""Seconds between two files of records."""


class TimeIsUpError(Exception):
    """The limit of --seconds has passed."""


def cells(study: Study, groups: Sequence[ModelGroup]) -> dict[str, list[Cell]]:
    """Group -> its cells: training, measures, comparison of seeds; in the order in which they should run."""
    common, known = inputs(study), {group.id: group for group in groups}
    cells_by_group: dict[str, list[Cell]] = {}
    for group in groups:
        sources = [group.id] if group.is_trained else []
        if group.reads_teachers:
            sources.append(_row(group, group.teachers).id)
        content = {**common, **_data(study, group.setting), "group": group.id, "config": group.config}
        content["seeds"] = group.seeds
        cells_by_group[group.id] = []
        if group.is_trained:
            needs = tuple(name for name in sources if name != group.id)
            cells_by_group[group.id].append(Cell(group.id, group.id, content, partial(train, study, group), needs))
        if group.has_groups:
            sources.append(_row(group, "vanilla").id)  # its vocabulary
        for seed in () if group.source else range(group.seeds):
            teachers = [_row(group, group.teachers).model_id(teacher) for teacher in group.teacher_seeds(seed)]
            needs = (*sources, *(teachers if group.phase == "test" else ()))
            work = partial(measure, study, group, seed)
            name = group.model_id(seed)
            cells_by_group[group.id].append(Cell(name, name, {**content, "seed": seed}, work, needs))
        if group.phase == "test":
            source = known[_row(group, group.source).id] if group.source else group
            needs = tuple(source.model_id(seed) for seed in range(group.seeds))
            name = group.id.replace("test.", "seeds.", 1)
            cells_by_group[group.id].append(Cell(name, name, content, partial(compare_seeds, study, group), needs))
    return cells_by_group


@cache
def _data(study: Study, setting: str) -> dict[str, str]:
    return {"data": load_corpus(SETTINGS[setting][0], data_dir=study.data).fingerprint}


def _row(group: ModelGroup, row: str) -> ModelGroup:
    """The group of another row of the same phase and setting."""
    return ModelGroup(group.phase, group.setting, row)


def inputs(study: Study) -> dict[str, Any]:
    """Code, files and options that all results depend on."""
    tables = {TRAINING_TABLE, *(f"{name}.parquet" for name, _ in WORD_PROBES.values())}
    files = [study.glove, *(study.synonyms / name for name in sorted(tables))]
    return {
        "code": code_version(),
        "study": source_digest(BENCH, [BENCH / name for name in CODE]),
        "torch": torch.__version__,
        "device": study.device,
        "epochs": study.epochs,
        "limit": study.limit,
        "files": {file.name: digest_file(file) for file in files},
    }


def matching_cells(by_group: Mapping[str, list[Cell]], pattern: str) -> list[Cell]:
    """The cells of matching groups and all cells that they need, in the order of the plan."""
    known = {cell.name: cell for group in by_group.values() for cell in group}
    names = {cell.name for name, group in by_group.items() if re.search(pattern, name) for cell in group}
    pending = list(names)
    while pending:
        new = set(known[pending.pop()].needs) - names
        names |= new
        pending += new
    return [cell for name, cell in known.items() if name in names]


def select_configurations(records: Iterable[Record]) -> dict[str, Config]:
    """Row -> the configuration that the validation splits select."""
    scores: dict[str, dict[int, list[Record]]] = {}
    for record in records:
        config, row = record.get("config", {}), record["row"]
        if record["phase"] == "select" and (row == "vanilla" or config in GRID.get(row, [])):
            index = 0 if row == "vanilla" else GRID[row].index(config)
            scores.setdefault(row, {}).setdefault(index, []).append(record)
    floor = mean(record["macro-f1"] for record in scores["vanilla"][0]) - MARGIN
    configs: dict[str, Config] = {}
    for row, grid in GRID.items():
        f1 = {index: mean(record["macro-f1"] for record in runs) for index, runs in scores[row].items()}
        accurate = [index for index in f1 if f1[index] >= floor]
        best = max(f1, key=lambda index: f1[index])
        # If no configuration is accurate enough, the most accurate one.
        rule = min(accurate, key=lambda index: _shift(scores[row][index])) if accurate else best
        if row in BOTH_RULES:
            configs |= {f"{row}-by-f1": grid[best], f"{row}-by-rule": grid[rule]}
        else:
            configs[row] = grid[rule]
    return configs


def _shift(records: list[Record]) -> float:
    return geometric_mean(record[f"jensen-shannon/{probe}"] for record in records for probe in SELECTION_PROBES)


def records_of(groups: Iterable[ModelGroup], results: Mapping[str, Record]) -> list[Record]:
    """The records of finished cells; rows of the same configuration share the models of one."""
    records: list[Record] = []
    for group in groups:
        source = _row(group, group.source) if group.source else group
        for seed in range(group.seeds):
            name = source.model_id(seed)
            source_field = {"same-as": name} if group.source else {}
            if name in results:
                records.append({"config": group.config, **_identity(group, seed), **results[name], **source_field})
        name = group.id.replace("test.", "seeds.", 1)
        if group.phase == "test" and name in results:
            records.append({**_identity(group, 0), **results[name], "id": f"{name}.s0", "phase": "seeds"})
    return records


def _identity(group: ModelGroup, seed: int) -> Record:
    tail = f".c{group.index}" if group.index is not None else ""
    name = f"{group.phase}.{group.setting}.{group.row}.s{seed}{tail}"
    return {"id": name, "setting": group.setting, "row": group.row, "seed": seed, "phase": group.phase}


def head_commit() -> str:
    """The commit of the repository, with "+" if files differ from it; "unknown" outside a repository."""
    git = ["git", "-C", str(BENCH)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


class Run:
    """One round of cells, with a limit of time, and the file of records."""

    def __init__(self, options: argparse.Namespace, study: Study) -> None:
        self.options, self.study = options, study
        self.start = time.monotonic()
        self.groups: list[ModelGroup] = []
        self.by_group: dict[str, list[Cell]] = {}
        self.results: dict[str, Record] = {}
        """Finished cell -> its result."""
        self.origin = {
            "commit": options.commit,
            "version": steadygaze.__version__,
            "torch": torch.__version__,
            "device": study.device,
        }

    def round(self, groups: list[ModelGroup], executor: Executor, only: str = "") -> list[Record]:
        self.by_group |= cells(self.study, groups)
        self.groups += groups
        run_round(matching_cells(self.by_group, only), self.study.out, executor, self.on_progress)
        return self.records()

    def records(self) -> list[Record]:
        for cell in [cell for group in list(self.by_group.values()) for cell in group]:
            if cell.name not in self.results:
                record = read_record(cell_folder(self.study.out, cell.name), cell.key)
                if record is not None and record.is_finished:
                    self.results[cell.name] = {**record.result, "seconds": round(record.seconds, 2)}
        return records_of(list(self.groups), self.results)

    def on_progress(self, activity: str, done: int, total: int) -> None:
        seconds = time.monotonic() - self.start
        if ": done" in activity or "failed" in activity:
            print(f"{seconds:.1f} {done}/{total} {activity}", flush=True)
        if seconds > self.options.seconds:
            raise TimeIsUpError

    def write(self) -> None:
        """Write the records of finished cells, one a line."""
        lines = [{**record, **self.origin} for record in self.records()]
        write_text(self.options.records, "".join(json.dumps(record) + "\n" for record in lines))

    def write_often(self) -> None:
        while True:
            time.sleep(INTERVAL)
            self.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("out", "data", "glove", "synonyms"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--selection", type=Path, help="records of an earlier selection")
    parser.add_argument("--records", type=Path, help="file of records")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", default="", help="rows whose names match, and the rows that they need")
    parser.add_argument("--commit", default=head_commit())
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    study = Study(
        *(path.resolve() for path in (options.out, options.data, options.glove, options.synonyms)),
        *(options.device, options.epochs, options.limit),
    )
    run = Run(options, study)
    if options.records:
        threading.Thread(target=run.write_often, daemon=True).start()
    try:
        with choose_executor("local", options.workers, options.device, 1 << 30) as executor:
            if options.selection:
                configurations = select_configurations(read(options.selection)[1])
            else:
                configurations = select_configurations(run.round(selection_groups(), executor))
            run.round(row_groups(configurations), executor, options.only)
    except TimeIsUpError:
        print("stopped at the limit", flush=True)
    finally:
        if options.records:
            run.write()


if __name__ == "__main__":
    import stability  # workers import the cells from modules, not from the script

    stability.main()
