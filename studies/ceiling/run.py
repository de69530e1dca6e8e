"""How much of the exact best order of words the best known orders reach, in texts that are short enough to enumerate.

The upper end of the scale of faithfulness is exact in short texts and the best of some known orders in others: those
of `good_orders`, or of a beam search in thorough audits.  Here both are computed for the same texts, of 4 to 9 words:

    reach = Σ (known − shuffled) / Σ (exact − shuffled)        sums over texts; shuffled: the mean of all orders

Models: the 24 rules of studies/oracles on generated words, and trained networks on sentences of Rotten Tomatoes.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pyarrow import parquet
from torch import Tensor

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.maths.subsets import best_order, mean_order
from steadygaze.core.types import Batch, Example
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.probes.beam_search import WIDTH, searched_orders
from steadygaze.properties.probes.best_orders import good_orders
from steadygaze.properties.probes.erasure import ERASER, SHARES, erase_words
from steadygaze.properties.probes.subset_predictions import THOROUGH_WORDS, size_coefficients, subset_predictions
from steadygaze.properties.protocols.relative_erasure import REMOVED, lost_and_kept
from steadygaze.results.audit_config import ProbeConfig
from studies import jobs
from studies.data_folder import VARIABLE
from studies.oracles.models import MODELS, adapter
from studies.oracles.worlds import Shape, world

ENCODERS = ("average", "cnn", "bilstm")
"""Trained networks."""
SHAPE, SEED, TEXTS, FEWEST = Shape(4, THOROUGH_WORDS - 1, density=0.3), 300, 100, 4
TRAINING_TEXTS = 4_000
SEARCHES = {"greedy": 1, "beam": WIDTH}
"""Name -> width of the beam."""


@dataclass(frozen=True)
class Case(jobs.Job):
    model: str
    texts: int


def plan(texts: int) -> list[Case]:
    return [Case(model, texts) for model in (*MODELS, *ENCODERS) if model != "constant"]


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    texts: int = TEXTS


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.texts), measure)


def measure(case: Case) -> dict[str, Any]:
    """The mean scores of known, exact and shuffled orders, under REMOVED."""
    if case.model in ENCODERS:
        loaded, examples = _trained(case.model, case.texts)
    else:
        here = world("short", SEED, case.texts, SHAPE)
        loaded, examples = adapter(here, case.model), here.examples
    audited = prepare(loaded, examples, {}, ProbeConfig(seed=SEED)).case
    totals: dict[str, Tensor] = {}
    number = 0
    for rows, batch in audited.batches():
        full = audited.probs[torch.from_numpy(rows)]
        enumerated, means = scores(audited.model, batch, full)
        number += int(enumerated.sum())
        for name, values in means.items():
            totals[name] = totals.get(name, torch.zeros(len(REMOVED))) + values[enumerated].sum(0)
    parts = {name: dict(zip(REMOVED, (total / number).tolist(), strict=True)) for name, total in totals.items()}
    return {"n": number, "means": parts}


def scores(model: Model, batch: Batch, full: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Which texts are enumerated, and the drop and the kept probability of each kind of order.  (B,), (B,2) each"""
    table = subset_predictions(model, batch, full.argmax(-1), ERASER, THOROUGH_WORDS)
    units = units_of(batch, question=False)
    words = units.mask.sum(-1)
    best, mean = (torch.full((len(batch), 2), torch.nan, dtype=torch.float64) for _ in range(2))
    for n in range(FEWEST, THOROUGH_WORDS + 1):
        rows = (words == n).nonzero().squeeze(-1)
        coefficients = size_coefficients(n, SHARES)
        for column, values in enumerate(lost_and_kept(table[rows, : 1 << n])):
            best[rows, column] = best_order(values, coefficients)[0]
            mean[rows, column] = mean_order(values, coefficients)
    by_name = {"exact": best, "shuffled": mean}
    good = good_orders(model, batch, full)
    by_name["good orders"] = torch.stack([_of_order(model, batch, full, order) for order in good]).amax(0)
    known = units.total(good[-1])
    for name, width in SEARCHES.items():
        orders = searched_orders(model, batch, full, known, ERASER, width).nan_to_num(0.0).unbind(1)
        found = [_of_order(model, batch, full, units.on_first(order)) for order in orders]
        by_name[name] = torch.stack(found).amax(0)
    return best.isfinite().all(-1), by_name


def _of_order(model: Model, batch: Batch, full: Tensor, order: Tensor) -> Tensor:
    index = full.argmax(-1).view(-1, 1, 1).expand(-1, len(SHARES), 1)
    without, alone = (probs.gather(-1, index).mean((1, 2)) for probs in erase_words(model, batch, full, order))
    return torch.stack([full.amax(-1) - without, alone], -1)


def _trained(encoder: str, texts: int) -> tuple[ModelAdapter, list[Example]]:
    """A network and short sentences that it was not trained on."""
    folder = Path(os.environ[VARIABLE]) / "rotten_tomatoes"
    table = parquet.read_table(folder / "train.parquet").to_pydict()
    chosen = np.random.default_rng(SEED).permutation(len(table["text"]))[:TRAINING_TEXTS]
    training = [table["text"][i] for i in chosen], [table["label"][i] for i in chosen]
    model = sg.TextClassifier(encoder=encoder, seed=SEED, device="cpu").fit(*training)
    held_out = parquet.read_table(folder / "test.parquet").to_pydict()
    short = [text for text in held_out["text"] if FEWEST <= len(text.split()) <= THOROUGH_WORDS]
    return as_adapter(model), [Example(text) for text in short[:texts]]
