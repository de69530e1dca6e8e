"""Leakage warnings and verdicts for rationalizers that leak the label through their selection, and for others.

    xor.*        the label is the exclusive or of two sentences and one is selected (reviews.py): accuracy
                 above chance is leakage.  A fit that learns nothing, by its accuracy on validation texts, is
                 repeated with other initial weights, at most ATTEMPTS times
    planted.*    planted reviews, where one sentence determines the label; negated: 15 % of the opinions are negated
    one-sided.*  comments of which 30, 50 or 70 % have one toxic sentence; the others have none (reviews.py)

One job trains one small rationalizer with one seed, on reviews of that seed.  A record has the warning at the end of
training, the audit's warning and its verdict on faithfulness (test texts), the accuracy of the rationalizer and of its
independent reader on test texts, and the CPU time of the fit and of the reader.  For one-sided comments it counts the
neutral sentences that the predictor classifies as toxic without other sentences: if there are any, the choice among
neutral sentences carries the label, and a warning is right.
"""

import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from studies import jobs

LEAKING_ACCURACY = 0.65
"""A model of the XOR reviews with this accuracy or more leaks the label."""
ATTEMPTS = 5
"""Largest number of fits, with other initial weights, until a model of the XOR reviews leaks on validation texts."""
SETTINGS: dict[str, Any] = {"hidden": 32, "dimension": 100, "generator_learning_rate": 1e-3, "learning_rate": 3e-3}
XOR_SETTINGS: dict[str, Any] = {**SETTINGS, "generator_learning_rate": 3e-3, "patience": 60}
ROWS: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "xor.rnp": ("xor", "rnp", 1000, 40, XOR_SETTINGS),
    "xor.rnp-straight-through": ("xor", "rnp", 1000, 40, {**XOR_SETTINGS, "estimator": "straight-through"}),
    "planted.a2r": ("planted", "a2r", 2000, 12, SETTINGS),
    "planted.rnp": ("planted", "rnp", 2000, 12, SETTINGS),
    "negated.a2r": ("negated", "a2r", 2000, 12, SETTINGS),
    "negated.rnp": ("negated", "rnp", 2000, 12, SETTINGS),
    **{
        f"one-sided-{share}.{technique}": (f"one-sided-{share}", technique, 1000, 12, SETTINGS)
        for share in (30, 50, 70)
        for technique in ("a2r", "rnp")
    },
}
"""Row -> kind of texts, technique, number of training texts, epochs, settings."""
LEAKAGE = "Label leakage"
"""The first words of the warning."""
HELD_OUT = 400
"""Number of validation texts, and of test texts."""


@dataclass(frozen=True)
class Job(jobs.Job):
    row: str
    seed: int


def plan(first: int, seeds: int) -> list[Job]:
    return [Job(row, seed) for seed in range(first, first + seeds) for row in ROWS]


def splits(kind: str, count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Training, validation and test texts with labels."""
    from steadygaze.data.planted.reviews import planted_reviews
    from studies.xor_rationalizer.reviews import one_sided_comments, xor_reviews

    sizes = count, HELD_OUT, HELD_OUT
    if kind == "xor":
        return [xor_reviews(size, 3 * seed + part) for part, size in enumerate(sizes)]
    if kind.startswith("one-sided"):
        share = int(kind.removeprefix("one-sided-")) / 100
        return [one_sided_comments(size, 3 * seed + part, share) for part, size in enumerate(sizes)]
    options: dict[str, Any] = {} if kind == "negated" else {"negation": 0.0}
    reviews = planted_reviews(seed, aspect="palate", sizes=sizes, **options)
    return [([example.text for example in part], [str(example.label) for example in part]) for part in reviews.values()]


def run_job(options: "Options", job: Job) -> dict[str, Any]:
    import torch

    import steadygaze as sg
    from steadygaze.results.leakage_warnings import GAP, RANDOM_WORDS, READER
    from steadygaze.results.note import NoteCode
    from studies.xor_rationalizer.reviews import NEUTRAL

    torch.set_num_threads(1)
    kind, technique, count, epochs, settings = ROWS[job.row]
    count, epochs = min(count, options.limit or count), options.epochs or epochs
    train, validation, test = splits(kind, count, job.seed)
    for attempt in range(ATTEMPTS if kind == "xor" else 1):
        stop_clock = _start_clock()
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
        seconds = stop_clock()
        if clf.score(*validation) >= LEAKING_ACCURACY:
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
        "audit warned": any(note.code == NoteCode.LABEL_LEAKAGE for note in report.notes),
        "faithfulness": next(verdict.answer for verdict in report.verdicts if verdict.key == "faithfulness"),
        "selected": [" ".join(word for word, _ in sorted(clf.explain(text).top())) for text in test[0][:3]],
        **({"neutral as toxic": int((clf.predict(NEUTRAL) == "toxic").sum())} if kind.startswith("one-sided") else {}),
        **seconds,
    }


def _start_clock() -> Any:
    """Measure the CPU time of a fit and of its reader; the result returns the seconds."""
    from steadygaze.estimator import fit

    seconds, add_reader, started = {"reader": 0.0}, fit.add_reader, time.process_time()

    def timed(*args: Any, **more: Any) -> Any:
        seconds["fit"] = time.process_time() - started
        result = add_reader(*args, **more)
        seconds["reader"] = time.process_time() - started - seconds["fit"]
        return result

    fit.add_reader = timed

    def stop() -> dict[str, float]:
        fit.add_reader = add_reader
        return {"fit seconds": seconds["fit"], "reader seconds": seconds["reader"]}

    return stop


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """The independent reader was designed on seeds 0 to 9."""

    seeds: int = 10
    first_seed: int = 10
    limit: int | None = field(default=None, metadata={"help": "largest number of training texts, for a trial"})
    epochs: int | None = None


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.first_seed, options.seeds), partial(run_job, options))
