"""The guard in training: every epoch records whether attention is informative, and a run that ends without warns."""

import json
import re
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.core.ragged import TokenArray
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.data.batches import Data
from steadygaze.estimator.model_health import collapse_problems
from steadygaze.models import inference
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import Model, selects
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.technique import LossContext, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.training_run import TrainingRun
from training.toys import (
    TOYS,
    Committee,
    Distil,
    Pretrain,
    Recorder,
    corpus,
    interrupt,
    make_model,
    make_run,
    model_for,
    script,
)

NUMBERS = ["normalized_entropy", "distance_to_uniform", "distance_to_positional_mean"]
KEYS = [*NUMBERS, "overlap", "unexplained", "uniform", "constant", "unit", "selected", "collapsed", "reason"]
FROZEN = ("model.encoder", "model.decoder")


class Blind(nn.Module):
    """A scorer that sees where a word or a sentence stands, and not what it is."""

    def __init__(self, slope: float, level: float = 0.0) -> None:
        super().__init__()
        self.slope, self.level = slope, level

    def forward(self, encoded: Encoded) -> Tensor:
        return self.level + self.slope * torch.arange(encoded.hidden.shape[1]) + 0 * encoded.hidden.sum(-1)


@settings
class Deaf(Vanilla):
    """Trains all but attention, which stays as it was made."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return (Stage("train", trains=FROZEN),)


@settings
class Flatten(Vanilla):
    """Pulls attention to uniform, as one would who wants nothing but stable weights."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        weights = model(batch).weights
        even = batch.mask / batch.mask.sum(-1, keepdim=True)
        return {**super().loss(model, batch, context), "even": 1000 * (weights - even).square().sum(-1)}


def zero() -> Classifier:
    model = make_model()
    nn.init.zeros_(model.scorer.weigh.weight)
    return model


def sharp() -> Classifier:
    """Attention that looks at some words and not at others from the start."""
    model = make_model("bilstm")
    model.encoder.embedding.weight.data.mul_(5.0)
    model.scorer.weigh.weight.data.mul_(20.0)
    return model


def placed() -> Classifier:
    model = make_model()
    model.scorer = Blind(1.0)
    return model


def warned(run: TrainingRun) -> list[str]:
    """The collapse of the selected epoch, by kind and statistics."""
    with warnings.catch_warnings(action="ignore"):
        model = run.execute()
    problems = collapse_problems(run.best_epoch["attention"], selects=selects(model))
    return [f"{problem.kind}: {problem.detail}" for problem in problems]


def texts(*rows: Sequence[int], words: bool = True) -> Data:
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ids = np.concatenate([np.asarray(row, np.int32) for row in rows])
    ragged = TokenArray(ids, np.full(len(ids), words), starts, np.zeros(len(rows), np.bool_))
    return Data(ragged, None, np.arange(len(rows), dtype=np.int64) % 2)


@pytest.mark.sweep(keep=("vanilla", "committee", "duel"))
@pytest.mark.parametrize("name", TOYS)
def test_every_record_carries_what_its_attention_looks_like(name: str) -> None:
    run = make_run(TOYS[name])
    run.execute()
    for record in (*run.history, run.best_epoch):
        result = record["attention"]
        assert list(result) == KEYS
        assert 0 <= result["normalized_entropy"] <= 1
        assert 0 <= result["distance_to_uniform"] <= np.log(2)
        assert 0 <= result["distance_to_positional_mean"] <= np.log(2)
        assert result["collapsed"] == (result["uniform"] or result["constant"]) == bool(result["reason"])
    assert json.loads(json.dumps(run.history, allow_nan=False)) == run.history


def test_it_is_the_collapse_test_of_the_validation_texts_at_the_selected_epoch() -> None:
    run = make_run(Vanilla(), sharp, epochs=4, learning_rate=0.05)
    read = inference.split_outputs(run.execute(), run.job.validation)
    expected = detect_collapse(read.weights, read.mask, ids=read.ids)
    result = run.best_epoch["attention"]
    assert run.history[run.best_epoch["epoch"] - 1]["attention"] == result
    for name in NUMBERS:
        assert result[name] == pytest.approx(getattr(expected, name), rel=1e-6)
    assert (result["uniform"], result["constant"], result["overlap"]) == (expected.uniform, expected.constant, None)
    assert len({record["attention"]["distance_to_uniform"] for record in run.history}) == 4  # each epoch its own


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("vanilla", {"train": False}),
        ("distil", {"teach": False, "learn": True}),
        ("committee", {"one": False, "other": False, "agree": True}),
        ("pretrain", {"pretrain": False, "attend": False}),  # the model itself is not beside itself
        ("return", {"first": False, "rival": True, "again": True}),
        ("lens", {"grind": False, "wait": False, "look": True}),  # another technique's stage stands alone
    ],
)
def test_overlap_is_there_only_where_the_stage_has_finished_models_beside_it(
    name: str, beside: dict[str, bool]
) -> None:
    run = make_run(TOYS[name])
    run.execute()
    assert {record["stage"]: record["attention"]["overlap"] is not None for record in run.history} == beside


@pytest.mark.slow
def test_overlap_is_with_the_mean_attention_of_the_models_beside_it() -> None:
    validation = corpus(16, seed=1)
    run = make_run(Committee(), sharp, seed=1, data=corpus(), validation=validation)  # not all seeds separate them
    read = run.execute()
    first, other, ours = (
        inference.split_outputs(model, validation) for model in (run.models["one"], run.models["other"], read)
    )
    expected = detect_collapse(ours.weights, ours.mask, (first.weights + other.weights) / 2, ids=ours.ids).overlap
    assert run.best_epoch["attention"]["overlap"] == pytest.approx(expected)
    alone = [detect_collapse(ours.weights, ours.mask, each.weights, ids=ours.ids).overlap for each in (first, other)]
    assert expected not in alone  # neither of them would do


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("technique", "make", "reason"),
    [
        (Deaf(), zero, r"The weights are nearly the same for every word \(less than 0.0001 nats from uniform\)."),
        (Flatten(), sharp, "The weights are nearly the same for every word"),
        (Deaf(), placed, "The weights follow the position of a word, not the text"),
    ],
    ids=["frozen at zero", "pulled to uniform", "by place"],
)
def test_a_run_that_ends_with_uninformative_attention_is_collapsed(
    technique: Technique, make: Any, reason: str
) -> None:
    run = make_run(technique, make, data=corpus(), validation=corpus(16, seed=1), epochs=5, learning_rate=0.05)
    (collapse,) = warned(run)
    assert re.match(f"collapsed-attention: {reason}", collapse)
    assert run.best_epoch["attention"]["collapsed"]
    assert collapse == f"collapsed-attention: {run.best_epoch['attention']['reason']}"


def test_a_run_whose_attention_looks_at_words_does_not_warn() -> None:
    for technique in (Vanilla(), Deaf()):
        run = make_run(technique, sharp)
        assert warned(run) == []
        assert not any(record["attention"]["collapsed"] for record in run.history)


def selecting_run(scorer: nn.Module | None, **settings: Any) -> TrainingRun:
    """A generator with this scorer, or one that looks at some words and not at others from the start."""
    technique = Rnp(generator_learning_rate=1e-9, **settings)

    def make() -> Model:
        model = model_for(technique)
        model.generator.encoder.embedding.weight.data.mul_(5.0)
        model.generator.scorer = scorer or model.generator.scorer
        return model

    return make_run(technique, make, validation=corpus(80, seed=1))  # few texts have two sentences


@pytest.mark.parametrize("sign", [1, -1], ids=["last", "first"])
def test_a_rationalizer_that_always_takes_the_same_sentence_is_constant(sign: int) -> None:
    run = selecting_run(Blind(sign))
    assert warned(run) == [f"interlocked-selection: {run.best_epoch['attention']['reason']}"]
    assert run.best_epoch["attention"]["constant"]
    assert "follow the position of a sentence, not the text" in run.best_epoch["attention"]["reason"]


def test_texts_without_two_sentences_to_choose_from_are_reported() -> None:
    undivided = texts([1, 2, 3, 6], [4, 5], [2, 2, 6], [1])  # word 6 ends a sentence
    run = make_run(Rnp(), partial(model_for, Rnp()), data=undivided, validation=undivided)
    with pytest.warns(UserWarning, match="no validation text has two sentences: whole texts were selected"):
        run.execute()
    run = make_run(Rnp(), partial(model_for, Rnp()), data=undivided, validation=texts([1, 6, 2], [4, 5]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.execute()
    assert not [warning for warning in caught if "two sentences" in str(warning.message)]


def test_a_rationalizer_that_takes_one_sentence_or_another_is_not_collapsed() -> None:
    """Though all words of a sentence weigh alike."""
    run = selecting_run(None)
    assert warned(run) == []
    assert not any(record["attention"]["collapsed"] for record in run.history)
    assert run.best_epoch["attention"]["unexplained"] > 0.2


@pytest.mark.parametrize(
    ("score", "reason"),
    [(9.0, "All or nearly all words are selected (100.0 %)."), (-9.0, "No or almost no word is selected (0.0 %).")],
    ids=["all", "none"],
)
def test_a_model_that_selects_all_words_or_none_is_a_warning_in_words(score: float, reason: str) -> None:
    run = selecting_run(Blind(0.0, score), granularity="token", share=None)
    assert warned(run) == [f"uninformative-selection: {reason}"]
    assert all(record["attention"]["selected"] == (score > 0) for record in run.history)


def test_words_that_are_always_selected_by_their_place_are_no_attention() -> None:
    run = selecting_run(Blind(-1), granularity="token")
    (message,) = warned(run)
    assert message.startswith("uninformative-selection: The weights follow the position of a word, not the text")
    assert run.best_epoch["attention"]["selected"] is None, "as many as share says: neither all nor none"


UNIFORM = "collapsed-attention: The weights are nearly the same for every word (0.0010 nats from uniform)."


def scripted(patch: pytest.MonkeyPatch, *collapsed: bool) -> None:
    """Validation that finds this in turn."""
    distances = [0.001 if is_collapsed else 0.2 for is_collapsed in collapsed]
    numbers = {"constant": False, "unexplained": 1.0}
    epochs = [{"uniform": distance < 0.1, "distance_to_uniform": distance, **numbers} for distance in distances]
    script(patch, *({"attention": epoch} for epoch in epochs))


@pytest.mark.parametrize(
    ("technique", "collapsed", "expected"),
    [
        (Pretrain(), [True, False, False], []),  # attention is trained last: before that it cannot be informative
        (Pretrain(), [False, True, False], [UNIFORM]),  # of two equals the earlier is kept
        (Distil(), [True, True, False, False], []),  # a teacher's affair
        (Vanilla(), [False, True], []),  # another epoch than the one that is kept
    ],
)
def test_only_the_epoch_that_is_kept_counts(
    technique: Technique, collapsed: list[bool], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, *collapsed)
    assert warned(make_run(technique)) == expected


def test_a_resumed_run_warns_of_what_was_kept_before_the_interruption(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @settings
    class Afterward(Vanilla):
        def stages(self, seed: int) -> tuple[Stage, ...]:
            return Stage("train"), Stage("after", technique=Vanilla(), model="other")

    scripted(monkeypatch, True, True, False)
    interrupt(Recorder(epochs=3), Afterward(), folder=tmp_path)
    scripted(monkeypatch, False)
    assert warned(make_run(Afterward(), folder=tmp_path, resume=True)) == [UNIFORM]


@pytest.mark.sweep
@pytest.mark.parametrize("technique", [Vanilla(), Distil()])
@pytest.mark.parametrize(
    "validation",
    [texts([3], [1], [5], [1]), texts([3, 2], [1, 4], words=False), texts([3], [2, 1])],
    ids=["one word each", "no word at all", "one text of two words"],
)
def test_records_are_json_also_where_no_text_has_two_words(
    technique: Technique, validation: Data, tmp_path: Path
) -> None:
    run = make_run(technique, validation=validation, folder=tmp_path)
    informative = int(validation.text.lengths.max()) > 1 and bool(validation.text.words.all())
    result = warned(run)
    assert json.loads(json.dumps([*run.history, run.best_epoch], allow_nan=False)) == [*run.history, run.best_epoch]
    for record in run.history:
        assert all((record["attention"][name] is not None) == informative for name in NUMBERS)
    if not informative:  # nothing can be measured, so nothing is reported
        assert result == []
        assert not any(record["attention"]["collapsed"] for record in run.history)
    resumed = make_run(technique, validation=validation, folder=tmp_path, resume=True)
    resumed.execute()
    assert (resumed.history, resumed.best_epoch) == (run.history, run.best_epoch)
