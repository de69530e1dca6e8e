"""Who locks on the first sentence?  Table 2 of Yu et al. 2021 (A2R, arXiv:2110.13880), on reviews whose truth is known.

    python bench/rationales.py --cut DIR [--seeds 5] [--regimes easy] [--vectors glove-50d]      # once: what is needed
    python bench/rationales.py --cut DIR --out DIR [--workers 14] [--device cuda] [--only REGEX] [--scout]
    python bench/rationales_table.py DIR/records

    regime      how the reviews are drawn: REGIMES
    setting     standard; skewed10, 15, 20: the predictor first learns from the first sentence alone, so many epochs;
                biased70, 75, 80: a token before the text agrees with the label so often
    row         rnp-RATE (the generator's step size), a2r, a2r-RATE, a2r-lambda-λ

One job is one row trained with one seed on one aspect in one setting; each seed has a corpus of its own.  RNP's rate is
tuned: all RATES with the first TUNED seeds; the rate of the best mean accuracy on validation texts, for each regime,
aspect and setting its own, goes on with the other seeds.  SLOWER ones are tried beside, and never chosen.  A2R is not
tuned: it has the released code's rate, the slowest of RATES.  The epoch is chosen as in every training of ours, by
macro-F1 on the same texts.  Jobs run side by side; what is there is not done again.  A file of --cut holds the reviews
of a seed as ids, and the vectors of their words.  --scout tries all regimes, on palate with one seed.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import job_cells
from tables import folder_records

SIZES = (15_000, 1_000, 2_000)
NOISE = {"appearance": 0.04, "aroma": 0.04, "palate": 0.06}
"""How often a label is not what its review says, in all regimes but `plain`."""
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
"""Options of planted_reviews.  The first is the one of the tables.  The next three differ from it in how a model is
trained (RUNS), the others take one thing back to how reviews come; `plain`, everything.
"""
CHOSEN, NEIGHBORS = "easy", ("many", "large", "dropout", "negated", "apart", "shared")
RUN: dict[str, Any] = {
    "hidden": 100,
    "score": "additive",
    "dropout": 0.0,
    "most": 6_000,
    "batch_size": 50,
    "epochs": 8,
}
RUNS: dict[str, dict[str, Any]] = {
    "many": {"most": 15_000},
    "large": {"most": 15_000, "batch_size": 200, "epochs": 11},  # 825 steps for 960, 75 an epoch for 120
    "dropout": {"dropout": 0.2},
}
ASPECTS = ("palate", "aroma", "appearance")
SKEWED = {"skewed10": 10, "skewed15": 15, "skewed20": 20}
BIASED = {"biased70": 0.7, "biased75": 0.75, "biased80": 0.8}
SETTINGS = ("standard", *SKEWED, *BIASED)
HARD = ("standard", "skewed20", "biased80")
RATES = (1e-4, 3e-4, 1e-3)
SLOWER = (1e-5, 3e-5)
TUNED = 2
LAMBDAS = (0.0, 0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
"""Beside 1, which is `a2r`."""
ROOM = "negated"
"""A regime in which A2R is not sure by itself: some of LAMBDAS are tried there too."""
FEWER = 3
"""Seeds of the curve of λ and of the neighboring regimes."""


@dataclass(frozen=True)
class Job:
    aspect: str
    setting: str
    row: str
    seed: int
    regime: str = CHOSEN

    @property
    def id(self) -> str:
        return f"{self.regime}.{self.aspect}.{self.setting}.{self.row}.s{self.seed}"


def rnp(rate: float) -> str:
    return f"rnp-{rate:g}"


def settings(row: str, setting: str) -> tuple[str, dict[str, Any]]:
    """The technique of a row, and how it is set."""
    name, _, rest = row.partition("-")
    how: dict[str, Any] = {"skewed": SKEWED.get(setting, 0)}
    if rest.startswith("lambda-"):
        how["agreement"] = float(rest.removeprefix("lambda-"))
    elif rest:
        how["generator_learning_rate"] = float(rest)
    return name, how


def plan(seeds: int) -> list[Job]:
    """What can be said before anything has run, what matters most first."""
    cells = [(aspect, setting) for aspect in ASPECTS for setting in SETTINGS]
    rows = [(seed, row) for seed in range(min(TUNED, seeds)) for row in ("a2r", *map(rnp, RATES))]
    tuned = [Job(*cell, row, seed) for cell in cells for seed, row in rows]
    others = [Job(*cell, "a2r", seed) for cell in cells for seed in range(TUNED, seeds)]
    few = range(min(FEWER, seeds))
    beside = [f"a2r-{rate:g}" for rate in RATES[1:]] + [f"a2r-lambda-{strength:g}" for strength in LAMBDAS]
    beside += map(rnp, SLOWER)
    more = [Job("palate", setting, row, seed) for seed in few for row in beside for setting in HARD]
    more += [Job("palate", "biased80", f"a2r-lambda-{strength:g}", seed, ROOM) for strength in LAMBDAS for seed in few]
    ours = [("a2r", seed) for seed in few] + [(rnp(rate), seed) for rate in RATES for seed in few if seed < TUNED]
    near = [Job("palate", setting, *row, regime) for row in ours for regime in NEIGHBORS for setting in HARD]
    return [*tuned, *others, *more, *near]


def scouted() -> list[Job]:
    """Where the pattern is to be looked for: each regime, and slower and faster generators."""
    rows = ("a2r", *map(rnp, RATES), "a2r-0.001")
    return [Job("palate", setting, row, 0, regime) for regime in REGIMES for row in rows for setting in HARD]


def plan_tuned(out: Path, seeds: int) -> list[Job]:
    """RNP with the other seeds, wherever all of its rates have been tried."""
    many = {CHOSEN: seeds, **dict.fromkeys(NEIGHBORS, min(FEWER, seeds))}
    rates = tuned(folder_records(out / "records"), min(TUNED, seeds))
    return [Job(*cell, row, seed, at) for (at, *cell), row in rates.items() for seed in range(TUNED, many.get(at, 0))]


def tuned(results: list[dict[str, Any]], seeds: int = TUNED) -> dict[tuple[str, str, str], str]:
    """The row of RNP that goes on, by regime, aspect and setting: where every rate has been tried with every seed."""
    cells: dict[tuple[str, str, str], dict[tuple[str, int], float]] = {}
    for record in results:
        if record["row"] in map(rnp, RATES) and record["seed"] < seeds and "chosen" in record:
            cell = cells.setdefault((record["regime"], record["aspect"], record["setting"]), {})
            cell[record["row"], record["seed"]] = record["chosen"]["validation"]["accuracy"]
    return {cell: best(tried) for cell, tried in cells.items() if len(tried) == len(RATES) * seeds}


def best(tried: dict[tuple[str, int], float]) -> str:
    """The row of the highest mean over seeds; of equals, the slowest."""
    return max(map(rnp, RATES), key=lambda name: mean(value for (row, _), value in tried.items() if row == name))


def cut(folder: Path, regime: str, seed: int, options: argparse.Namespace) -> None:
    """Everything the jobs of a seed need, in one small file: one text for all aspects, each with labels of its own."""
    import numpy as np

    from steadygaze.data.corpora import TOKENS
    from steadygaze.data.corpora import add_shortcut as biased
    from steadygaze.data.corpus import Corpus
    from steadygaze.data.planted.reviews import planted_reviews
    from steadygaze.data.sentence_roles import sentence_roles
    from steadygaze.data.word_tokenizer import SPECIALS
    from steadygaze.data.word_tokenizer import build_word_tokenizer as build_words
    from steadygaze.data.word_vectors import read_vectors

    parts: dict[str, Any] = {}
    for aspect in ASPECTS:
        noise = 0.0 if regime == "plain" else NOISE[aspect]
        corpus = Corpus("", planted_reviews(seed, aspect=aspect, sizes=options.sizes, noise=noise, **REGIMES[regime]))
        if not parts:
            leads = " ".join(TOKENS[:2])
            words = build_words([*(example.text for example in corpus.splits["train"]), leads])
            table = read_vectors(options.vectors, words.vocabulary, seed=seed)
            print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
            parts |= {"vectors": table.matrix.astype(np.float16), "roles": sentence_roles(words.vocabulary)}
            parts["tokens"] = words.encode([leads]).ids[1:-1].astype(np.uint16)
        for split, examples in corpus.splits.items():
            read = words.encode([example.text for example in examples])
            assert np.array_equal(parts.setdefault(f"{split}/ids", read.ids.astype(np.uint16)), read.ids)
            parts[f"{split}/starts"] = read.starts
            parts[f"{split}/{aspect}/label"] = np.array([example.label == "positive" for example in examples])
            parts[f"{split}/{aspect}/truth"] = np.array([_sentence(example) for example in examples], np.uint8)
        for name, agreement in BIASED.items():
            for split, examples in biased(corpus, agreement, seed).splits.items():
                parts[f"{split}/{aspect}/{name}"] = np.array(
                    [TOKENS.index(example.text[0]) for example in examples], np.uint8
                )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{regime}.{seed}.npz", **parts)


def _sentence(example: Any) -> int:
    """Which one holds the rationales."""
    at = example.rationales[0][0]
    return next(i for i, (start, end) in enumerate(example.sentences) if start <= at < end)


def done(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    from rationale_jobs import read, train_and_measure

    torch.set_num_threads(1)
    run = RUN | RUNS.get(job.regime, {}) | ({"epochs": options.epochs} if options.epochs else {})
    bias = job.setting if job.setting in BIASED else None
    reviews = read(options.cut / f"{job.regime}.{job.seed}.npz", job.aspect, bias, options.limit or run["most"])
    return train_and_measure(reviews, settings(job.row, job.setting), run, job.seed, options.device)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, required=True)
    parser.add_argument("--vectors", default="glove-50d")
    parser.add_argument("--sizes", type=int, nargs=3, default=SIZES)
    parser.add_argument("--regimes", type=lambda names: names.split(","), help="to be cut; all, if none is named")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scout", action="store_true", help="another plan: all regimes a little")
    parser.add_argument("--epochs", type=int, help="instead of RUN's")
    parser.add_argument("--limit", type=int, help="training texts at most, instead of RUN's")
    job_cells.options(parser)
    return parser.parse_args()


def wanted(options: argparse.Namespace) -> list[Job]:
    return scouted() if options.scout else [*plan(options.seeds), *plan_tuned(options.out, options.seeds)]


def main() -> None:
    options = arguments()
    if options.out is None:
        for regime in options.regimes or REGIMES:
            for seed in range(options.seeds):
                cut(options.cut, regime, seed, options)
    else:
        job_cells.run(
            options, partial(wanted, options), partial(done, options), rounds=2
        )  # in the second, rates are tuned


if __name__ == "__main__":
    import rationales  # workers import the jobs from this module, not from the script

    rationales.main()
