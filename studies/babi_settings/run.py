"""Validation macro-F1 of vanilla attention on bAbI in every epoch, by settings.

The rows of CONFIGURATIONS start from the default settings and end at those of Jain & Wallace 2019 (arXiv:1902.10186),
which Kitada & Iyatomi 2021 follow: word vectors of size 50 without pre-training, 32 hidden units per direction,
batches of 50, an MLP decoder, word vectors from N(0, 1).  Training does not stop early.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.data.corpora import load_corpus
from studies import jobs

SIZE = 50
JAIN_WALLACE = {"dimension": SIZE, "hidden": 32, "batch_size": 50}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {"vectors": "glove"},
    "default-mlp": {"vectors": "glove", "decoder": "mlp"},
    "default-rate-3": {"vectors": "glove", "learning_rate": 3e-3},
    "small": JAIN_WALLACE,
    "small-mlp": {**JAIN_WALLACE, "decoder": "mlp"},
    "small-mlp-unit": {**JAIN_WALLACE, "decoder": "mlp", "vectors": "unit"},
    "small-mlp-unit-rate-3": {**JAIN_WALLACE, "decoder": "mlp", "vectors": "unit", "learning_rate": 3e-3},
}
"""Settings of TextClassifier.  Vectors: `unit` has entries from N(0, 1), the default N(0, 1/50)."""
TASKS = {"babi_1": (tuple(CONFIGURATIONS), 2), "babi_2": (("small-mlp", "small-mlp-unit"), 1)}
"""Corpus -> configurations and number of seeds."""


@dataclass(frozen=True)
class Job(jobs.Job):
    corpus: str
    configuration: str
    seed: int


def plan() -> list[Job]:
    """The slowest first."""
    planned = [Job(c, name, seed) for c, (names, seeds) in TASKS.items() for name in names for seed in range(seeds)]
    return sorted(planned, key=lambda job: job.corpus, reverse=True)


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Vectors are GloVe's of any size."""

    data_dir: Path | None = None
    glove: Path | None = None
    epochs: int = 50
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})


def run_job(options: Options, job: Job) -> dict[str, Any]:
    from steadygaze.estimator.text_classifier import TextClassifier

    splits = load_corpus(job.corpus, data_dir=options.data_dir).splits
    parts = {name: splits[name][: options.limit] for name in ("train", "validation")}
    settings: dict[str, Any] = {"patience": options.epochs, **CONFIGURATIONS[job.configuration]}
    batch_size, vectors = settings.pop("batch_size", None), settings.pop("vectors", None)
    clf = TextClassifier(
        "bilstm",
        seed=job.seed,
        epochs=options.epochs,
        batch_size=batch_size,
        vectors={None: None, "glove": options.glove, "unit": _unit_vector_file(options, job)}[vectors],
        settings=settings,
        device=options.device,
        verbose=False,
    )
    pairs = {name: ([(e.text, e.question) for e in some], [e.label for e in some]) for name, some in parts.items()}
    clf.fit(*pairs["train"], validation=pairs["validation"])
    return {"validation": [round(epoch["macro-f1"], 4) for epoch in clf.history_]}


def _unit_vector_file(options: Options, job: Job) -> Path:
    file = options.out / f"{job.id}.txt"
    file.write_text(unit_vectors(options.data_dir, job.seed))
    return file


def unit_vectors(data_dir: Path | None, seed: int = 0) -> str:
    """The lines of a file of word vectors with entries from N(0, 1), for the words of the three tasks."""
    words = {"."}
    for task in ("babi_1", "babi_2", "babi_3"):
        for example in load_corpus(task, data_dir=data_dir).splits["train"]:
            words |= set(f"{example.text} {example.question}".lower().replace(".", "").replace("?", " ?").split())
    drawn = np.random.default_rng(seed)
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in drawn.normal(size=SIZE))}" for word in sorted(words)]
    return "\n".join(lines) + "\n"


def run(options: Options) -> None:
    jobs.run(options, plan, partial(run_job, options))
