"""Accuracy on SNLI with the hypothesis alone: how much the scores of Kitada & Iyatomi's Table 2 need the premise.

    python bench/hypothesis_only.py --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 2]
    python bench/job_cells.py DIR/records > studies/records/hypothesis_only.jsonl

Every premise is the word "premise".  Test texts: the first 2,000, as on the page.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies import jobs as job_cells

TEXTS = 2000


@dataclass(frozen=True)
class Job:
    seed: int

    @property
    def id(self) -> str:
        return f"hypothesis.s{self.seed}"


def plan() -> list[Job]:
    return [Job(seed) for seed in range(2)]


class Study:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def run_job(self, job: Job) -> dict[str, Any]:
        from steadygaze.data.corpora import load_corpus
        from steadygaze.estimator.text_classifier import TextClassifier

        splits = load_corpus("snli", data_dir=self.options.data_dir).splits
        limits = {"train": self.options.limit, "test": self.options.limit or TEXTS}
        pairs, labels = {}, {}
        for name, limit in limits.items():
            examples = splits[name][:limit]
            pairs[name] = [("premise", e.question) for e in examples]
            labels[name] = [e.label for e in examples]
        options = self.options
        clf = TextClassifier(
            seed=job.seed, vectors=options.glove, epochs=options.epochs, device=options.device, verbose=False
        )
        clf.fit(pairs["train"], labels["train"])
        return {"accuracy": float(clf.score(pairs["test"], labels["test"])), "epochs": len(clf.history_)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    job_cells.options(parser)
    options = parser.parse_args()
    study = Study(options)
    job_cells.run(options, plan, study.run_job)


if __name__ == "__main__":
    import hypothesis_only  # workers import the jobs from this module, not from the script

    hypothesis_only.main()
