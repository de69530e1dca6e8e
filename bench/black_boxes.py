"""Which explainer of black boxes can be believed?  Table 3 of Bai et al. 2021, and a corpus in which the label can be
said in code.

    python bench/black_boxes.py --out DIR --data DIR [--workers 16] [--device cuda] [--seeds 5] [--only REGEX]

One job is one explainer fitted with one seed to one black box, and measured on the test split.  Jobs run side by side;
what is there is not done again, what failed is.  DIR gets records/<job>.json; bench/black_boxes_table.py makes the
tables.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

K = {"planted": 5, "imdb": 10, "yelp_polarity": 5, "mnist_3_8": 25, "fashion_mnist_pullover_shirt": 64}
IMAGES = ("mnist_3_8", "fashion_mnist_pullover_shirt")
FILLS = ("mean", "zero", "grey")
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
    "random-pretraining": {"technique": "random-pretraining"},
    "mask-neutral": {"technique": "mask-neutral"},
    "mask-neutral-wide": {"technique": "mask-neutral", "clip": 1e6},
    "random-query": {"technique": "random-query"},
}
"""Ways to fit L2X that is told ŷ."""
YHAT = {
    f"l2x-y-{name}-{approximator}": {"query": True, "approximator": approximator, **settings}
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
    images = [
        Job(name, row, seed, fill)
        for fill in FILLS
        for name in IMAGES
        for row, seed in _each(OF_IMAGES, seeds)
        if fill == FILLS[0] or row not in ("cxplain", "lime")
    ]
    return [*texts, *images]


def _each(rows: Iterable[str], seeds: int) -> list[tuple[str, int]]:
    ordered = sorted(rows, key=lambda row: row not in LONG)
    return [(row, seed) for row in ordered for seed in range(1 if row in ONCE else seeds)]


def work(out: Path, data: Path, device: str, jobs: list[Job]) -> None:
    for job in jobs:
        record = out / "records" / f"{job.id}.json"
        try:
            if record.exists():
                continue
            (out / "claims" / job.id).mkdir(parents=True)
        except FileExistsError:
            continue
        started = time.time()
        try:
            from black_box_jobs import done

            result = done(job, out, data, device)
        except Exception:
            result = {"error": traceback.format_exc()}
        result |= {"corpus": job.corpus, "row": job.row, "seed": job.seed, "fill": job.fill}
        result["seconds"] = round(time.time() - started, 1)
        new = record.with_suffix(".tmp")
        new.write_text(json.dumps(result) + "\n")
        os.replace(new, record)
        shown = {k: round(v, 3) for k, v in result.items() if isinstance(v, float)} or result.get("error")
        print(f"{job.id}  {shown}", flush=True)


def tidy(out: Path) -> None:
    """Claims of workers that were killed, and records of jobs that failed: both are done again."""
    for claim in (out / "claims").glob("*"):
        record = out / "records" / f"{claim.name}.json"
        if record.exists() and "error" in json.loads(record.read_text()):
            record.unlink()
        if not record.exists():
            claim.rmdir()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--one-of-many", action="store_true", help=argparse.SUPPRESS)  # the claims it finds are others'
    given = parser.parse_args()
    jobs = [job for job in plan(given.seeds) if re.search(given.only, job.id)]
    (given.out / "records").mkdir(parents=True, exist_ok=True)
    if not given.one_of_many:
        tidy(given.out)
    if given.workers == 1:
        work(given.out, given.data, given.device, jobs)
        return
    from black_box_jobs import prepared

    for corpus in sorted({job.corpus for job in jobs}):
        prepared(corpus, given.out, given.data, given.device)
    command = [sys.executable, __file__, *sys.argv[1:], "--workers", "1", "--one-of-many"]
    workers = [subprocess.Popen(command) for _ in range(given.workers)]
    for worker in workers:
        worker.wait()


if __name__ == "__main__":
    main()
