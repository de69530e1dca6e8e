"""Accuracy on SNLI with the hypothesis alone: how much the scores of Kitada & Iyatomi's Table 2 need the premise.

Every premise is the word "premise".  Test texts: the first 2,000, as on the page.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from studies import jobs

TEXTS = 2000


@dataclass(frozen=True)
class Job(jobs.Job):
    seed: int


def plan() -> list[Job]:
    return [Job(seed) for seed in range(2)]


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Options of training."""

    data_dir: Path | None = None
    glove: Path | None = None
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})


def run_job(options: Options, job: Job) -> dict[str, Any]:
    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator.text_classifier import TextClassifier

    splits = load_corpus("snli", data_dir=options.data_dir).splits
    limits = {"train": options.limit, "test": options.limit or TEXTS}
    pairs, labels = {}, {}
    for name, limit in limits.items():
        examples = splits[name][:limit]
        pairs[name] = [("premise", e.question) for e in examples]
        labels[name] = [e.label for e in examples]
    clf = TextClassifier(
        seed=job.seed, vectors=options.glove, epochs=options.epochs, device=options.device, verbose=False
    )
    clf.fit(pairs["train"], labels["train"])
    return {"accuracy": float(clf.score(pairs["test"], labels["test"])), "epochs": len(clf.history_)}


def run(options: Options) -> None:
    jobs.run(options, plan, partial(run_job, options))
