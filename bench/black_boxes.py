"""Which explainer of black boxes can be believed?  Table 3 of Bai et al. 2021, and a corpus in which the label can be
said in code.

    python bench/black_boxes.py --out DIR --data DIR [--workers 16] [--device cuda] [--seeds 5] [--only REGEX]

One job is one explainer fitted with one seed to one black box, and measured on the test split.  Jobs run side by side;
what is there is not done again, what failed is.  DIR gets records/<job>.json; bench/black_boxes_table.py makes the
tables.
"""

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import job_cells

K = {"planted": 5, "imdb": 10, "yelp_polarity": 5, "mnist_3_8": 25, "fashion_mnist_pullover_shirt": 64}
IMAGES = ("mnist_3_8", "fashion_mnist_pullover_shirt")
FILLS = ("mean", "zero", "gray")
"""What unselected pixels become, for approximator and black box alike; the papers' is the first."""
FIRST = {"imdb": 5, "planted": 15, "yelp_polarity": 15, **dict.fromkeys(IMAGES, 12)}
"""Epochs in which an approximator learns by itself.  L2X that has no such stage gets them on top of its own, so that
all of its rows have seen as much.
"""
STAGED = ("random-pretraining", "random-query")
WORTH = {"members": 1, "epochs": 15, "patience": 3, "learning_rate": 1e-3}
"""CXPlain in minutes: one network, and steps ten times as long as its authors'."""
MADE: dict[str, dict[str, Any]] = {
    "plain": {},
    "random-pretraining": {"mitigation": "random-pretraining"},
    "mask-neutral": {"mitigation": "mask-neutral"},
    "mask-neutral-wide": {"mitigation": "mask-neutral", "clip": 1e6},
    "random-query": {"mitigation": "random-query"},
}
"""Ways to fit L2X that is told ŷ."""
YHAT = {
    f"l2x-y-{name}-{approximator}": {"conditioned": True, "approximator": approximator, **settings}
    for name, settings in MADE.items()
    for approximator in ("simple", "cnn")
}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "gradient": ("gradient", {}),
    "input-x-gradient": ("input-x-gradient", {}),
    "lime": ("lime", {}),
    "cxplain": ("cxplain", WORTH),
    "l2x": ("l2x", {}),
    "l2x-cnn": ("l2x", {"approximator": "cnn"}),
    "vibi": ("vibi", {}),
    "ail": ("ail", {}),
    **{name: ("l2x", settings) for name, settings in YHAT.items()},
}
ONCE = ("random", "gradient", "input-x-gradient", "lime")
"""What has nothing to learn, and is asked with one seed."""
LONG = ("cxplain", "ail", "vibi")
"""Begun first."""
OF_IMAGES = (
    "random",
    "gradient",
    "lime",
    "cxplain",
    "l2x-cnn",
    "vibi",
    "ail",
    *(n for n in YHAT if n.endswith("-cnn")),
)
"""With the network of Table 7 as approximator."""


@dataclass(frozen=True)
class Job:
    corpus: str
    row: str
    seed: int
    fill: str = ""

    @property
    def id(self) -> str:
        return ".".join([self.corpus, *([self.fill] if self.fill else []), self.row, str(self.seed)])


def plan(seeds: int) -> list[Job]:
    """Of each corpus the longest first."""
    texts = [Job(name, row, seed) for name in ("imdb", "planted", "yelp_polarity") for row, seed in _each(ROWS, seeds)]
    images = [Job(name, row, seed, fill) for fill in FILLS for name in IMAGES for row, seed in _each(OF_IMAGES, seeds)]
    return [*texts, *images]


def _each(rows: Iterable[str], seeds: int) -> list[tuple[str, int]]:
    ordered = sorted(rows, key=lambda row: row not in LONG)
    return [(row, seed) for row in ordered for seed in range(1 if row in ONCE else seeds)]


def needs(job: Job, jobs: list[Job]) -> tuple[str, ...]:
    """CXPlain's effects of removal are computed for the first seed, and read for the others."""
    first = replace(job, seed=0)
    return (first.id,) if job.row == "cxplain" and job != first and first in jobs else ()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    job_cells.options(parser)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    jobs = [job for job in plan(options.seeds) if re.search(options.only, job.id)]
    from black_box_jobs import done, prepared  # which read this file

    options.out.mkdir(parents=True, exist_ok=True)
    if options.workers > 1:  # one black box for all workers
        for corpus in sorted({job.corpus for job in jobs}):
            prepared(corpus, options.out, options.data, options.device)
    do = partial(done, out=options.out, data=options.data, device=options.device)
    job_cells.run(options, lambda: jobs, do, needs=partial(needs, jobs=jobs))


if __name__ == "__main__":
    import black_boxes  # workers import the jobs from this module, not from the script

    black_boxes.main()
