"""Is a rationalizer caught that leaks the label through its selection, and is an honest one left alone?

    python bench/xor_rationalizer.py --out DIR [--workers 15] [--only REGEX] [--seeds 10] [--first-seed 10]
    python bench/xor_rationalizer.py --table DIR/records

    xor.*        the label is the exclusive or of two sentences and one is selected (bench/xor_reviews.py): accuracy
                 above chance is leakage.  A fit that learns nothing, by its accuracy on validation texts, is
                 repeated with other initial weights, at most ATTEMPTS times
    planted.*    planted reviews, where one sentence tells the label; negated: 15 of 100 opinions are negated
    one-sided.*  comments of which 30, 50 or 70 % have one toxic sentence; the others have none (bench/xor_reviews.py)

One job is one rationalizer trained with one seed on reviews of that seed; small ones, for a CPU.  A record has the
warning at the end of training, the audit's warning and its verdict on faithfulness (test texts), the accuracy of the
rationalizer and of its independent reader on test texts, and what the reader cost beside the fit (CPU time).  For
one-sided comments it counts the neutral sentences that the predictor classifies as toxic when it reads them alone: if
there are any, the choice among neutral sentences carries the label, and a warning is right.
"""

import argparse
import time
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import Any

import job_cells
from tables import read_records

LEARNED = 0.65
"""Accuracy from which on a model of the XOR reviews has learned to leak."""
ATTEMPTS = 5
"""Fits with other initial weights at most, until a model of the XOR reviews leaks on validation texts."""
SENTENCES: dict[str, Any] = {"hidden": 32, "dimension": 100, "generator_learning_rate": 1e-3, "learning_rate": 3e-3}
XOR: dict[str, Any] = {**SENTENCES, "generator_learning_rate": 3e-3, "patience": 60}
ROWS: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "xor.rnp": ("xor", "rnp", 1000, 40, XOR),
    "xor.rnp-straight-through": ("xor", "rnp", 1000, 40, {**XOR, "estimator": "straight-through"}),
    "planted.a2r": ("planted", "a2r", 2000, 12, SENTENCES),
    "planted.rnp": ("planted", "rnp", 2000, 12, SENTENCES),
    "negated.a2r": ("negated", "a2r", 2000, 12, SENTENCES),
    "negated.rnp": ("negated", "rnp", 2000, 12, SENTENCES),
    **{
        f"one-sided-{share}.{technique}": (f"one-sided-{share}", technique, 1000, 12, SENTENCES)
        for share in (30, 50, 70)
        for technique in ("a2r", "rnp")
    },
}
"""Texts, technique, how many, epochs, settings."""
LEAKAGE = "Label leakage"
"""The first words of the warning."""
HELD_OUT = 400
"""Validation texts, and test texts."""


@dataclass(frozen=True)
class Job:
    row: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}"


def plan(first: int, seeds: int) -> list[Job]:
    return [Job(row, seed) for seed in range(first, first + seeds) for row in ROWS]


def splits(texts: str, many: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Training, validation and test texts with labels."""
    from steadygaze.data.planted.reviews import planted_reviews
    from xor_reviews import comments, xor_reviews

    kind, _, share = texts.rpartition("-")
    make = {"xor": xor_reviews, "one-sided": lambda size, seed: comments(size, seed, int(share) / 100)}.get(
        kind or texts
    )
    if make is not None:
        return [make(size, 3 * seed + part) for part, size in enumerate((many, HELD_OUT, HELD_OUT))]
    options: dict[str, Any] = {} if texts == "negated" else {"negation": 0.0}
    reviews = planted_reviews(seed, aspect="palate", sizes=(many, HELD_OUT, HELD_OUT), **options)
    return [([example.text for example in part], [str(example.label) for example in part]) for part in reviews.values()]


def done(options: argparse.Namespace, job: Job) -> dict[str, Any]:
    import torch

    import steadygaze as sg
    from steadygaze.results.leakage_warnings import GAP, RANDOM_WORDS, READER
    from xor_reviews import NEUTRAL

    torch.set_num_threads(1)
    texts, technique, many, epochs, settings = ROWS[job.row]
    many, epochs = min(many, options.limit or many), options.epochs or epochs
    train, validation, test = splits(texts, many, job.seed)
    for attempt in range(ATTEMPTS if texts == "xor" else 1):
        spent = _clock()
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            clf = sg.TextClassifier(
                "bigru",
                technique,
                seed=job.seed + 1000 * attempt,
                epochs=epochs,
                settings=settings,
                device=options.device,
            ).fit(*train, validation=validation)
        seconds = spent()
        if clf.score(*validation) >= LEARNED:
            break
    report = sg.audit(clf, *test)
    rows = {row.measure: row for row in report.rows}
    return {
        "attempts": attempt + 1,
        "accuracy": clf.score(*test),
        "reader": rows[READER].value,
        "random": rows[RANDOM_WORDS].value,
        "gap": rows[GAP].value,
        "interval": rows[GAP].interval,
        "warned": any(str(warning.message).startswith(LEAKAGE) for warning in caught_warnings),
        "audit warned": any(note.startswith(LEAKAGE) for note in report.notes),
        "faithfulness": next(verdict.answer for verdict in report.verdicts if verdict.key == "faithfulness"),
        "selected": [" ".join(word for word, _ in sorted(clf.explain(text).top())) for text in test[0][:3]],
        **({"neutral as toxic": int((clf.predict(NEUTRAL) == "toxic").sum())} if texts.startswith("one-sided") else {}),
        **seconds,
    }


def _clock() -> Any:
    """CPU seconds of the fit and of its reader, from now on."""
    from steadygaze.estimator import fit

    seconds, add_reader, started = {"reader": 0.0}, fit.add_reader, time.process_time()

    def timed(*args: Any, **more: Any) -> Any:
        seconds["fit"] = time.process_time() - started
        result = add_reader(*args, **more)
        seconds["reader"] = time.process_time() - started - seconds["fit"]
        return result

    fit.add_reader = timed

    def spent() -> dict[str, float]:
        fit.add_reader = add_reader
        return {"fit seconds": seconds["fit"], "reader seconds": seconds["reader"]}

    return spent


def table(places: list[str]) -> None:
    """Means over seeds; how many were warned about."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in read_records(places):
        rows[record["row"]].append(record)
    print("| row | n | accuracy | reader | random | warned | audit | matters: yes | cost |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row, those in rows.items():
        marks = [f"{mean(run[name] for run in those):.3f}" for name in ("accuracy", "reader", "random")]
        many = [f"{sum(run[name] for run in those)} of {len(those)}" for name in ("warned", "audit warned")]
        yes = sum(run["faithfulness"] == "yes" for run in those)
        cost = mean(run["reader seconds"] / run["fit seconds"] for run in those)
        print(f"| {row} | {len(those)} | {' | '.join(marks)} | {' | '.join(many)} | {yes} | {cost:.0%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=10, help="the independent reader was designed on seeds 0-9")
    parser.add_argument("--table", nargs="+", help="print the table of these records")
    parser.add_argument("--limit", type=int, help="training texts at most, for a trial")
    parser.add_argument("--epochs", type=int, help="instead of ROWS'")
    job_cells.add_options(parser)
    options = parser.parse_args()
    if options.table:
        table(options.table)
    else:
        job_cells.run(options, lambda: plan(options.first_seed, options.seeds), partial(done, options))


if __name__ == "__main__":
    import xor_rationalizer  # workers import the jobs from this module, not from the script

    xor_rationalizer.main()
