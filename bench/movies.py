"""Agreement of rationalizers with human rationales of movies, as in Table 4 of Yu et al. 2021 (arXiv:2110.13880).

    python bench/movies.py --cut DIR --data-dir DIR [--vectors FILE]                          # prepare reviews, once
    python bench/movies.py --cut DIR --out DIR [--workers 14] [--device cuda] [--seeds 5] [--only REGEX]
    python bench/movies_table.py DIR/records
    python bench/job_cells.py DIR/records > bench/records/movies.jsonl

Every row selects at most SHARE of the words of a review: the best windows of equal width, at most SPANS
(core/maths/rationale_windows.py).  The paper has a penalty for larger selections instead.

    rnp, rnp-straight-through, three-player, a2r        the techniques of these names
    hardkuma                              default settings and learning rate; hardkuma-tuned: the rate is tuned
    hardkuma-multipliers                  HardKuma with the paper's Lagrange multipliers
    a2r-released                          attention over the states of the predictor; it has no generator to tune
    *-minilm                              on MiniLM, in overlapping windows; rnp-minilm: the paper's BERT-RNP
    attention                             top-weighted windows of vanilla attention
    supervised                            the generator, trained with human rationales
    random, first, last                   windows without training
    random-tokens, all                    the same with more spans, or more words, than the limits

One job trains one row with one seed.  TUNED_ROWS tune the learning rate of the generator: the first TUNING_SEEDS seeds
run with all RATES, the other seeds with the rate of the highest mean accuracy on validation texts.  Human rationales
select no rate, and no epoch except that of the supervised row.

bench/movie_preparation.py writes the reviews, bench/movie_reviews.py reads them, bench/movie_jobs.py has the jobs.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from studies import jobs as job_cells
from studies.tables import folder_records

SHARE, SPANS = 0.2, 10
SELECTION: dict[str, Any] = {"granularity": "token", "share": SHARE, "spans": SPANS}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "a2r": ("a2r", SELECTION),
    "rnp": ("rnp", SELECTION),
    "three-player": ("three-player", SELECTION),
    "hardkuma": ("hardkuma", {}),
    "hardkuma-tuned": ("hardkuma", {}),
    "hardkuma-multipliers": ("hardkuma", SELECTION | {"sparsity": 1e-3, "continuity": 1e-3}),
    "rnp-straight-through": ("rnp", SELECTION | {"estimator": "straight-through"}),
    "a2r-released": ("a2r", SELECTION | {"variant": "released"}),
    "attention": ("vanilla", {}),
}
"""Row -> technique and its settings.  HardKuma's multipliers start from 1e-3, for runs of 800 steps.  From the usual
1e-5, they act after all gates have opened; from 1e-2, before the model has learned anything."""
MINILM = {f"{row}-minilm": row for row in ("a2r", "rnp", "rnp-straight-through", "a2r-released", "attention")}
TUNED_ROWS = (
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
"""Learning rates of the generator.  That of the predictor is 1e-3, that of MiniLM 5e-5."""
TUNING_SEEDS = 2
BASELINES = ("random", "random-tokens", "first", "last", "all")
TRAINING: dict[str, Any] = {"epochs": 20, "batch_size": 40, "precision": "no"}
MINILM_TRAINING: dict[str, Any] = {"epochs": 6, "batch_size": 8, "precision": "bf16", "schedule": "linear"}
SUPERVISED_SEEDS = 3
GLOVE = Path("glove", "glove.6B.100d.txt.gz")


@dataclass(frozen=True)
class Job:
    row: str
    seed: int
    rate: float | None = None
    """Learning rate of the generator; None: the default of the technique."""

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}" if self.rate is None else f"{self.row}-{self.rate:g}.s{self.seed}"


def job_plan(out: Path, seeds: int) -> list[Job]:
    """All jobs whose learning rate is known, the longest first."""
    rates = selected_rates(folder_records(out / "records"))
    others = [Job(row, seed, rates[row]) for seed in range(TUNING_SEEDS, seeds) for row in TUNED_ROWS if row in rates]
    return [*plan(seeds), *others]


def plan(seeds: int) -> list[Job]:
    """Jobs that do not depend on records."""
    untuned = [row for row in (*MINILM, *ROWS) if row not in TUNED_ROWS]
    return [
        *(Job(row, seed, rate) for row in TUNED_ROWS for rate in RATES for seed in range(min(TUNING_SEEDS, seeds))),
        *(Job(row, seed) for row in untuned for seed in range(seeds)),
        *(Job("supervised", seed) for seed in range(min(SUPERVISED_SEEDS, seeds))),
        *(Job(row, 0) for row in BASELINES),
    ]


def selected_rates(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Row -> the best rate, of rows with records of all rates; of equal rates the lowest."""
    scores: dict[str, dict[float, list[float]]] = {row: {rate: [] for rate in RATES} for row in TUNED_ROWS}
    for record in records:
        if record["row"] in TUNED_ROWS and record["seed"] < TUNING_SEEDS and "chosen" in record:
            scores[record["row"]][record["rate"]].append(record["chosen"]["validation"]["accuracy"])
    return {
        row: max(by_rate, key=lambda rate: mean(by_rate[rate]))
        for row, by_rate in scores.items()
        if all(len(accuracies) == TUNING_SEEDS for accuracies in by_rate.values())
    }


def run_job(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from movie_jobs import run_row

    torch.set_num_threads(1)
    return run_row(job, options.cut, options.limit, options.epochs, options.device)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, required=True, help="folder of the prepared reviews")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--vectors", help=f"file of word vectors, or glove-50d; default: {GLOVE} in --data-dir")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="epochs; default: TRAINING and MINILM_TRAINING")
    parser.add_argument("--limit", type=int, help="largest number of reviews of each split")
    job_cells.options(parser)
    options = parser.parse_args()
    if options.out is None:
        from movie_preparation import prepare

        prepare(options.cut, options.data_dir, options.vectors or (options.data_dir or Path()) / GLOVE)
    else:  # the records of the first round select the rates of the second
        job_cells.run(options, partial(job_plan, options.out, options.seeds), partial(run_job, options), rounds=2)


if __name__ == "__main__":
    import movies  # workers import the jobs from this module, not from the script

    movies.main()
