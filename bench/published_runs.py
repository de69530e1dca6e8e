"""Run published tables on a GPU within a time limit; what is finished stays in DIR, and the same command continues.

    python bench/published_runs.py PLAN... --out DIR --data DIR --glove FILE [--workers 14] [--seconds N] [--pack FILE]
                                   [--tiny] [--device cuda]
    python bench/published_runs.py --one-by-one CELLS --out DIR --data DIR --glove FILE

PLAN is a name of PLANS; the plans run one after another.  --pack writes the folder without its models to an archive,
every minute and at the end.  --one-by-one measures one worker: SST-2, BiLSTM, seed 0 of Table 1 of SEAT.
`steadygaze reproduce TABLE --out DIR --finished` prints the tables.
"""

import argparse
import json
import os
import tarfile
import threading
import time
import warnings
from pathlib import Path

from steadygaze.core.errors import UserError
from steadygaze.study.compare import StudyRuntime, begin
from steadygaze.study.engine import run_round
from steadygaze.study.executor import LocalProcesses
from steadygaze.study.published_tables import find_table
from steadygaze.study.reproduce import TableRun, run_missing
from steadygaze.study.table_blocks import ReproduceOptions, blocks
from studies.babi_settings.run import unit_vectors

SEEDS = 5
PACKED_SUFFIXES = (".json", ".safetensors")
Choice = dict[str, object]
BF16 = {"precision": "bf16"}
UNIT = "unit"
"""Word vectors from N(0, 1) for bAbI (studies/babi_settings), written to the folder of the run."""
BABI = {"vectors": UNIT, "batch_size": 50, "settings": {"hidden": 32, "decoder": "mlp", "patience": 10}}
"""Jain & Wallace 2019, whom the paper follows; studies/babi_settings compares them with the defaults."""
PLANS: dict[str, list[tuple[str, Choice]]] = {
    "seat": [("seat/table1", {"only": ("bilstm", "rnn")})],
    "kitada": [
        ("kitada/table2", {"only": ("sst2", "newsgroups_sport", "snli"), "limit": 2000}),
        ("kitada/table2", {"only": ("ag_news",), "limit": 2000, "train_limit": 10_000}),
        ("kitada/table2", {"only": ("imdb",), "limit": 1000, "train_limit": 5_000}),
    ],
    "figure4": [("kitada/figure4", {"only": ("sst2",), "seeds": 3})],
    "seat-minilm": [
        ("seat/table1", {"only": ("minilm", "sst2", "rotten_tomatoes"), "vectors": None, "epochs": 3, "settings": BF16})
    ],
    "seat-figure2": [("seat/figure2", {})],
    "seat-table4": [("seat/table4", {"only": ("bilstm", "rnn")})],
    "babi": [
        ("kitada/table2", {"only": ("babi_2",), "seeds": 3, "epochs": 40, **BABI}),
        ("kitada/table2", {"only": ("babi_1",), "epochs": 40, **BABI}),
        ("kitada/table2", {"only": ("babi_3",), "seeds": 3, "epochs": 100, **BABI}),
        ("kitada/figure4", {"only": ("multinli", "ε = 30"), "seeds": 3}),
    ],
    "multinli": [("kitada/table2", {"only": ("multinli",)})],
    "multinli-figure4": [("kitada/figure4", {"only": ("multinli",), "seeds": 3})],
}
"""The largest sets have a limit, which the records name."""
TINY: Choice = {"limit": 24, "train_limit": 64, "epochs": 1, "seeds": 2, "settings": {"hidden": 4}}


class TimeIsUpError(Exception):
    """The limit of --seconds has passed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("plans", nargs="*", choices=PLANS, metavar="PLAN")
    for name in ("out", "data", "glove"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a few texts, for a trial run")
    parser.add_argument("--one-by-one", type=int, default=0, metavar="CELLS")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    warnings.simplefilter("ignore")
    if options.one_by_one:
        one_by_one(options)
        return
    if options.pack:
        threading.Thread(target=_pack_often, args=(options.out, options.pack), daemon=True).start()
    try:
        for plan in options.plans:
            try:
                run(plan, options, end)
            except (UserError, RuntimeError) as error:  # failed cells; the other plans go on
                print(f"{plan}: {error}", flush=True)
    except TimeIsUpError:
        print("stopped at the limit", flush=True)
    finally:
        if options.pack:
            pack(options.out, options.pack)


def run(plan: str, options: argparse.Namespace, end: float) -> None:
    start, events = time.monotonic(), options.out / "events.jsonl"
    options.out.mkdir(parents=True, exist_ok=True)

    def on_progress(activity: str, done: int, total: int) -> None:
        seconds = round(time.monotonic() - start, 2)
        with events.open("a") as file:
            file.write(json.dumps({"plan": plan, "seconds": seconds, "activity": activity, "done": done}) + "\n")
        if "failed: " in activity or (done % 35 == 0 and ": done" in activity):
            print(plan, seconds, activity, f"{done}/{total}", flush=True)
        if time.monotonic() > end:
            raise TimeIsUpError

    runs = [TableRun(find_table(name), _choice(options, choice)) for name, choice in PLANS[plan]]
    run_missing(runs, StudyRuntime(options.out, options.data, options.device, on_progress, workers=options.workers))
    print(f"{plan}: {time.monotonic() - start:.1f} s", flush=True)


def one_by_one(options: argparse.Namespace) -> None:
    """Seconds per cell with one worker, after it has started."""
    table, choice = find_table("seat/table1"), _choice(options, {"only": ("sst2", "bilstm"), "seeds": 1})
    (block,) = blocks(table, choice.only)
    job = begin(block.config(choice), StudyRuntime(options.out, options.data, options.device))
    first, *cells = job.cells()
    with LocalProcesses(1) as worker:
        run_round([first], options.out, worker)
        start = time.monotonic()
        run_round(cells[: options.one_by_one], options.out, worker)
    seconds = (time.monotonic() - start) / min(len(cells), options.one_by_one)
    print(f"one by one: {seconds:.2f} s per cell, {3600 / seconds:.0f} cells per hour", flush=True)


def _choice(options: argparse.Namespace, choice: Choice) -> ReproduceOptions:
    common: Choice = {"seeds": SEEDS, "vectors": str(options.glove)}
    values = {**common, **choice, **(TINY if options.tiny else {})}
    if values["vectors"] == UNIT:
        values["vectors"] = str(_unit_vectors(options))
    return ReproduceOptions(**values)  # type: ignore[arg-type]


def _unit_vectors(options: argparse.Namespace) -> Path:
    file: Path = options.out / "babi-vectors.txt"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(unit_vectors(options.data))
    return file


def _pack_often(out: Path, file: Path) -> None:
    while True:
        time.sleep(60)
        pack(out, file)


def pack(out: Path, file: Path) -> None:
    """Write the folder without models and caches to an archive."""
    new = file.with_suffix(".new")
    with tarfile.open(new, "w:gz", compresslevel=3) as archive:
        for path in sorted(out.rglob("*")):
            parts = path.relative_to(out).parts
            hidden = any(part.startswith(".") or part.startswith("model") for part in parts)
            if path.is_file() and not hidden and (path.suffix in PACKED_SUFFIXES or path.name == "events.jsonl"):
                archive.add(path, "/".join(parts))
    os.replace(new, file)


if __name__ == "__main__":
    main()
