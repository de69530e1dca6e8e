"""Label leakage through attention: Tables 1 and 2 of Bai et al. 2021 (arXiv:2006.05656), on IMDB.

Every text is the tokens a b c d and the review.  Attention covers these four and the first five words; the query is the
whole review.  One job (pooling.vanilla.s0) trains one decoder with one technique and one seed.

Difference from the paper: Adam (AMSGrad) instead of RMSprop.  The paper does not state the size of the vectors, the
query, the length of texts or the batch size.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from studies import jobs

TECHNIQUES: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "random-pretraining": {"pretraining_epochs": 10},
    "mask-neutral": {},
}
ENCODERS = ("pooling", "rcnn")


@dataclass(frozen=True)
class Job(jobs.Job):
    encoder: str
    technique: str
    seed: int


def plan(seeds: int) -> list[Job]:
    return [Job(encoder, name, seed) for seed in range(seeds) for name in TECHNIQUES for encoder in ENCODERS]


def run_job(options: "Options", job: Job) -> dict[str, Any]:
    import torch

    from steadygaze.training.optimizers import Training
    from studies.default_tokens.model import load_texts, measure_attention, train

    torch.set_num_threads(1)
    texts, epochs = load_texts(options.data_dir, options.vectors, options.limit), options.epochs
    training = Training(epochs=epochs, batch_size=options.batch_size, weight_decay=0.0, patience=epochs)
    settings = TECHNIQUES[job.technique]
    model, history = train(texts, job.encoder, job.technique, settings, training, job.seed, options.device)
    record = {"job": job.id, **measure_attention(model, texts), "epochs": epochs, "batch_size": options.batch_size}
    return record | {"terms": [epoch["terms"] for epoch in history]}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """The defaults are those of the paper, where it names them."""

    data_dir: Path | None = None
    vectors: str = field(default="glove-50d", metadata={"help": "name or file of word vectors"})
    limit: int = field(default=25_000, metadata={"help": "texts of each split"})
    seeds: int = 10
    epochs: int = 25
    batch_size: int = 64


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.seeds), partial(run_job, options))
