"""Agreement of rationalizers with human rationales of movies, as in Table 4 of Yu et al. 2021 (arXiv:2110.13880).

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
The corpus and GloVe vectors are in the folder $STEADYGAZE_DATA.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from steadygaze.core.maths.rationale_windows import best_windows
from steadygaze.core.ragged import segment_spread, segment_sum
from steadygaze.data.batches import by_length, shuffled
from steadygaze.models import inference
from steadygaze.models.inference import Model
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.properties.measures.plausibility_measures import spans
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.technique_loop import TrainingJob
from studies import jobs
from studies.movies.plan import MINILM, MINILM_TRAINING, ROWS, SELECTION, SHARE, SPANS, TRAINING, Job, job_plan
from studies.movies.reviews import ReviewBatch, Reviews, Split, read_reviews
from studies.rationales.run import SPLITS, TOKEN_SCORES, LastEpochRun, Measure, NoWarnings

LOOP_SETTINGS = ("epochs", "batch_size", "schedule")
Select = Callable[[ReviewBatch], tuple[Tensor, Tensor | None]]
"""Reviews -> selected words (B,W) and, if the row has a predictor, logits."""


def run_row(job: Job, max_texts: int | None, epochs: int | None, device: str) -> dict[str, Any]:
    minilm = job.row in MINILM
    reviews = read_reviews(minilm, max_texts)
    training = (MINILM_TRAINING if minilm else TRAINING) | ({} if epochs is None else {"epochs": epochs})
    if job.row in SELECT_BASELINE:
        return {"chosen": measure_splits(SELECT_BASELINE[job.row], reviews, device)}
    if job.row == "supervised":
        return train_supervised(reviews, training, job.seed, device)
    return train_and_measure(reviews, technique_of(job), training, job.seed, device)


def technique_of(job: Job) -> Technique:
    name, settings = ROWS[MINILM.get(job.row, job.row)]
    rate = {} if job.rate is None else {"generator_learning_rate": job.rate}
    technique: Technique = TECHNIQUES[name](**settings | rate)
    return technique


def train_and_measure(
    reviews: Reviews,
    technique: Technique,
    training: dict[str, Any],
    seed: int,
    device: str,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """The record of a run at the selected and at the last epoch; `measure` adds fields at the selected one."""
    settings = {name: training[name] for name in LOOP_SETTINGS if name in training}
    options = Training(**settings, weight_decay=0.0, patience=training["epochs"])
    train, validation = (reviews.splits[split].data for split in SPLITS[:2])

    def make() -> Model:
        return technique.build(reviews.encoder, reviews.shape, 2, False, lambda: reviews.roles)

    with accelerator(device, training["precision"]) as accelerate:
        run = LastEpochRun(technique, make, TrainingJob(train, validation, options, accelerate, NoWarnings()), seed)
        model = run.execute().to(accelerate.device)
    record: dict[str, Any] = {"kept": run.best_epoch["epoch"], "history": [epoch["accuracy"] for epoch in run.history]}
    record["chosen"] = measure_splits(partial(select_by_model, model), reviews, device)
    if measure is not None:
        record |= measure(model, {split: reviews.splits[split].data for split in SPLITS}, seed)
    model.load_state_dict(run.last_weights)
    return record | {"last": measure_splits(partial(select_by_model, model), reviews, device)}


def select_by_model(model: Model, reviews: ReviewBatch) -> tuple[Tensor, Tensor]:
    """The best windows and the prediction; a rationalizer predicts from these windows, other models from the text."""
    with inference.inference(model):
        if not isinstance(model, Rationalizer):
            output = model(reviews.batch)
            return word_windows(output.weights, reviews), output.logits
        spans = min(SPANS, model.selection_config.spans or SPANS)
        selected = word_windows(model.ranks(model.generate(reviews.batch)), reviews, spans)
        return selected, model.read(reviews.batch, segment_spread(selected, reviews.word_numbers))


def select_by_generator(model: Rationalizer, reviews: ReviewBatch) -> tuple[Tensor, None]:
    """The best windows of the generator, without a prediction."""
    with inference.inference(model):
        return word_windows(model.ranks(model.generate(reviews.batch)), reviews), None


def word_windows(scores: Tensor, reviews: ReviewBatch, spans: int = SPANS) -> Tensor:
    """The windows of words with the highest mean scores of their tokens.  (B,T) -> (B,W) bool"""
    scores = scores.double()
    sums, counts = (
        segment_sum(values, reviews.word_numbers, reviews.present.shape[1])
        for values in (scores, torch.ones_like(scores))
    )
    return best_windows(sums / counts.clamp_min(1), reviews.present, SHARE, spans)


def measure_splits(select: Select, reviews: Reviews, device: str) -> dict[str, dict[str, float]]:
    """Means over validation and over test texts; the largest share and number of spans of a text."""
    return {split: _measure(select, reviews.splits[split], device) for split in SPLITS[1:]}


def _measure(select: Select, split: Split, device: str) -> dict[str, float]:
    parts: list[dict[str, Tensor]] = []
    for rows in by_length(split.data, 32):
        reviews = split.batch(rows, device)
        selected, logits = select(reviews)
        scores = {name: score(selected, reviews.rationale, reviews.present) for name, score in TOKEN_SCORES.items()}
        accuracy = {} if logits is None else {"accuracy": logits.argmax(-1) == reviews.batch.gold}
        share = (selected & reviews.present).sum(-1).double() / reviews.present.sum(-1)
        parts.append(scores | accuracy | {"share": share, "spans": spans(selected, reviews.present)})
    by_text = {name: torch.cat([part[name].double() for part in parts]) for name in parts[0]}
    maxima = {f"most {name}": float(by_text[name].max()) for name in ("share", "spans")}
    return {name: float(values.nanmean()) for name, values in by_text.items()} | maxima


def select_at_random(spans: int | None, reviews: ReviewBatch) -> tuple[Tensor, None]:
    """Random windows, or random words if `spans` is None; the same in every run."""
    present = reviews.present
    scores = [np.random.default_rng(int(row)).random(present.shape[1]) for row in reviews.batch.index]
    return best_windows(torch.from_numpy(np.stack(scores)).to(present.device), present, SHARE, spans), None


def select_end(last: bool, reviews: ReviewBatch) -> tuple[Tensor, None]:
    """The first or the last words."""
    scores = reviews.present.cumsum(-1) * (1 if last else -1)
    return best_windows(scores.double(), reviews.present, SHARE, None), None


SELECT_BASELINE: dict[str, Select] = {
    "random": partial(select_at_random, SPANS),
    "random-tokens": partial(select_at_random, None),
    "first": partial(select_end, False),
    "last": partial(select_end, True),
    "all": lambda reviews: (reviews.present, None),
}


def train_supervised(reviews: Reviews, training: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """Train the generator alone with human rationales: an upper bound for this network and these windows."""
    torch.manual_seed(seed)
    technique: Any = TECHNIQUES["rnp"](**SELECTION)
    model = technique.build(reviews.encoder, reviews.shape, 2, False, lambda: reviews.roles).to(device)
    adam = torch.optim.Adam(
        [parameter for parameter in model.generator.parameters() if parameter.requires_grad], lr=1e-3
    )
    best: dict[str, Any] = {}
    for epoch in range(training["epochs"]):
        model.train()
        for rows in shuffled(reviews.splits["train"].data, training["batch_size"], (seed, epoch)):
            part = reviews.splits["train"].batch(rows, device)
            scores = model.generate(part.batch).scores
            target, mask = segment_spread(part.rationale, part.word_numbers).to(scores.dtype), part.batch.mask
            adam.zero_grad()
            (binary_cross_entropy_with_logits(scores, target, mask, reduction="sum") / mask.sum()).backward()  # type: ignore[no-untyped-call]
            adam.step()
        measures = measure_splits(partial(select_by_generator, model), reviews, device)
        if not best or measures["validation"]["f1"] > best["chosen"]["validation"]["f1"]:
            best = {"chosen": measures, "kept": epoch + 1}
    return best | {"last": measures}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Limits are for a trial run."""

    seeds: int = 5
    epochs: int | None = None
    limit: int | None = dataclasses.field(default=None, metadata={"help": "largest number of reviews of each split"})


def run(options: Options) -> None:
    """The records of the first round select the rates of the second."""
    jobs.run(options, partial(job_plan, options.out, options.seeds), partial(run_job, options), rounds=2)


def run_job(options: Options, job: Job) -> dict[str, Any]:
    torch.set_num_threads(1)
    return run_row(job, options.limit, options.epochs, options.device)
