"""Validation macro-F1 of vanilla attention on bAbI in every epoch, by settings.

    python bench/babi_settings.py --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 14] [--epochs 50]
    python bench/job_cells.py DIR/records > studies/records/babi_settings.jsonl

The rows of CONFIGURATIONS start from the default settings and end at those of Jain & Wallace 2019 (arXiv:1902.10186),
which Kitada & Iyatomi 2021 follow: word vectors of size 50 without pre-training, 32 hidden units per direction,
batches of 50, an MLP decoder, word vectors from N(0, 1).  Training does not stop early.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies import jobs as job_cells

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
class Job:
    corpus: str
    configuration: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.corpus}.{self.configuration}.s{self.seed}"


def plan() -> list[Job]:
    """The slowest first."""
    jobs = [Job(c, name, seed) for c, (names, seeds) in TASKS.items() for name in names for seed in range(seeds)]
    return sorted(jobs, key=lambda job: job.corpus, reverse=True)


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.corpora: dict[str, Any] = {}

    def run_job(self, job: Job) -> dict[str, Any]:
        from steadygaze.data.corpora import load_corpus
        from steadygaze.estimator.text_classifier import TextClassifier

        splits = self.corpora.setdefault(job.corpus, load_corpus(job.corpus, data_dir=self.options.data_dir)).splits
        parts = {name: splits[name][: self.options.limit] for name in ("train", "validation")}
        settings: dict[str, Any] = {"patience": self.options.epochs, **CONFIGURATIONS[job.configuration]}
        batch_size, vectors = settings.pop("batch_size", None), settings.pop("vectors", None)
        clf = TextClassifier(
            "bilstm",
            seed=job.seed,
            epochs=self.options.epochs,
            batch_size=batch_size,
            vectors={None: None, "glove": self.options.glove, "unit": self._unit_vector_file(job)}[vectors],
            settings=settings,
            device=self.options.device,
            verbose=False,
        )
        pairs = {name: ([(e.text, e.question) for e in some], [e.label for e in some]) for name, some in parts.items()}
        clf.fit(*pairs["train"], validation=pairs["validation"])
        return {"validation": [round(epoch["macro-f1"], 4) for epoch in clf.history_]}

    def _unit_vector_file(self, job: Job) -> Path:
        file: Path = self.options.out / f"{job.id}.txt"
        file.write_text(unit_vectors(self.options.data_dir, job.seed))
        return file


def unit_vectors(data_dir: Path | None, seed: int = 0) -> str:
    """The lines of a file of word vectors with entries from N(0, 1), for the words of the three tasks."""
    import numpy as np

    from steadygaze.data.corpora import load_corpus

    words = {"."}
    for task in ("babi_1", "babi_2", "babi_3"):
        for example in load_corpus(task, data_dir=data_dir).splits["train"]:
            words |= set(f"{example.text} {example.question}".lower().replace(".", "").replace("?", " ?").split())
    drawn = np.random.default_rng(seed)
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in drawn.normal(size=SIZE))}" for word in sorted(words)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    job_cells.options(parser)
    options = parser.parse_args()
    study = Study(options)
    job_cells.run(options, plan, study.run_job)


if __name__ == "__main__":
    import babi_settings  # workers import the jobs from this module, not from the script

    babi_settings.main()
