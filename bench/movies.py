"""Do rationalizers find what people marked?  Table 4 of Yu et al. 2021 (A2R, arXiv:2110.13880): movie reviews, words.

    python bench/movies.py --cut DIR --data-dir DIR [--vectors FILE]                          # once: what is needed
    python bench/movies.py --cut DIR --out DIR [--workers 14] [--device cuda] [--seeds 5] [--only REGEX]
    python bench/movies_table.py DIR/records

Every row selects at most SHARE of a review's words in at most SPANS windows of equal width, wherever its own scores are
highest (core/maths/rationale_windows.py): the paper punishes more than that, here nothing else is measured.

    rnp, rnp-straight-through, three-player, a2r        the techniques of those names
    hardkuma                              as shipped, learning rate included; hardkuma-tuned: the rate is tuned
    hardkuma-multipliers                  HardKuma with the paper's Lagrange multipliers
    a2r-released                          attention over the predictor's own states: there is no generator to be tuned
    *-minilm                              on MiniLM, over reviews of any length, in overlapping windows;
                                          rnp-minilm is the paper's BERT-RNP
    attention     vanilla attention, its heaviest windows       supervised    taught what people marked
    random, first, last, all              nothing is learned; random-tokens, all: more pieces, or words, than may count

One job is one row trained with one seed.  TUNED are tuned alike: the first TRIED seeds try all RATES of the generator,
and the rate of the best mean accuracy on validation texts goes on with the other seeds.  What people marked chooses
nothing, but for the supervised row.  Jobs run side by side; what is there is not done again.  Reviews are cut by
bench/movie_cut.py and read by bench/movie_reviews.py; bench/movie_jobs.py has the jobs.  `python bench/job_cells.py
DIR/records > bench/records/movies.jsonl` writes the records to one file.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import job_cells
from tables import folder_records

SHARE, SPANS = 0.2, 10
WHERE: dict[str, Any] = {"granularity": "token", "share": SHARE, "spans": SPANS}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "a2r": ("a2r", WHERE),
    "rnp": ("rnp", WHERE),
    "three-player": ("three-player", WHERE),
    "hardkuma": ("hardkuma", {}),
    "hardkuma-tuned": ("hardkuma", {}),
    "hardkuma-multipliers": ("hardkuma", WHERE | {"sparsity": 1e-3, "continuity": 1e-3}),
    "rnp-straight-through": ("rnp", WHERE | {"estimator": "straight-through"}),
    "a2r-released": ("a2r", WHERE | {"variant": "released"}),
    "attention": ("vanilla", {}),
}
"""HardKuma's multipliers start where 800 steps are enough: from the usual 1e-5 they come when all gates are open for
good, from 1e-2 before anything has been learned."""
MINILM = {f"{row}-minilm": row for row in ("a2r", "rnp", "rnp-straight-through", "a2r-released", "attention")}
TUNED = (
    "a2r-minilm",
    "rnp-minilm",
    "rnp-straight-through-minilm",
    "a2r",
    "rnp",
    "three-player",
    "hardkuma-tuned",
    "hardkuma-multipliers",
    "rnp-straight-through",
)
RATES = (1e-4, 3e-4, 1e-3, 3e-3)
"""Step sizes of the generator; the predictor's is 1e-3, and MiniLM's own 5e-5 in both."""
TRIED = 2
YARDSTICKS = ("random", "random-tokens", "first", "last", "all")
RUN: dict[str, Any] = {"epochs": 20, "batch_size": 40, "precision": "no"}
LONG: dict[str, Any] = {"epochs": 6, "batch_size": 8, "precision": "bf16", "schedule": "linear"}
"""On MiniLM."""
FEWER = 3
"""Seeds of the supervised row."""
GLOVE = Path("glove", "glove.6B.100d.txt.gz")


@dataclass(frozen=True)
class Job:
    row: str
    seed: int
    rate: float | None = None
    """Of the generator; None: as the technique has it."""

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}" if self.rate is None else f"{self.row}-{self.rate:g}.s{self.seed}"


def wanted(out: Path, seeds: int) -> list[Job]:
    """What can be done by now, what takes longest first."""
    rates = tuned(folder_records(out / "records"))
    others = [Job(row, seed, rates[row]) for seed in range(TRIED, seeds) for row in TUNED if row in rates]
    return [*plan(seeds), *others]


def plan(seeds: int) -> list[Job]:
    """What waits for nothing."""
    plain = [row for row in (*MINILM, *ROWS) if row not in TUNED]
    return [
        *(Job(row, seed, rate) for row in TUNED for rate in RATES for seed in range(min(TRIED, seeds))),
        *(Job(row, seed) for row in plain for seed in range(seeds)),
        *(Job("supervised", seed) for seed in range(min(FEWER, seeds))),
        *(Job(row, 0) for row in YARDSTICKS),
    ]


def tuned(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The rate that goes on, of every row whose rates have all been tried; of equals, the slowest."""
    tried: dict[str, dict[float, list[float]]] = {row: {rate: [] for rate in RATES} for row in TUNED}
    for record in records:
        if record["row"] in TUNED and record["seed"] < TRIED and "chosen" in record:
            tried[record["row"]][record["rate"]].append(record["chosen"]["validation"]["accuracy"])
    whole = {row: those for row, those in tried.items() if all(len(scores) == TRIED for scores in those.values())}
    return {row: max(those, key=lambda rate: mean(those[rate])) for row, those in whole.items()}


def done(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from movie_jobs import run_job

    torch.set_num_threads(1)
    return run_job(job, options.cut, options.limit, options.epochs, options.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--vectors", help=f"a file of vectors, or glove-50d; by default {GLOVE} of --data-dir")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="instead of RUN's and LONG's")
    parser.add_argument("--limit", type=int, help="reviews of each split at most")
    job_cells.options(parser)
    options = parser.parse_args()
    if options.out is None:
        from movie_cut import cut

        cut(options.cut, options.data_dir, options.vectors or (options.data_dir or Path()) / GLOVE)
    else:  # in the second round rates are tuned
        job_cells.run(options, partial(wanted, options.out, options.seeds), partial(done, options), rounds=2)


if __name__ == "__main__":
    import movies  # workers import the jobs from this module, not from the script

    movies.main()
