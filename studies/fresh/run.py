"""Rationales of FRESH (Jain et al. 2020, arXiv:2005.00115), A2R, RNP and attention, with the independent reader.

The movie reviews are those of the study `movies`.

    movies, minilm                  movie reviews as in `movies`, with GloVe vectors and on MiniLM
    standard, skewed20, biased80    planted reviews, palate, as in `rationales`

    fresh                 share 0.2 in at most 10 windows (planted reviews: one sentence), scored by attention
    fresh-window          one window, the paper's "contiguous"
    fresh-gradient        scored by the gradient
    a2r, rnp, rnp-st      the learning rates that validation texts selected in these studies
    fr                    RNP with one encoder for generator and predictor (gumbel)
    dr                    RNP whose predictor learns at a fifth of the generator's rate
    gumbel                FR with separate encoders (planted reviews)

The scorer of FRESH is the vanilla model of its seed.  Its accuracy is that of the full text (`full`), and its
best windows are the row `attention`.  VARIANTS run with the first VARIANT_SEEDS seeds; the accuracy on validation texts
compares them.  The independent reader is fitted as in training, for READER_EPOCHS epochs.
A job on MiniLM takes up to 26 GiB of GPU memory: run at most four side by side, and no others beside them.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from studies import jobs
from studies.movies.plan import MINILM_TRAINING, SELECTION, TRAINING
from studies.rationales.plan import SKEW_EPOCHS
from studies.rationales.plan import TRAINING as PLANTED_TRAINING

MOVIES = ("movies", "minilm")
SETTINGS = ("standard", "skewed20", "biased80")
VARIANTS = ("fresh-window", "fresh-gradient")
VARIANT_SEEDS = 2
SIZES = (6000, 1000, 2000)
"""Planted reviews for training, validation and test."""
READER_EPOCHS = {"movies": 6, "minilm": 3}
"""Corpus -> epochs of the reader; planted reviews: 6."""
SHARED_ENCODER: dict[str, Any] = {"shared_encoder": True, "estimator": "gumbel"}
SLOW_PREDICTOR: dict[str, Any] = {"generator_learning_rate": 1e-3, "predictor_learning_rate": 2e-4}
MOVIE_ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "fresh": ("fresh", SELECTION),
    "fresh-window": ("fresh", SELECTION | {"spans": 1}),
    "fresh-gradient": ("fresh", SELECTION | {"saliency": "gradient"}),
    "a2r": ("a2r", SELECTION),
    "rnp-st": ("rnp", SELECTION | {"estimator": "straight-through"}),
    "fr": ("rnp", SELECTION | SHARED_ENCODER),
    "dr": ("rnp", SELECTION | SLOW_PREDICTOR | {"estimator": "straight-through"}),
}
GLOVE_ROWS = ("fresh-gradient", "fr", "dr")
"""Rows that run with GloVe vectors alone, not on MiniLM."""
RATES = {("movies", "a2r"): 1e-4, ("minilm", "a2r"): 3e-3, ("movies", "rnp-st"): 1e-3, ("minilm", "rnp-st"): 3e-4}
PLANTED_ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "fresh": ("fresh", {"granularity": "sentence"}),
    "a2r": ("a2r", {}),
    "rnp": ("rnp", {}),
    "fr": ("rnp", SHARED_ENCODER),
    "dr": ("rnp", SLOW_PREDICTOR),
    "gumbel": ("rnp", {"estimator": "gumbel", "generator_learning_rate": 1e-3}),
}
RNP_RATES = {"standard": 3e-4, "skewed20": 1e-4, "biased80": 3e-4}


@dataclass(frozen=True)
class Job(jobs.Job):
    corpus: str
    row: str
    seed: int


def plan(seeds: int) -> list[Job]:
    """Jobs in the order of their importance."""
    words = [(corpus, row) for row in MOVIE_ROWS for corpus in reversed(MOVIES)]
    sentences = [(setting, row) for row in PLANTED_ROWS for setting in SETTINGS]
    return [
        Job(corpus, row, seed)
        for corpus, row in (*sentences, *words)
        for seed in range(min(VARIANT_SEEDS, seeds) if row in VARIANTS else seeds)
        if corpus != "minilm" or row not in GLOVE_ROWS
    ]


def technique_of(job: Job) -> tuple[str, dict[str, Any]]:
    """The name of the technique and its settings."""
    if job.corpus in MOVIES:
        name, settings = MOVIE_ROWS[job.row]
        rate = RATES.get((job.corpus, job.row))
    else:
        name, settings = PLANTED_ROWS[job.row]
        settings = {**settings, "skewed": SKEW_EPOCHS.get(job.corpus, 0)}
        rate = RNP_RATES[job.corpus] if job.row == "rnp" else None
    return name, settings if rate is None else {**settings, "generator_learning_rate": rate}


def run_job(args: "Options", job: Job) -> dict[str, Any]:
    import torch

    from steadygaze.techniques import TECHNIQUES

    torch.set_num_threads(1)
    name, settings = technique_of(job)
    measure = partial(independent_reader, READER_EPOCHS.get(job.corpus, 6))
    if job.corpus in MOVIES:
        from studies.movies import reviews as movie_reviews
        from studies.movies import run as movie_jobs

        minilm = job.corpus == "minilm"
        training = (MINILM_TRAINING if minilm else TRAINING) | ({"epochs": args.epochs} if args.epochs else {})
        movies = movie_reviews.read_reviews(minilm, args.limit)
        technique = TECHNIQUES[name](**settings)
        return movie_jobs.train_and_measure(movies, technique, training, job.seed, args.device, measure)
    from studies.rationales import run as rationale_jobs

    training = PLANTED_TRAINING | ({"epochs": args.epochs} if args.epochs else {})
    bias = job.corpus if job.corpus == "biased80" else None
    planted = rationale_jobs.read_reviews("easy", job.seed, "palate", bias, "glove-50d", SIZES, args.limit)
    return rationale_jobs.train_and_measure(planted, (name, settings), training, job.seed, args.device, measure)


def independent_reader(epochs: int, model: Any, data: dict[str, Any], seed: int) -> dict[str, Any]:
    """Scores of a reader fitted to the training texts, on test texts; for FRESH, also the accuracy of the full text."""
    import torch

    from steadygaze.estimator.fit import reader_rows
    from steadygaze.explainers.rationale import fit_reader
    from steadygaze.models import inference
    from steadygaze.models.classifier import Classifier

    torch.cuda.empty_cache()  # jobs side by side share the memory
    torch.backends.cuda.matmul.allow_tf32 = True
    model.reader = fit_reader(model, data["train"], data["validation"], epochs * len(data["train"]), seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    scores = () if model.reader is None else reader_rows(model, data["test"], range(model.classes))
    accuracies = {row.measure: row.value for row in scores if "class" not in row.settings}
    model.reader = None
    full = {}
    if isinstance(model.generator, Classifier):
        for split in ("validation", "test"):
            predicted = inference.logits(model.generator, data[split]).argmax(-1).numpy()
            full[split] = float((predicted == data[split].label).mean())
    return {"reader": accuracies, "full": full}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Limits are for a trial run."""

    seeds: int = 5
    epochs: int | None = field(default=None, metadata={"help": "of each stage, for a trial"})
    limit: int | None = field(default=None, metadata={"help": "largest number of training texts, for a trial"})


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.seeds), partial(run_job, options))
