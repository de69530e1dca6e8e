"""Accuracy, F1 and X1 of RNP and A2R on planted reviews, as in Table 2 of Yu et al. 2021 (A2R, arXiv:2110.13880).

    python bench/rationales.py --cut DIR [--seeds 5] [--regimes easy] [--vectors glove-50d]   # prepare reviews, once
    python bench/rationales.py --cut DIR --out DIR [--workers 14] [--device cuda] [--only REGEX] [--scout]
    python bench/rationales_table.py DIR/records

X1 is the share of reviews whose selection includes the first sentence.  F1 compares tokens with the sentence about the
aspect.  One job trains one row with one seed on one aspect in one setting; each seed has its own corpus.

    regime      how the reviews are generated: REGIMES
    setting     standard
                skewed10, 15, 20: the predictor is first trained on the first sentence alone for 10, 15, 20 epochs
                biased70, 75, 80: a token before the text agrees with the label in 70, 75, 80 % of the reviews
    row         rnp-RATE (learning rate of the generator), a2r, a2r-RATE, a2r-lambda-λ

The learning rate of RNP is tuned for each regime, aspect and setting.  The first TUNING_SEEDS seeds run with all RATES.
The other seeds run with the rate of the highest mean accuracy on validation texts.  SLOW_RATES take no part in this.
A2R has the rate of its released code, the lowest of RATES.  Macro-F1 on validation texts selects the epoch.

--cut names a folder with one file per regime and seed: reviews as token ids, and the vectors of their words.
--scout runs all regimes on palate with one seed instead.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from studies import jobs as job_cells
from studies.tables import Records, folder_records

SIZES = (15_000, 1_000, 2_000)
LABEL_NOISE = {"appearance": 0.04, "aroma": 0.04, "palate": 0.06}
"""Share of labels that contradict their review, in all regimes but `plain`."""
EASY: dict[str, Any] = {"negation": 0.0, "agreement": 0.8, "own": 20}
REGIMES: dict[str, dict[str, Any]] = {
    "easy": EASY,
    "many": EASY,
    "large": EASY,
    "dropout": EASY,
    "negated": {"agreement": 0.8, "own": 20},
    "apart": {"negation": 0.0, "own": 20},
    "shared": {"negation": 0.0, "agreement": 0.8},
    "plain": {},
}
"""Options of planted_reviews.  The first regime is that of the main tables.  The next three differ from it in their
training (REGIME_TRAINING).  `negated`, `apart` and `shared` restore one default of planted_reviews, `plain` all.
"""
MAIN_REGIME, OTHER_REGIMES = "easy", ("many", "large", "dropout", "negated", "apart", "shared")
TRAINING: dict[str, Any] = {
    "hidden": 100,
    "score": "additive",
    "dropout": 0.0,
    "max_texts": 6_000,
    "batch_size": 50,
    "epochs": 8,
}
REGIME_TRAINING: dict[str, dict[str, Any]] = {
    "many": {"max_texts": 15_000},
    "large": {
        "max_texts": 15_000,
        "batch_size": 200,
        "epochs": 11,
    },  # 825 steps; the others: 960
    "dropout": {"dropout": 0.2},
}
ASPECTS = ("palate", "aroma", "appearance")
SKEW_EPOCHS = {"skewed10": 10, "skewed15": 15, "skewed20": 20}
BIAS_AGREEMENT = {"biased70": 0.7, "biased75": 0.75, "biased80": 0.8}
SETTINGS = ("standard", *SKEW_EPOCHS, *BIAS_AGREEMENT)
CORE_SETTINGS = ("standard", "skewed20", "biased80")
RATES = (1e-4, 3e-4, 1e-3)
SLOW_RATES = (1e-5, 3e-5)
TUNING_SEEDS = 2
LAMBDAS = (0.0, 0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
"""Values of λ besides 1, which is the row `a2r`."""
LAMBDA_REGIME = "negated"
"""A harder regime in which LAMBDAS run too."""
FEW_SEEDS = 3
"""Seeds of the rows of LAMBDAS and of OTHER_REGIMES."""


@dataclass(frozen=True)
class Job:
    aspect: str
    setting: str
    row: str
    seed: int
    regime: str = MAIN_REGIME

    @property
    def id(self) -> str:
        return f"{self.regime}.{self.aspect}.{self.setting}.{self.row}.s{self.seed}"


def rnp_row(rate: float) -> str:
    return f"rnp-{rate:g}"


def technique_settings(row: str, setting: str) -> tuple[str, dict[str, Any]]:
    """The name of the technique of a row, and its settings."""
    name, _, rest = row.partition("-")
    settings: dict[str, Any] = {"skewed": SKEW_EPOCHS.get(setting, 0)}
    if rest.startswith("lambda-"):
        settings["agreement"] = float(rest.removeprefix("lambda-"))
    elif rest:
        settings["generator_learning_rate"] = float(rest)
    return name, settings


def plan(seeds: int) -> list[Job]:
    """Jobs that do not depend on records, the most important first."""
    cells = [(aspect, setting) for aspect in ASPECTS for setting in SETTINGS]
    rows = [(seed, row) for seed in range(min(TUNING_SEEDS, seeds)) for row in ("a2r", *map(rnp_row, RATES))]
    tuning = [Job(*cell, row, seed) for cell in cells for seed, row in rows]
    a2r = [Job(*cell, "a2r", seed) for cell in cells for seed in range(TUNING_SEEDS, seeds)]
    few = range(min(FEW_SEEDS, seeds))
    lambda_rows = [f"a2r-lambda-{strength:g}" for strength in LAMBDAS]
    variants = [*(f"a2r-{rate:g}" for rate in RATES[1:]), *lambda_rows, *map(rnp_row, SLOW_RATES)]
    variant_jobs = [Job("palate", setting, row, seed) for seed in few for row in variants for setting in CORE_SETTINGS]
    lambda_jobs = [Job("palate", "biased80", row, seed, LAMBDA_REGIME) for row in lambda_rows for seed in few]
    rnp = [(rnp_row(rate), seed) for rate in RATES for seed in few if seed < TUNING_SEEDS]
    regime_jobs = [
        Job("palate", setting, *row, regime)
        for row in (*(("a2r", seed) for seed in few), *rnp)
        for regime in OTHER_REGIMES
        for setting in CORE_SETTINGS
    ]
    return [*tuning, *a2r, *variant_jobs, *lambda_jobs, *regime_jobs]


def scouting_plan() -> list[Job]:
    """All regimes, with lower and higher learning rates of the generator."""
    rows = ("a2r", *map(rnp_row, RATES), "a2r-0.001")
    return [Job("palate", setting, row, 0, regime) for regime in REGIMES for row in rows for setting in CORE_SETTINGS]


def plan_selected_rates(out: Path, seeds: int) -> list[Job]:
    """RNP with the remaining seeds, for cells in which all rates have records."""
    ends = {MAIN_REGIME: seeds, **dict.fromkeys(OTHER_REGIMES, min(FEW_SEEDS, seeds))}
    selected = selected_rows(folder_records(out / "records"), min(TUNING_SEEDS, seeds))
    return [
        Job(*cell, row, seed, regime)
        for (regime, *cell), row in selected.items()
        for seed in range(TUNING_SEEDS, ends.get(regime, 0))
    ]


def selected_rows(records: Records, seeds: int = TUNING_SEEDS) -> dict[tuple[str, str, str], str]:
    """Regime, aspect, setting -> the best row of RNP, for cells in which every rate has every seed."""
    cells: dict[tuple[str, str, str], dict[tuple[str, int], float]] = {}
    for record in records:
        if record["row"] in map(rnp_row, RATES) and record["seed"] < seeds and "chosen" in record:
            cell = cells.setdefault((record["regime"], record["aspect"], record["setting"]), {})
            cell[record["row"], record["seed"]] = record["chosen"]["validation"]["accuracy"]
    return {cell: best_row(scores) for cell, scores in cells.items() if len(scores) == len(RATES) * seeds}


def best_row(scores: dict[tuple[str, int], float]) -> str:
    """The row with the highest mean over seeds; among equal ones, that with the lowest rate."""
    return max(map(rnp_row, RATES), key=lambda name: mean(value for (row, _), value in scores.items() if row == name))


def prepare(folder: Path, regime: str, seed: int, options: argparse.Namespace) -> None:
    """Write the reviews of a regime and seed to one file: the same texts for all aspects, with labels of each."""
    import numpy as np

    from steadygaze.data.corpora import TOKENS, add_shortcut
    from steadygaze.data.corpus import Corpus
    from steadygaze.data.planted.reviews import planted_reviews
    from steadygaze.data.sentence_roles import sentence_roles
    from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
    from steadygaze.data.word_vectors import read_vectors

    parts: dict[str, Any] = {}
    for aspect in ASPECTS:
        noise = 0.0 if regime == "plain" else LABEL_NOISE[aspect]
        corpus = Corpus("", planted_reviews(seed, aspect=aspect, sizes=options.sizes, noise=noise, **REGIMES[regime]))
        if not parts:
            shortcuts = " ".join(TOKENS[:2])
            words = build_word_tokenizer([*(example.text for example in corpus.splits["train"]), shortcuts])
            table = read_vectors(options.vectors, words.vocabulary, seed=seed)
            print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
            parts |= {"vectors": table.matrix.astype(np.float16), "roles": sentence_roles(words.vocabulary)}
            parts["tokens"] = words.encode([shortcuts]).ids[1:-1].astype(np.uint16)
        for split, examples in corpus.splits.items():
            texts = words.encode([example.text for example in examples])
            assert np.array_equal(parts.setdefault(f"{split}/ids", texts.ids.astype(np.uint16)), texts.ids)
            parts[f"{split}/starts"] = texts.starts
            parts[f"{split}/{aspect}/label"] = np.array([example.label == "positive" for example in examples])
            parts[f"{split}/{aspect}/truth"] = np.array([_true_sentence(example) for example in examples], np.uint8)
        for name, agreement in BIAS_AGREEMENT.items():
            for split, examples in add_shortcut(corpus, agreement, seed).splits.items():
                parts[f"{split}/{aspect}/{name}"] = np.array(
                    [TOKENS.index(example.text[0]) for example in examples], np.uint8
                )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{regime}.{seed}.npz", **parts)


def _true_sentence(example: Any) -> int:
    """The number of the sentence with the first rationale."""
    position = example.rationales[0][0]
    return next(i for i, (start, end) in enumerate(example.sentences) if start <= position < end)


def run_job(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from rationale_jobs import read_reviews, train_and_measure

    torch.set_num_threads(1)
    training = TRAINING | REGIME_TRAINING.get(job.regime, {}) | ({"epochs": options.epochs} if options.epochs else {})
    bias = job.setting if job.setting in BIAS_AGREEMENT else None
    file, max_texts = options.cut / f"{job.regime}.{job.seed}.npz", options.limit or training["max_texts"]
    reviews = read_reviews(file, job.aspect, bias, max_texts)
    return train_and_measure(reviews, technique_settings(job.row, job.setting), training, job.seed, options.device)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, required=True, help="folder of the prepared reviews")
    parser.add_argument("--vectors", default="glove-50d")
    parser.add_argument("--sizes", type=int, nargs=3, default=SIZES)
    parser.add_argument("--regimes", type=lambda names: names.split(","), help="regimes to prepare, default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scout", action="store_true", help="run all regimes on palate with one seed instead")
    parser.add_argument("--epochs", type=int, help="epochs; default: TRAINING")
    parser.add_argument("--limit", type=int, help="largest number of training texts; default: TRAINING")
    job_cells.options(parser)
    return parser.parse_args()


def job_plan(options: argparse.Namespace) -> list[Job]:
    if options.scout:
        return scouting_plan()
    return [*plan(options.seeds), *plan_selected_rates(options.out, options.seeds)]


def main() -> None:
    options = parse_arguments()
    if options.out is None:
        for regime in options.regimes or REGIMES:
            for seed in range(options.seeds):
                prepare(options.cut, regime, seed, options)
    else:  # the records of the first round select the rates of the second
        job_cells.run(options, partial(job_plan, options), partial(run_job, options), rounds=2)


if __name__ == "__main__":
    import rationales  # workers import the jobs from this module, not from the script

    rationales.main()
