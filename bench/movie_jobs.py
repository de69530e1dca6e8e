"""One job of bench/movies.py: reviews from a cut file, a row trained on them, and how much of what it selects people
marked.

Words are what is selected and scored, whatever is read: where pieces of words are, a word has the mean chance of its
pieces, windows are chosen of words, and all pieces of a chosen word are read.  In training, and where its epoch is
chosen, MiniLM selects pieces.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from movie_reviews import SPLITS, Page, Reviews, Split, read
from movies import LONG, MINILM, ROWS, RUN, SHARE, SPANS, WHERE, Job
from rationale_jobs import AGAINST, Kept, Measure, Warnless
from steadygaze.audit.measures.plausibility_measures import spans
from steadygaze.core.maths.rationale_windows import best_windows
from steadygaze.core.ragged import segment_spread, segment_sum
from steadygaze.data.batches import by_length, shuffled
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.technique_loop import TrainingJob as Work

HOW = ("epochs", "batch_size", "schedule")
Selecting = Callable[[Page], tuple[Tensor, Tensor | None]]
"""The words selected (B,W), and the logits where there are any."""


def run_job(job: Job, folder: Path, most: int | None, epochs: int | None, device: str) -> dict[str, Any]:
    long = job.row in MINILM
    reviews = read(folder, long, most)
    run = (LONG if long else RUN) | ({} if epochs is None else {"epochs": epochs})
    if job.row in FIXED:
        return {"chosen": scored(FIXED[job.row], reviews, device)}
    if job.row == "supervised":
        return supervised(reviews, run, job.seed, device)
    return taught(reviews, technique(job), run, job.seed, device)


def technique(job: Job) -> Technique:
    name, settings = ROWS[MINILM.get(job.row, job.row)]
    made: Technique = TECHNIQUES[name](**settings)
    return made if job.rate is None else dataclasses.replace(made, generator_learning_rate=job.rate)


def taught(
    reviews: Reviews, technique: Technique, run: dict[str, Any], seed: int, device: str, measure: Measure | None = None
) -> dict[str, Any]:
    """A record: at the chosen epoch and at the last; `measure` adds to it at the chosen one."""
    how = Training(**{name: run[name] for name in HOW if name in run}, weight_decay=0.0, patience=run["epochs"])
    train, validation = (reviews.splits[split].data for split in SPLITS[:2])

    def make() -> Model:
        return technique.build(reviews.encoder, reviews.shape, 2, False, lambda: reviews.roles)

    with accelerator(device, run["precision"]) as accelerate:
        ran = Kept(technique, make, Work(train, validation, how, accelerate, Warnless()), seed)
        model = ran.execute().to(accelerate.device)
    record: dict[str, Any] = {"kept": ran.best_epoch["epoch"], "history": [epoch["accuracy"] for epoch in ran.history]}
    record["chosen"] = scored(partial(by_model, model), reviews, device)
    if measure is not None:
        record |= measure(model, {split: reviews.splits[split].data for split in SPLITS}, seed)
    model.load_state_dict(ran.last)
    return record | {"last": scored(partial(by_model, model), reviews, device)}


def by_model(model: Model, page: Page) -> tuple[Tensor, Tensor]:
    """A rationalizer's best windows, which it reads alone; of attention, the heaviest."""
    with inference.inference(model):
        if not isinstance(model, Rationalizer):
            output = model(page.batch)
            return windows(output.weights, page), output.logits
        spans = min(SPANS, model.selection_config.spans or SPANS)
        selected = windows(model.ranks(model.generate(page.batch)), page, spans)
        return selected, model.read(page.batch, segment_spread(selected, page.numbers))


def by_generator(model: Rationalizer, page: Page) -> tuple[Tensor, None]:
    """The same, read by nobody."""
    with inference.inference(model):
        return windows(model.ranks(model.generate(page.batch)), page), None


def windows(scores: Tensor, page: Page, spans: int = SPANS) -> Tensor:
    """Of words, by the mean scores of their tokens.  (B,T) -> (B,W) bool"""
    scores = scores.double()
    summed, many = (
        segment_sum(values, page.numbers, page.real.shape[1]) for values in (scores, torch.ones_like(scores))
    )
    return best_windows(summed / many.clamp_min(1), page.real, SHARE, spans)


def scored(select: Selecting, reviews: Reviews, device: str) -> dict[str, dict[str, float]]:
    """Means over validation and over test texts, and the largest share and number of pieces of any text."""
    return {split: _scored(select, reviews.splits[split], device) for split in SPLITS[1:]}


def _scored(select: Selecting, split: Split, device: str) -> dict[str, float]:
    parts: list[dict[str, Tensor]] = []
    for rows in by_length(split.data, 32):
        page = split.page(rows, device)
        selected, logits = select(page)
        scores = {name: score(selected, page.marked, page.real) for name, score in AGAINST.items()}
        right = {} if logits is None else {"accuracy": logits.argmax(-1) == page.batch.gold}
        share = (selected & page.real).sum(-1).double() / page.real.sum(-1)
        parts.append(scores | right | {"share": share, "spans": spans(selected, page.real)})
    each = {name: torch.cat([part[name].double() for part in parts]) for name in parts[0]}
    most = {f"most {name}": float(each[name].max()) for name in ("share", "spans")}
    return {name: float(values.nanmean()) for name, values in each.items()} | most


def by_chance(spans: int | None, page: Page) -> tuple[Tensor, None]:
    """Windows anywhere, or words; each text's its own."""
    draws = [np.random.default_rng(int(row)).random(page.real.shape[1]) for row in page.batch.index]
    return best_windows(torch.from_numpy(np.stack(draws)).to(page.real.device), page.real, SHARE, spans), None


def one_piece(end: bool, page: Page) -> tuple[Tensor, None]:
    """The first or the last words."""
    places = page.real.cumsum(-1) * (1 if end else -1)
    return best_windows(places.double(), page.real, SHARE, None), None


FIXED: dict[str, Selecting] = {
    "random": partial(by_chance, SPANS),
    "random-tokens": partial(by_chance, None),
    "first": partial(one_piece, False),
    "last": partial(one_piece, True),
    "all": lambda page: (page.real, None),
}


def supervised(reviews: Reviews, run: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """The generator alone, taught which words people marked: the ceiling of this network and these windows."""
    torch.manual_seed(seed)
    technique: Any = TECHNIQUES["rnp"](**WHERE)
    model = technique.build(reviews.encoder, reviews.shape, 2, False, lambda: reviews.roles).to(device)
    adam = torch.optim.Adam(
        [parameter for parameter in model.generator.parameters() if parameter.requires_grad], lr=1e-3
    )
    kept: dict[str, Any] = {}
    for epoch in range(run["epochs"]):
        model.train()
        for rows in shuffled(reviews.splits["train"].data, run["batch_size"], (seed, epoch)):
            page = reviews.splits["train"].page(rows, device)
            scores = model.generate(page.batch).scores
            right, mask = segment_spread(page.marked, page.numbers).to(scores.dtype), page.batch.mask
            adam.zero_grad()
            (binary_cross_entropy_with_logits(scores, right, mask, reduction="sum") / mask.sum()).backward()
            adam.step()
        now = scored(partial(by_generator, model), reviews, device)
        if not kept or now["validation"]["f1"] > kept["chosen"]["validation"]["f1"]:
            kept = {"chosen": now, "kept": epoch + 1}
    return kept | {"last": now}
