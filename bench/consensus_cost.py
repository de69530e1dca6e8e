"""Training time of word-at and of two forms of consensus, over vanilla's: complete runs, in turn, for every seed.

    python bench/consensus_cost.py --tables TABLES --data-dir DATA --glove FILE --out DIR [--device cuda]
                                   [--corpora sst2] [--rows "vanilla,long student"] [--first 0] [--seeds 5]
                                   [--epochs N] [--limit N] [--seconds N]
    python bench/consensus_cost.py --show studies/records/consensus_cost.jsonl

TABLES as in bench/synonym_groups.py.  Vanilla has no groups, the other rows have groups of both tables.  A time is
that of training with validation and the outputs of the teachers, without reading of texts and vectors: wall time on a
GPU, processor time on a CPU.  Teachers are trained as one program on a GPU.  `--seconds` starts no further seed after
so many seconds.  Processes with different `--first` seeds and one `--out` take turns: one trains, while others read
texts.  Records: DIR/costs.jsonl.
"""

import argparse
import fcntl
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from studies.tables import markdown, read_records

SHORT = {"teacher": "word-at", "teachers": 2, "teacher_epochs": 0.5, "teacher_rate": 4.0}
RUNS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vanilla": ("vanilla", "none", {}),
    "word-at": ("word-at", "both", {}),
    "two short teachers": ("consensus", "both", SHORT | {"student_epochs": 0.25}),
    "long student": ("consensus", "both", SHORT | {"swaps": 4.0, "target_temperature": 0.5}),
}
"""Row -> technique, groups, settings."""
SUBSTITUTES = {"two short teachers": "cf", "long student": "both"}
"""Row -> the table of its substitutions."""
WARM_UP = 320
"""Texts of the first run on a GPU, which is not counted."""


@contextmanager
def turn(folder: Path, shared: bool = False) -> Iterator[None]:
    """Wait until no other process is timed; `shared`: several may warm up at a time."""
    with (folder / "turn").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def train_and_time(
    study: Any, corpus: str, row: str, seed: int, clock: Any, texts: int | None = None
) -> dict[str, Any]:
    """Train one model, with the first texts if `texts` is set; return its seconds."""
    import steadygaze as sg
    from steadygaze.estimator import fit

    technique, groups, settings = RUNS[row]
    options = study.options
    if row in SUBSTITUTES:
        settings = settings | {"synonyms": str(study.substitutes(SUBSTITUTES[row]))}
    seconds = [0.0]
    execute = fit.execute_together

    def timed_execution(runs: Any) -> Any:
        with turn(options.out, shared=texts is not None):
            begin = clock()
            models = execute(runs)
            seconds[0] = clock() - begin
        return models

    fit.execute_together = timed_execution
    try:
        clf = sg.TextClassifier(
            "bilstm", technique, seed=seed, epochs=1 if texts else options.epochs, vectors=options.glove,
            settings=settings, device=options.device,
            synonym_groups=study.groups(corpus, groups), verbose=False,
        )  # fmt: skip
        train, validation = (study.split(corpus, name) for name in ("train", "validation"))
        if texts is not None:  # too few texts to see that a teacher has not learned anything
            train, validation = train[:texts], validation[:10]
        clf.fit(
            [e.text for e in train], [e.label for e in train],
            validation=([e.text for e in validation], [e.label for e in validation]),
        )  # fmt: skip
    finally:
        fit.execute_together = execute
    epochs = len(clf.stored_.description.history)
    return {
        "seconds": round(seconds[0], 3),
        "epochs": epochs,
        "macro-f1": clf.stored_.description.history[-1]["macro-f1"],
    }


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    import torch

    from synonym_jobs import Study

    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    study, begin, records = Study(options), time.time(), []
    clock = time.perf_counter if options.device == "cuda" else time.process_time
    for corpus in options.corpora.split(","):
        for row in options.rows.split(",") if options.device == "cuda" else []:
            train_and_time(study, corpus, row, 0, clock, WARM_UP)  # the first run of a process is slower
        for seed in range(options.first, options.first + options.seeds):
            if options.seconds and time.time() - begin > options.seconds:
                break
            for row in options.rows.split(","):
                record = {"corpus": corpus, "device": options.device, "row": row, "seed": seed}
                records.append(record | train_and_time(study, corpus, row, seed, clock))
                print(json.dumps(records[-1]), flush=True)
                with (options.out / "costs.jsonl").open("a") as file:
                    file.write(json.dumps(records[-1]) + "\n")
    return records


def table(records: list[dict[str, Any]]) -> list[list[str]]:
    """Median over seeds of the time, and of its ratio to vanilla's of the same seed, with the range of the ratios."""
    durations: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        durations[record["device"], record["corpus"], record["row"]][record["seed"]] = record["seconds"]
    lines = [["device", "data", "row", "seeds", "seconds", "over vanilla"]]
    for (device, corpus, row), times in durations.items():
        vanilla = durations[device, corpus, "vanilla"]
        ratios = [seconds / vanilla[seed] for seed, seconds in times.items() if seed in vanilla]
        ratio = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "–"
        lines.append([device, corpus, row, str(len(times)), f"{median(times.values()):.1f}", ratio])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("tables", "data-dir", "glove", "out", "show"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--corpora", default="sst2,rotten_tomatoes,tweet_emotion")
    parser.add_argument("--rows", default=",".join(RUNS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    print(markdown(table(read_records([options.show]) if options.show else measure(options))))


if __name__ == "__main__":
    main()
