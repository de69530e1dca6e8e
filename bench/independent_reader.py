"""Detection of label leakage of selectors by the independent reader, on four data sets.

    python bench/independent_reader.py --prepare --out DIR --data DATA     write the texts, once
    python bench/independent_reader.py --out DIR [--device cuda] [--workers 14] [--seeds 5] [--only REGEX]
    python bench/independent_reader_table.py RECORDS...

A job fits an explainer with a seed to a black box and measures it as `fit-explainer` does: on the texts that select the
epoch.

    planted     planted-code, 8,000 texts, k = 5; the words that decide are known
    imdb        10,000 reviews, k = 10; black box: the network of Bai et al. 2021, Table 6
    yelp        4,455 reviews, k = 5; black box: TF-IDF and logistic regression, without punctuation
    reviews600  600 sentences of Rotten Tomatoes, k = 3; black box: the network of Table 6

    l2x-y             L2X conditioned on the prediction, without a mitigation
    pretrained-y      the same with random-pretraining
    l2x               L2X that is not conditioned on the prediction
    leave-one-out     the k words whose deletion lowers the predicted probability most
    truth             planted alone: the words that decide

The last two have no approximator.  They are scored as if one recovered every label, the hardest case for the reader.
Their gap to the black box is 0, so the rule of two gaps cannot warn: these rows do not test it.

    padded-y, padded-neutral-y     imdb alone: variant released, in which padding can be selected; mask-neutral
    neutral-y                      mask-neutral where only words can be selected
"""

import argparse
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from studies import jobs as job_cells

K = {"planted": 5, "imdb": 10, "yelp": 5, "reviews600": 3}
ROWS: dict[str, dict[str, Any]] = {
    "l2x-y": {"conditioned": True},
    "pretrained-y": {"conditioned": True, "mitigation": "random-pretraining"},
    "l2x": {},
    "padded-y": {"conditioned": True, "variant": "released"},
    "padded-neutral-y": {"conditioned": True, "variant": "released", "mitigation": "mask-neutral"},
    "neutral-y": {"conditioned": True, "mitigation": "mask-neutral"},
}
MAIN_ROWS = ("l2x-y", "pretrained-y", "l2x")
RELEASED_ROWS = ("padded-y", "padded-neutral-y", "neutral-y")
PRETRAINING_EPOCHS = {"imdb": 8, "planted": 15, "yelp": 15, "reviews600": 20}
"""Epochs of random pretraining.  Other rows train the selector for as many more, so that all train equally long."""
SELECTOR_EPOCHS = {"imdb": 8, "planted": 5, "yelp": 10, "reviews600": 20}
"""Epochs in which the selector is trained."""


@dataclass(frozen=True)
class Job:
    corpus: str
    row: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.corpus}.{self.row}.{self.seed}"


def plan(seeds: int) -> list[Job]:
    """All jobs; the rows of `variant released` come last, and the slowest of the others first."""
    corpora = ("imdb", "yelp", "planted", "reviews600")
    fitted = [(corpus, row) for corpus in corpora for row in MAIN_ROWS]
    fixed = [*((corpus, "leave-one-out") for corpus in corpora), ("planted", "truth")]
    padded = [("imdb", row) for row in RELEASED_ROWS]
    return [Job(corpus, row, seed) for corpus, row in (*fitted, *fixed, *padded) for seed in range(seeds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    job_cells.options(parser)
    parser.add_argument("--data", help="folder of the corpora, for --prepare")
    parser.add_argument("--prepare", action="store_true", help="write the texts as token ids, and train nothing")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    if options.prepare:
        from independent_reader_data import prepare

        prepare(options.out, options.data)
        return
    jobs = [job for job in plan(options.seeds) if re.search(options.only, job.id)]
    from independent_reader_jobs import black_box, run_job

    for corpus in sorted({job.corpus for job in jobs}):  # one black box for all workers
        black_box(corpus, options.out, options.device)
    job_cells.run(options, lambda: jobs, partial(run_job, out=options.out, device=options.device))


if __name__ == "__main__":
    import independent_reader  # workers import the jobs from this module, not from the script

    independent_reader.main()
