"""Synonym groups beside vanilla, word-at and consensus: stability under substitutions of words in the text.

`--cut TABLES` writes the tables of the study, once.  A job trains one model and measures it on validation and test
texts (measures.py).  Rows:

    technique      vanilla, word-at (ε = 0.2) and the students of plan.py
    groups         none, cf (counter-fitted vectors), wn (WordNet), both (the merged tables), linked

IMDB is a subset: every tenth text, its first 1,200 characters; every fifth training text is for validation.
A student is trained as soon as its teachers are; teachers of two students differ.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

import steadygaze as sg
from steadygaze.estimator.resumable_training import columns
from steadygaze.training.optimizers import EPOCHS
from studies import jobs
from studies.synonyms.data import StudyData, write_tables
from studies.synonyms.measures import distance_to_seeds, divide_scores, measures
from studies.synonyms.plan import (
    CORPORA,
    JOB_FIELDS,
    LONG,
    Job,
    matching_jobs,
    plan,
    rows_of,
    teachers_of,
)

TEMPERATURES = (1.5, 2.0, 3.0, 5.0)
"""Temperatures of the control at equal entropy: vanilla without groups, short texts, word encoders."""


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Files and folders, and which rows are trained."""

    out: Path | None = None  # type: ignore[assignment]
    cut: Path | None = field(default=None, metadata={"help": "write the tables to this folder"})
    counter_fitted: Path | None = None
    wordnet: Path | None = None
    tables: Path | None = field(default=None, metadata={"help": "folder of the tables"})
    data_dir: Path | None = None
    glove: Path | None = None
    minilm: Path | None = None
    corpora: str = ",".join(CORPORA)
    seeds: int = field(default=5, metadata={"help": "largest number of seeds of a row"})
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})
    student: str = field(default=LONG, metadata={"help": "the student of the study"})
    rows: str = field(default="", metadata={"help": "technique:groups, separated by commas, instead of the study's"})
    unmeasured: str = field(default="", metadata={"help": "techniques of teachers that are not measured: a prefix"})


class Trainer:
    """Trains and measures the jobs of one process."""

    def __init__(self, options: Options) -> None:
        self.options, self.out = options, options.out or Path()

    @cached_property
    def data(self) -> StudyData:
        options = self.options
        if options.tables is None:
            raise SystemExit("--tables is missing: the folder that --cut has written")
        return StudyData(options.tables, self.out, options.data_dir, options.limit)

    def run_job(self, job: Job) -> dict[str, Any]:
        start = time.perf_counter()
        clf = self._train(job)
        record: dict[str, Any] = {"training seconds": round(time.perf_counter() - start, 2)}
        record["epochs"] = Counter(epoch["stage"] for epoch in clf.stored_.description.history)
        if not job.row.teachers:
            clf.save(self.out / "models" / job.id)
        if job.technique.startswith(self.options.unmeasured or "/"):
            return record
        for split in ("validation", "test"):
            record |= self._measure(clf, job, split)
        return record

    def _measure(self, clf: sg.TextClassifier, job: Job, split: str) -> dict[str, Any]:
        """Measures on a split; of vanilla on short test texts also with temperatures of its attention."""
        examples, rewrites = self.data.split(job.corpus, split), self.data.rewrites(job.corpus, split)
        attention_file, *others = (
            self.out / "seen" / split / f"{replace(job, seed=seed).id}.npz" for seed in (job.seed, *range(job.seed))
        )
        result = measures(clf, examples, rewrites, attention_file)
        record = {split: result | {"seeds": distance_to_seeds(attention_file, others)}}
        if (job.technique, job.groups, split) == ("vanilla", "none", "test") and not CORPORA[job.corpus].long:
            for temperature in TEMPERATURES:
                own, *files = (file.with_suffix(f".{temperature}.npz") for file in (attention_file, *others))
                with divide_scores(clf, temperature):
                    result = measures(clf, examples, rewrites, own)
                record[f"temperature {temperature}"] = result | {"seeds": distance_to_seeds(own, files)}
        return record

    def _train(self, job: Job) -> sg.TextClassifier:
        torch.set_num_threads(1)
        row, setting, options = job.row, CORPORA[job.corpus], self.options
        encoder = setting.encoder
        if encoder == "transformer:minilm" and options.minilm:
            encoder = f"transformer:{options.minilm}"
        settings = dict(row.settings)
        if encoder.startswith("transformer:"):
            settings.pop("learning_rate", None)
            torch.set_float32_matmul_precision("high")
        if row.teachers:
            settings["synonyms"] = str(self.data.substitutes(job.groups if row.own_tables else "cf"))
            settings["teachers"] = row.teachers
        clf = sg.TextClassifier(
            encoder,
            row.technique,
            seed=job.seed,
            epochs=options.epochs or max(1, round((row.epochs or EPOCHS) * (setting.epochs or EPOCHS) / EPOCHS)),
            vectors=None if encoder.startswith("transformer:") else options.glove,
            settings=settings,
            synonym_groups=self.data.groups(job.corpus, job.groups),
            device=options.device,
            verbose=False,
        )
        teachers = [sg.load(self.out / "models" / teacher.id, device=options.device) for teacher in job.teachers]
        train, validation = (self.data.split(job.corpus, name) for name in ("train", "validation"))
        return clf.fit(*columns(train), validation=columns(validation), reference=teachers or None)


def complete_seeds(out: Path) -> None:
    """Compare every model with those of all lower seeds, also with those that were measured after it."""
    for file in (out / "records").glob("*.json"):
        record = json.loads(file.read_text())
        for part in [name for name in record if name in ("validation", "test") or name.startswith("temperature ")]:
            split, suffix = ("test", f".{part.split()[1]}.npz") if " " in part else (part, ".npz")
            job = Job(**{name: record[name] for name in JOB_FIELDS})
            ids = [replace(job, seed=seed).id for seed in range(job.seed + 1)]
            *others, own = [out / "seen" / split / f"{name}{suffix}" for name in ids]
            if own.exists():
                record[part]["seeds"] = distance_to_seeds(own, others)
        file.write_text(json.dumps(record) + "\n")


def run(options: Options) -> None:
    if options.cut:
        if options.counter_fitted is None or options.wordnet is None:
            raise SystemExit("--cut needs --counter-fitted FILE and --wordnet FOLDER")
        return write_tables(
            options.cut, options.data_dir, {"cf": options.counter_fitted, "wn": options.wordnet}.items()
        )
    if options.out is None:
        raise SystemExit("--out is missing: the folder of the records")
    trainer, corpora = Trainer(options), options.corpora.split(",")
    planned = plan(rows_of(options.student, options.rows), corpora, options.seeds, in_order=bool(options.rows))
    planned = list(matching_jobs(planned, options.only))
    try:  # `only` has been applied: teachers need not match
        jobs.run(replace(options, only=""), lambda: planned, trainer.run_job, needs=teachers_of)
    finally:  # also if some jobs failed
        complete_seeds(options.out)
    return None
