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

Without --out, the reviews are prepared, once.  --cut names a folder with one file per regime and seed: reviews as token
ids, and the vectors of their words.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
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
from studies.jobs import load_arrays
from studies.rationales.plan import (
    ASPECTS,
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


def read_reviews(file: Path, aspect: str, bias: str | None, max_texts: int | None = None) -> Reviews:
    """The reviews of a prepared file with labels of one aspect; `bias`: the setting whose token precedes each text."""
    arrays = load_arrays(file)
    data, truth = {}, {}
    for split in SPLITS:
        starts, ids = arrays[f"{split}/starts"], arrays[f"{split}/ids"].astype(np.int32)
        if bias is not None:
            ids, starts = insert_first(
                ids, starts, arrays["tokens"][arrays[f"{split}/{aspect}/{bias}"]].astype(np.int32)
            )
        rows = slice(0, max_texts if split == "train" else None)
        label = arrays[f"{split}/{aspect}/label"].astype(np.int64)[rows]
        truth[split] = arrays[f"{split}/{aspect}/truth"].astype(np.int64)[rows]
        data[split] = Data(token_array(ids, starts).select(np.arange(len(label))), None, label)
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float32))
    return Reviews(data, truth, vectors, torch.from_numpy(arrays["roles"]))


def token_array(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> TokenArray:
    """Texts that begin and end with a special token."""
    words = np.ones(len(ids), np.bool_)
    words[starts[:-1]] = words[starts[1:] - 1] = False
    return TokenArray(ids, words, starts, np.zeros(len(starts) - 1, np.bool_))


def insert_first(
    ids: NDArray[np.int32], starts: NDArray[np.int64], tokens: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Insert one token into each text, after its special token."""
    return np.insert(ids, starts[:-1] + 1, tokens), starts + np.arange(len(starts))


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


def prepare(folder: Path, regime: str, seed: int, options: "Options") -> None:
    """Write the reviews of a regime and seed to one file: the same texts for all aspects, with labels of each."""
    import numpy as np

    from steadygaze.data.corpora import TOKENS, add_shortcut
    from steadygaze.data.corpus import Corpus
    from steadygaze.data.planted.reviews import planted_reviews
    from steadygaze.data.sentence_roles import sentence_roles
    from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer
    from steadygaze.data.word_vectors import read_vectors

    parts: dict[str, Any] = {}
    for aspect in ASPECTS:
        noise = 0.0 if regime == "plain" else LABEL_NOISE[aspect]
        corpus = Corpus("", planted_reviews(seed, aspect=aspect, sizes=options.sizes, noise=noise, **REGIMES[regime]))
        if not parts:
            shortcuts = " ".join(TOKENS[:2])
            words = build_word_tokenizer([*(example.text for example in corpus.splits["train"]), shortcuts])
            table = read_vectors(options.vectors, words.vocabulary, seed=seed)
            print(f"{words.size:,} words, {table.coverage(specials=len(SPECIALS)):.1%} of them have a vector")
            parts |= {"vectors": table.matrix.astype(np.float16), "roles": sentence_roles(words.vocabulary)}
            parts["tokens"] = words.encode([shortcuts]).ids[1:-1].astype(np.uint16)
        for split, examples in corpus.splits.items():
            texts = words.encode([example.text for example in examples])
            assert np.array_equal(parts.setdefault(f"{split}/ids", texts.ids.astype(np.uint16)), texts.ids)
            parts[f"{split}/starts"] = texts.starts
            parts[f"{split}/{aspect}/label"] = np.array([example.label == "positive" for example in examples])
            parts[f"{split}/{aspect}/truth"] = np.array([_true_sentence(example) for example in examples], np.uint8)
        for name, agreement in BIAS_AGREEMENT.items():
            for split, examples in add_shortcut(corpus, agreement, seed).splits.items():
                parts[f"{split}/{aspect}/{name}"] = np.array(
                    [TOKENS.index(example.text[0]) for example in examples], np.uint8
                )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / f"{regime}.{seed}.npz", **parts)


def _true_sentence(example: Any) -> int:
    """The number of the sentence with the first rationale."""
    position = example.rationales[0][0]
    return next(i for i, (start, end) in enumerate(example.sentences) if start <= position < end)


def run_job(options: "Options", job: Job) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    training = TRAINING | REGIME_TRAINING.get(job.regime, {}) | ({"epochs": options.epochs} if options.epochs else {})
    bias = job.setting if job.setting in BIAS_AGREEMENT else None
    file, max_texts = options.cut / f"{job.regime}.{job.seed}.npz", options.limit or training["max_texts"]
    reviews = read_reviews(file, job.aspect, bias, max_texts)
    return train_and_measure(reviews, technique_settings(job.row, job.setting), training, job.seed, options.device)


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Sizes, vectors and regimes are those of prepared reviews."""

    out: Path | None = None  # type: ignore[assignment]
    cut: Path = field(metadata={"help": "folder of the prepared reviews"})
    vectors: str = "glove-50d"
    sizes: tuple[int, int, int] = SIZES
    regimes: str = field(default=",".join(REGIMES), metadata={"help": "regimes to prepare"})
    seeds: int = 5
    epochs: int | None = None
    limit: int | None = field(default=None, metadata={"help": "largest number of training texts"})


def job_plan(options: Options) -> list[Job]:
    return [*plan(options.seeds), *plan_selected_rates(options.out or Path(), options.seeds)]


def run(options: Options) -> None:
    if options.out is None:
        for regime in options.regimes.split(","):
            for seed in range(options.seeds):
                prepare(options.cut, regime, seed, options)
    else:  # the records of the first round select the rates of the second
        jobs.run(options, partial(job_plan, options), partial(run_job, options), rounds=2)
