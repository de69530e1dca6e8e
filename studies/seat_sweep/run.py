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
from dataclasses import replace
from functools import partial
from typing import Any

from steadygaze.adapters.load_and_explain import load
from steadygaze.estimator.resumable_training import ClassifierFit, columns, fit_many
from steadygaze.estimator.text_classifier import TextClassifier
from studies import jobs
from studies.seat_sweep.data import Options
from studies.seat_sweep.plan import SEEDS, Block, plan
from studies.seat_sweep.probes import measure
from studies.stability.models import TRAINING_TABLE, divide_scores, read_vectors_once


def run(options: Options) -> None:
    """The reference models are made in any case."""
    warnings.simplefilter("ignore")
    blocks = [block for block in plan() if block.is_reference or re.search(options.only, block.id)]
    jobs.run(replace(options, only=""), lambda: blocks, partial(run_block, options), needs=Block.needs)


def run_block(options: Options, block: Block) -> dict[str, Any]:
    """Train, or flatten, the models of a block, and measure them."""
    if block.is_reference:
        for _, seed, clf in fit(options, block):
            clf.save(options.reference(block.data, seed))
        return {"models": []}
    models = tempered(options, block) if block.technique == "vanilla" else fit(options, block)
    rows = [
        measure(options, block.data, clf, seed, block.radii) | {"row": block.row, "settings": values}
        for values, seed, clf in models
    ]
    return {"models": rows}


Models = Iterator[tuple[dict[str, Any], int, TextClassifier]]
"""Settings, seed and model."""


def tempered(options: Options, block: Block) -> Models:
    """Vanilla models with divided scores; 1: unchanged."""
    for values in block.settings:
        for seed in range(SEEDS):
            clf = load(options.reference(block.data, seed), device=options.device)
            divide_scores(clf.stored_.model, values["temperature"])
            yield values, seed, clf


def fit(options: Options, block: Block) -> Models:
    """The models of a block, trained at the same time; not those whose training diverged."""
    read_vectors_once()
    keys = [(values, seed) for values in block.settings for seed in range(SEEDS)]
    fits = [
        ClassifierFit(
            TextClassifier(
                "bilstm",
                block.technique,
                seed=seed,
                epochs=options.epochs,
                vectors=options.glove,
                settings={**values, "synonyms": str(options.synonyms / TRAINING_TABLE)},
                device=options.device,
                verbose=False,
            ),
            [load(options.reference(block.data, seed), device=options.device)] if block.starts else [],
        )
        for values, seed in keys
    ]
    train, validation = (columns(options.examples(block.data, split)) for split in ("train", "validation"))
    models = fit_many(fits, *train, validation=validation)
    return ((values, seed, clf) for (values, seed), clf in zip(keys, models, strict=True) if clf is not None)
