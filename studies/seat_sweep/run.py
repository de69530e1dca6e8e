"""SEAT under all readings of its constants: a sweep on four two-class data sets, with collapse statistics and probes.

One job trains the models of one block as one program on a GPU and measures each of them:

    vanilla      with scores divided by 1, 2, 4, 8 and 16, three seeds; and word-at, anchored, consensus
    paper, joint R x λ1 x λ2 x divergence: 72 settings, three seeds, from the vanilla model of the same seed
    released     λ2 x radius x clamp: 36 settings, three seeds, fresh weights

Data: SST-2, Rotten Tomatoes, TweetEval hate, and TweetEval emotion with anger and joy alone, as in the paper.
A record has the `models` of a block, each with its probes on a grid of radii.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.adapters.load_and_explain import load
from steadygaze.estimator.resumable_training import ClassifierFit, columns, fit_many
from steadygaze.estimator.text_classifier import TextClassifier
from studies import jobs
from studies.seat_sweep.data import SweepStudy
from studies.seat_sweep.plan import SEEDS, Block, plan
from studies.seat_sweep.probes import measure
from studies.stability.models import TRAINING_TABLE, divide_scores, read_vectors_once


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    glove: Path = field(metadata={"help": "file of word vectors"})
    synonyms: Path = field(metadata={"help": "folder of synonym tables"})
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "texts per split, for a trial run"})


def run(options: Options) -> None:
    """The reference models are made in any case."""
    warnings.simplefilter("ignore")
    study = SweepStudy(
        out=options.out.resolve(),
        glove=options.glove.resolve(),
        synonyms=options.synonyms.resolve(),
        device=options.device,
        epochs=options.epochs,
        limit=options.limit,
    )
    blocks = [block for block in plan() if block.is_reference or re.search(options.only, block.id)]
    jobs.run(replace(options, only=""), lambda: blocks, partial(run_block, study), needs=Block.needs)


def run_block(study: SweepStudy, block: Block) -> dict[str, Any]:
    """Train, or flatten, the models of a block, and measure them."""
    if block.is_reference:
        for _, seed, clf in fit(study, block):
            clf.save(study.reference(block.data, seed))
        return {"models": []}
    models = tempered(study, block) if block.technique == "vanilla" else fit(study, block)
    rows = [
        measure(study, block.data, clf, seed, block.radii) | {"row": block.row, "settings": values}
        for values, seed, clf in models
    ]
    return {"models": rows}


Models = Iterator[tuple[dict[str, Any], int, TextClassifier]]
"""Settings, seed and model."""


def tempered(study: SweepStudy, block: Block) -> Models:
    """Vanilla models with divided scores; 1: unchanged."""
    for values in block.settings:
        for seed in range(SEEDS):
            clf = load(study.reference(block.data, seed), device=study.device)
            divide_scores(clf.stored_.model, values["temperature"])
            yield values, seed, clf


def fit(study: SweepStudy, block: Block) -> Models:
    """The models of a block, trained at the same time; not those whose training diverged."""
    read_vectors_once()
    keys = [(values, seed) for values in block.settings for seed in range(SEEDS)]
    fits = [
        ClassifierFit(
            TextClassifier(
                "bilstm",
                block.technique,
                seed=seed,
                epochs=study.epochs,
                vectors=study.glove,
                settings={**values, "synonyms": str(study.synonyms / TRAINING_TABLE)},
                device=study.device,
                verbose=False,
            ),
            [load(study.reference(block.data, seed), device=study.device)] if block.starts else [],
        )
        for values, seed in keys
    ]
    train, validation = (columns(study.examples(block.data, split)) for split in ("train", "validation"))
    models = fit_many(fits, *train, validation=validation)
    return ((values, seed, clf) for (values, seed), clf in zip(keys, models, strict=True) if clf is not None)
