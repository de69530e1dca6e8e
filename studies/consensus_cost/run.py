"""Training time of word-at and of two forms of consensus, over vanilla's: complete runs, in turn, for every seed.

Tables as in studies/synonyms.  Vanilla has no groups, the other rows have groups of both tables.  A time is that of
training with validation and the outputs of the teachers, without reading of texts and vectors: wall time on a GPU,
processor time on a CPU.  Teachers are trained as one program on a GPU.  Records: OUT/costs.jsonl.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import steadygaze as sg
from steadygaze.estimator import fit as fit_module
from steadygaze.estimator.resumable_training import columns
from studies.consensus_cost.table import table
from studies.synonyms.data import StudyData

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


@dataclass(frozen=True, kw_only=True)
class Options:
    """Files and folders, and which rows are timed."""

    out: Path
    tables: Path = field(metadata={"help": "folder of the tables"})
    data_dir: Path | None = None
    glove: Path | None = None
    device: str = "cpu"
    corpora: str = "sst2,rotten_tomatoes,tweet_emotion"
    rows: str = ",".join(RUNS)
    seeds: int = 5
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})


def train_and_time(
    data: StudyData, options: Options, corpus: str, row: str, seed: int, texts: int | None = None
) -> dict[str, Any]:
    """Train one model, with the first texts if `texts` is set; return its seconds."""
    technique, groups, settings = RUNS[row]
    if row in SUBSTITUTES:
        settings = settings | {"synonyms": str(data.substitutes(SUBSTITUTES[row]))}
    clock: Callable[[], float] = time.perf_counter if options.device == "cuda" else time.process_time
    fit: Any = fit_module  # its function is replaced while it is timed
    seconds, execute = [0.0], fit.execute_together

    def timed_execution(runs: Any) -> Any:
        begin = clock()
        models = execute(runs)
        seconds[0] = clock() - begin
        return models

    fit.execute_together = timed_execution
    try:
        clf = sg.TextClassifier(
            "bilstm", technique, seed=seed, epochs=1 if texts else options.epochs, vectors=options.glove,
            settings=settings, device=options.device,
            synonym_groups=data.groups(corpus, groups), verbose=False,
        )  # fmt: skip
        train, validation = (data.split(corpus, name) for name in ("train", "validation"))
        if texts is not None:  # too few texts to see that a teacher has not learned anything
            train, validation = train[:texts], validation[:10]
        clf.fit(*columns(train), validation=columns(validation))
    finally:
        fit.execute_together = execute
    history = clf.stored_.description.history
    return {"seconds": round(seconds[0], 3), "epochs": len(history), "macro-f1": history[-1]["macro-f1"]}


def run(options: Options) -> None:
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    data = StudyData(options.tables, options.out, options.data_dir, options.limit)
    records, rows = options.out / "costs.jsonl", options.rows.split(",")
    for corpus in options.corpora.split(","):
        for row in rows if options.device == "cuda" else []:
            train_and_time(data, options, corpus, row, 0, WARM_UP)  # the first run of a process is slower
        for seed in range(options.seeds):
            for row in rows:
                record = {"corpus": corpus, "device": options.device, "row": row, "seed": seed}
                line = json.dumps(record | train_and_time(data, options, corpus, row, seed))
                print(line, flush=True)
                with records.open("a") as file:
                    file.write(line + "\n")
    print(table([records]))
