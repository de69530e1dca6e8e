"""A2R on 2,000 generated reviews with two learning rates of the generator: docs/how-to/extract-rationales.md.

The command of that page, once for each rate and seed; about 3 CPU minutes per run.  A run whose record is in the file
is not repeated.
"""

import json
from pathlib import Path
from statistics import mean
from typing import Annotated

import typer

import steadygaze as sg
from steadygaze.core.types import inputs_of
from steadygaze.estimator.resumable_training import columns
from studies.tables import read_records

CORPUS = "planted-reviews:aspect=palate,sizes=[2000,200,200]"
RATES = (1e-3, 1e-4)


def measure(rate: float, seed: int) -> dict[str, float]:
    """Train one model, and measure it on the test reviews."""
    splits = sg.load_corpus(CORPUS).splits
    train, validation, test = (splits[name] for name in ("train", "validation", "test"))
    settings = {"hidden": 32, "generator_learning_rate": rate}
    clf = sg.TextClassifier("bigru", technique="a2r", settings=settings, seed=seed, device="cpu")
    clf.fit(*columns(train), validation=columns(validation))
    explanations = clf.explain(inputs_of(test))
    hits = [
        any(
            begin < stop and start < end
            for begin, end, _ in e.rationale or ()
            for start, stop in example.rationales or ()
        )
        for e, example in zip(explanations, test, strict=True)
    ]
    right = [e.label == example.label for e, example in zip(explanations, test, strict=True)]
    return {"rate": rate, "seed": seed, "n": len(test), "right_sentence": mean(hits), "accuracy": mean(right)}


def run(*, out: Annotated[Path, typer.Option(help="file of the records")], seeds: int = 3) -> None:
    done = {(record["rate"], record["seed"]) for record in read_records([out] if out.exists() else [])}
    for seed in range(seeds):
        for rate in RATES:
            if (rate, seed) not in done:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(measure(rate, seed)) + "\n")
