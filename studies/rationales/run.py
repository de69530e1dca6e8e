"""Accuracy, F1 and X1 of RNP and A2R on planted reviews, as in Table 2 of Yu et al. 2021 (A2R, arXiv:2110.13880).

X1 is the share of reviews whose selection includes the first sentence.  F1 compares tokens with the sentence about the
aspect.  One job trains one row with one seed on one aspect in one setting; each seed has its own corpus.

    regime      how the reviews are generated: REGIMES
    setting     standard
                skewed10, 15, 20: the predictor is first trained on the first sentence alone for 10, 15, 20 epochs
                biased70, 75, 80: a token before the text agrees with the label in 70, 75, 80 % of the reviews
    row         rnp-RATE (learning rate of the generator), a2r, a2r-RATE, a2r-lambda-λ

The learning rate of RNP is tuned for each regime, aspect and setting.  The first TUNING_SEEDS seeds run with all RATES.
The other seeds run with the rate of the highest mean accuracy on validation texts.  SLOW_RATES take no part in this.
A2R has the rate of its released code, the lowest of RATES.  Macro-F1 on validation texts selects the epoch.

"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.data.batches import Data
from steadygaze.data.corpora import TOKENS, add_shortcut
from steadygaze.data.corpus import Corpus
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.data.word_vectors import read_vectors
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.inference import Model, forwards
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.properties.measures.plausibility_measures import token_f1, token_precision, token_recall
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rationalizing import RationalizingTechnique
from steadygaze.techniques.technique import Stage
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun
from steadygaze.training.training_state import TrainingState
from studies import jobs
from studies.rationales.plan import (
    BIAS_AGREEMENT,
    LABEL_NOISE,
    REGIME_TRAINING,
    REGIMES,
    SIZES,
    TRAINING,
    Job,
    plan,
    plan_selected_rates,
    technique_settings,
)

SPLITS = ("train", "validation", "test")
ARCHITECTURE_SETTINGS = ("hidden", "score", "dropout")
Sizes = tuple[int, int, int]
Measure = Callable[[Model, dict[str, Data], int], dict[str, Any]]
"""Model, splits, seed -> fields of the record."""
TOKEN_SCORES = {"p": token_precision, "r": token_recall, "f1": token_f1}


@dataclass(frozen=True)
class Reviews:
    data: dict[str, Data]
    truth: dict[str, NDArray[np.int64]]
    """Split -> number of the sentence about the aspect, from 0."""
    vectors: Tensor
    roles: Tensor


class LastEpochRun(TrainingRun):
    """A run that returns the selected epoch, and also keeps the weights of the last one."""

    last_weights: dict[str, Tensor]

    def _loop(self, number: int, stage: Stage, state: TrainingState, among_others: bool = False) -> TechniqueLoop:
        loop = super()._loop(number, stage, state, among_others)
        if stage.model == RESULT:
            select = loop.selected_epoch  # which loads the selected epoch
            loop.selected_epoch = partial(self._keep_last, state, select)  # type: ignore[method-assign]
        return loop

    def _keep_last(self, state: TrainingState, select: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.last_weights = {name: value.to("cpu", copy=True) for name, value in state.model.state_dict().items()}
        return select()


class NoWarnings(SilentWatcher):
    def warn(self, message: str | Warning) -> None:
        """Print no warning of a selection of few words, which is intended."""


def read_reviews(
    regime: str, seed: int, aspect: str, bias: str | None, vectors: str, sizes: Sizes, max_texts: int | None = None
) -> Reviews:
    """Reviews of a regime and seed with labels of one aspect; `bias`: the setting whose token precedes each text."""
    noise = 0.0 if regime == "plain" else LABEL_NOISE[aspect]
    corpus = Corpus("", planted_reviews(seed, aspect=aspect, sizes=sizes, noise=noise, **REGIMES[regime]))
    texts = [example.text for example in corpus.splits["train"]]
    words = build_word_tokenizer([*texts, " ".join(TOKENS[:2])])  # the tokens of both labels
    shown = corpus if bias is None else add_shortcut(corpus, BIAS_AGREEMENT[bias], seed)
    data, truth = {}, {}
    for split in SPLITS:
        rows = slice(0, max_texts if split == "train" else None)
        examples = corpus.splits[split][rows]
        label = np.array([example.label == "positive" for example in examples], np.int64)
        truth[split] = np.array([_true_sentence(example) for example in examples], np.int64)
        data[split] = Data(words.encode([example.text for example in shown.splits[split][rows]]), None, label)
    matrix = torch.from_numpy(read_vectors(vectors, words.vocabulary, seed=seed).matrix).half().float()
    return Reviews(data, truth, matrix, torch.from_numpy(sentence_roles(words.vocabulary)))


def _true_sentence(example: Any) -> int:
    """The number of the sentence with the first rationale."""
    position = example.rationales[0][0]
    return next(i for i, (start, end) in enumerate(example.sentences) if start <= position < end)


def build_model(technique: RationalizingTechnique, shape: Architecture, reviews: Reviews) -> Model:
    roles, vectors = reviews.roles, reviews.vectors
    return technique.build(
        lambda: word_encoder("bigru", shape, len(roles), False, vectors), shape, 2, False, lambda: roles
    )


def train(
    reviews: Reviews, technique: RationalizingTechnique, shape: Architecture, training: Training, seed: int, device: str
) -> tuple[LastEpochRun, Model]:
    """The run, and the model of the selected epoch."""
    with accelerator(device, "no") as accelerate:
        job = TrainingJob(reviews.data["train"], reviews.data["validation"], training, accelerate, NoWarnings())
        run = LastEpochRun(technique, lambda: build_model(technique, shape, reviews), job, seed)
        return run, run.execute().to(accelerate.device)


def measure_selection(model: Rationalizer, data: Data, truth: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy; P, R and F1 over tokens against the sentence about the aspect; X1: the first sentence is selected."""
    parts: list[dict[str, Tensor]] = []
    for rows, batch, output in forwards(model, data, 512):
        numbers = model.sentences(batch)
        evidence = numbers == torch.from_numpy(truth[rows]).to(numbers.device).unsqueeze(-1)
        scores = {name: score(output.selected, evidence, batch.mask) for name, score in TOKEN_SCORES.items()}
        first = (output.selected & (numbers == 0)).any(-1)
        parts.append({"accuracy": output.logits.argmax(-1) == batch.gold, **scores, "x1": first})
    return {name: float(torch.cat([part[name].double() for part in parts]).mean()) for name in parts[0]}


def train_and_measure(
    reviews: Reviews,
    technique_settings: tuple[str, dict[str, Any]],
    training: dict[str, Any],
    seed: int,
    device: str,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """The record of a run at the selected and at the last epoch; `measure` adds fields at the selected one."""
    name, settings = technique_settings
    technique: Any = TECHNIQUES[name](**settings)
    shape = Architecture(
        dimension=reviews.vectors.shape[1], train_vectors=False, **{key: training[key] for key in ARCHITECTURE_SETTINGS}
    )
    epochs = training["epochs"]
    options = Training(epochs=epochs, batch_size=training["batch_size"], weight_decay=0.0, patience=epochs)
    run, model = train(reviews, technique, shape, options, seed, device)
    assert isinstance(model, Rationalizer)
    history = [(epoch["stage"], epoch["accuracy"]) for epoch in run.history]
    record: dict[str, Any] = {"kept": run.best_epoch["epoch"], "history": history}
    for when in ("chosen", "last"):
        if when == "last":
            model.load_state_dict(run.last_weights)
        record[when] = {
            split: measure_selection(model, reviews.data[split], reviews.truth[split]) for split in SPLITS[1:]
        }
        if when == "chosen" and measure is not None:
            record |= measure(model, reviews.data, seed)
    return record


def run_job(options: "Options", job: Job) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    training = TRAINING | REGIME_TRAINING.get(job.regime, {}) | ({"epochs": options.epochs} if options.epochs else {})
    bias = job.setting if job.setting in BIAS_AGREEMENT else None
    max_texts = options.limit or training["max_texts"]
    reviews = read_reviews(job.regime, job.seed, job.aspect, bias, options.vectors, options.sizes, max_texts)
    return train_and_measure(reviews, technique_settings(job.row, job.setting), training, job.seed, options.device)


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Sizes: training, validation and test reviews."""

    vectors: str = "glove-50d"
    sizes: Sizes = SIZES
    seeds: int = 5
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "largest number of training texts"})


def job_plan(options: Options) -> list[Job]:
    return [*plan(options.seeds), *plan_selected_rates(options.out, options.seeds)]


def run(options: Options) -> None:
    """The records of the first round select the rates of the second."""
    jobs.run(options, partial(job_plan, options), partial(run_job, options), rounds=2)
