"""Stacked training against the ordinary loop, one model at a time, with the same batches."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.errors import UserError
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.optimizers import Training
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.stacked_stages import can_stack, train_loops, why_not_static
from steadygaze.training.teacher_cache import TeacherCache
from steadygaze.training.technique_loop import TechniqueLoop
from steadygaze.training.training_run import TrainingRun
from training.toys import TOYS, WORDS, Recorder, corpus, make_run, model_for, outcome, weights

STATIC = [
    "vanilla",
    "word-at",
    "word-iat",
    "attention-at",
    "attention-rp",
    "attention-iat",
    "seat",
    "anchored",
    "adversary",
]
EXACT = {"dtype": torch.float64, "dropout": 0.0}


def loop_of(technique: Technique, seed: int, data: Data, stacks: bool = True, **settings: Any) -> TechniqueLoop:
    """The last stage of a technique, ready to train; earlier stages have untrained models."""
    make = partial(model_for, technique, **EXACT)
    run = make_run(technique, make, data=data, seed=seed, validation=data, **{"epochs": 2, **settings})
    run.job = replace(run.job, stacks=stacks, synonyms=SYNONYMS)
    names = sorted({stage.model for stage in technique.stages(seed)} - {"model"})
    for number, name in enumerate(names):
        torch.manual_seed(seed * 100 + number)
        run.models[name] = make().eval().requires_grad_(False)
    stage = technique.stages(seed)[-1]
    state = run._begin(stage, (run._seed(stage), 0))
    return run._loop(0, stage, state)


def assert_same_weights(loops: list[TechniqueLoop], others: list[TechniqueLoop]) -> None:
    for loop, other in zip(loops, others, strict=True):
        for name, value in loop.state.model.state_dict().items():
            assert_close(value, other.state.model.state_dict()[name])


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", STATIC)
def test_one_model_trains_as_in_the_ordinary_loop(name):
    technique, data = TECHNIQUES[name](), corpus()
    ordinary, static = (loop_of(technique, 1, data) for _ in range(2))
    record = ordinary.execute()
    (static_record,) = StackedLoop([static]).execute()
    assert_same_weights([ordinary], [static])
    assert static_record["epoch"] == record["epoch"]
    assert {k: pytest.approx(v) for k, v in record["terms"].items()} == static_record["terms"]


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", [name for name in STATIC if TECHNIQUES[name].stacks])
def test_each_model_of_a_stack_trains_as_if_alone(name):
    technique, data = TECHNIQUES[name](), corpus()
    alone = [loop_of(technique, seed, data) for seed in (0, 1, 2)]
    stacked = [loop_of(technique, seed, data) for seed in (0, 1, 2)]
    assert can_stack(stacked)
    records = [loop.execute() for loop in alone]
    stacked_records = StackedLoop(stacked).execute()
    assert_same_weights(alone, stacked)
    for record, other in zip(records, stacked_records, strict=True):
        assert {k: pytest.approx(v) for k, v in record["terms"].items()} == other["terms"]
        assert record["macro-f1"] == other["macro-f1"]


SYNONYMS = Synonyms(torch.arange(2 * WORDS).view(WORDS, 2) % WORDS, torch.arange(WORDS) % 3, torch.zeros(WORDS) > 0)
VARIED = {
    "attention-at": [{"epsilon": 0.1, "weight": 0.5}, {"epsilon": 3.0, "weight": 2.0}, {}],
    "attention-rp": [{"epsilon": 0.1}, {"epsilon": 5.0}],
    "word-at": [{"epsilon": 0.1}, {"epsilon": 2.0, "weight": 0.3}, {"relative": False}],
    "seat": [{"radius": 0.1, "stability": 3.0}, {"radius": 0.5, "overlap": 10.0}],
    "seat pgd": [{"solver": "pgd", "steps": 2, "radius": radius} for radius in (0.1, 0.5)],
    "seat l2": [{"solver": "pgd", "norm": "l2", "steps": 2, "radius": radius} for radius in (0.1, 0.5)],
    "seat released": [{"variant": "released", "steps": 2, "embedding_radius": size} for size in (0.01, 0.2)],
    "anchored": [{"noise": 1.0, "share": 0.3}, {"noise_radius": 0.5, "closeness": 3.0, "swaps": 4.0}],
    "consensus": [{"teachers": 2, "radius": 0.1}, {"teachers": 3, "radius": 0.2}],
    "adversary": [{"difference": 0.01}, {"difference": 0.5}],
    "synonym-augmentation": [{"weight": 0.5, "share": 0.2}, {"weight": 2.0, "share": 0.9}],
}


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", VARIED)
def test_models_of_a_stack_have_their_own_settings(name):
    data, kind = corpus(), TECHNIQUES[name.split()[0]]
    alone, stacked = (
        [
            loop_of(
                kind(**settings), seed, data, learning_rate=0.01 * (seed + 1), clip=0.1 + seed, weight_decay=0.1 * seed
            )
            for seed, settings in enumerate(VARIED[name])
        ]
        for _ in range(2)
    )
    assert can_stack(stacked)
    for loop in alone:
        StackedLoop([loop]).execute()
    StackedLoop(stacked).execute()
    assert_same_weights(alone, stacked)
    assert len({loop.state.history[-1]["loss"] for loop in stacked}) == len(stacked)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("seat", {"k": 3}, {"k": 4}),
        ("seat", {"stability": 0.0}, {"stability": 1.0}),
        ("attention-iat", {"variant": "word"}, {"variant": "literal"}),
    ],
)
def test_settings_that_change_the_program_are_not_stacked(name, first, second):
    data, kind = corpus(), TECHNIQUES[name]
    assert not can_stack([loop_of(kind(**settings), 0, data) for settings in (first, second)])


def test_different_batch_sizes_are_not_stacked():
    data = corpus()
    assert not can_stack([loop_of(Vanilla(), 0, data, batch_size=size) for size in (8, 16)])


def test_example_weights_and_a_small_last_batch_count_as_alone():
    data = corpus(weight=np.linspace(0.2, 3, 44).astype(np.float32))
    alone = [loop_of(Vanilla(), seed, data) for seed in (0, 1)]
    stacked = [loop_of(Vanilla(), seed, data) for seed in (0, 1)]
    for loop in alone:
        loop.execute()
    StackedLoop(stacked).execute()
    assert_same_weights(alone, stacked)


def test_every_model_stops_by_itself(monkeypatch):
    """Validation scores are scripted: the first model stops after two epochs, the second trains four."""
    data = corpus()
    scores = {0: [0.9, 0.8, 0.7, 0.6], 1: [0.6, 0.7, 0.8, 0.9]}
    loops = [loop_of(Vanilla(), seed, data, epochs=4, patience=1) for seed in scores]
    for seed, loop in enumerate(loops):

        def validate(loop=loop, seed=seed):
            score = scores[seed][loop.state.epoch - 1]
            loop.state.keep_if_best(score)
            return {"macro-f1": score}

        monkeypatch.setattr(loop, "validate", validate)
    records = StackedLoop(loops).execute()
    assert [record["epoch"] for record in records] == [1, 4]
    assert [len(loop.state.history) for loop in loops] == [2, 4]


def test_a_model_that_diverges_is_left_out_and_the_others_go_on():
    data = corpus()
    alone = loop_of(Vanilla(), 1, data)
    loops = [loop_of(Vanilla(), seed, data) for seed in (0, 1)]
    with torch.no_grad():
        next(loops[0].state.model.parameters())[2:] = torch.nan
    with pytest.warns(UserWarning, match=r"seed 0: training diverged.*The other models go on"):
        records = StackedLoop(loops).execute()
    assert records[0] is None
    alone.execute()
    assert_same_weights([alone], loops[1:])


def test_all_models_diverging_is_an_error():
    data = corpus()
    loops = [loop_of(Vanilla(), seed, data) for seed in (0, 1)]
    for loop in loops:
        with torch.no_grad():
            next(loop.state.model.parameters())[2:] = torch.nan
    with pytest.warns(UserWarning, match="seed 0"), pytest.raises(UserError, match="training diverged"):
        StackedLoop(loops).execute()


@pytest.mark.parametrize(
    ("technique", "reason"),
    [(TOYS["duel"], "several players"), (TOYS["anneal"], "change with every step"), (TECHNIQUES["rnp"](), "players")],
)
def test_a_step_that_is_not_static_is_named(technique, reason):
    assert reason in why_not_static(loop_of(technique, 0, corpus()))


def consensus_run(folder: Path | None = None, watcher: Recorder | None = None) -> TrainingRun:
    technique = TECHNIQUES["consensus"](teachers=3)
    make = partial(model_for, technique, **EXACT)
    run = make_run(technique, make, folder=folder, resume=folder is not None, watcher=watcher, validation=corpus(12, 1))
    run.job = replace(run.job, stacks=True)
    return run


def test_teachers_are_trained_at_once_and_each_equals_its_own_run():
    run = consensus_run()
    run.execute()
    stages = [record["stage"] for record in run.history]
    assert stages == [f"teacher {i} of 3" for i in (1, 2, 3) for _ in range(2)] + ["student"] * 2
    for seed in range(3):
        alone = make_run(Vanilla(), partial(model_for, Vanilla(), **EXACT), seed=seed, validation=corpus(12, 1))
        alone.job = replace(alone.job, stacks=True)
        model = alone.execute()
        for name, value in model.state_dict().items():
            assert_close(value, run.models[f"teacher-{seed}"].state_dict()[name])


@pytest.mark.sweep(keep=("2",))
@pytest.mark.parametrize("epochs", range(1, 8))
def test_a_run_with_stacked_teachers_resumes_after_any_epoch(epochs, tmp_path):
    """Between the checkpoints of two teachers, one is an epoch ahead: it then trains in a stack of its own."""
    whole, resumed = consensus_run(), consensus_run(tmp_path)
    expected = whole.execute()
    with pytest.raises(KeyboardInterrupt):
        consensus_run(tmp_path, Recorder(epochs=epochs)).execute()
    model = resumed.execute()
    for name, value in model.state_dict().items():
        assert_close(value, expected.state_dict()[name])
    assert [record["stage"] for record in resumed.history] == [record["stage"] for record in whole.history]
    assert [record["epoch"] for record in resumed.history] == [record["epoch"] for record in whole.history]
    if epochs in (3, 6, 7):  # all teachers at the same epoch
        assert weights(model) == weights(expected)


def test_teachers_of_a_stack_are_cached_and_found_again(tmp_path):
    first, second = consensus_run(), consensus_run()
    for run in (first, second):
        run.teacher_cache = TeacherCache(tmp_path / "cache", {"data": "toy"})
    expected = outcome(first)
    assert len(list((tmp_path / "cache").iterdir())) == 3
    watcher = Recorder()
    second.job = replace(second.job, watcher=watcher)
    assert outcome(second) == expected
    assert {record["stage"] for record in watcher.epochs} == {"student"}


def test_a_diverged_teacher_is_left_out(monkeypatch):
    run = consensus_run()
    begin = run._begin

    def damaged(stage, stream):
        state = begin(stage, stream)
        if stage.model == "teacher-0":
            with torch.no_grad():
                next(state.model.parameters())[2:] = torch.nan
        return state

    monkeypatch.setattr(run, "_begin", damaged)
    with pytest.warns(UserWarning, match="teacher 1 of 3, seed 0: training diverged"):
        run.execute()
    assert sorted(run.models) == ["model", "teacher-1", "teacher-2"]


def test_a_technique_that_cannot_be_stacked_is_reported_once_with_the_reason():
    class Talkative(Recorder):
        def detail(self, message: str) -> None:
            messages.append(message)

    messages: list[str] = []
    run = make_run(TOYS["anneal"], watcher=Talkative())
    run.job = replace(run.job, stacks=True)
    run.execute()
    assert messages == ["Anneal trains without a CUDA graph: its settings change with every step"]


def test_a_driver_without_graphs_trains_without_them_and_reports_it_once(monkeypatch):
    """On a CPU, torch cannot capture a graph."""
    messages: list[str] = []
    static, ordinary = (loop_of(Vanilla(), 0, corpus()) for _ in range(2))
    monkeypatch.setattr(static.watcher, "detail", messages.append)
    StackedLoop([static], graphs=True).execute()
    ordinary.execute()
    assert_same_weights([static], [ordinary])
    (message,) = messages
    assert message.startswith("Vanilla trains without further CUDA graphs: ")


@pytest.mark.parametrize("name", ["vanilla", "attention-at", "word-at"])
def test_a_transformer_trains_as_in_the_ordinary_loop(name):
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = BertConfig(
        vocab_size=WORDS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=16, **sizes
    )

    def make() -> Classifier:
        network = BertModel(config, add_pooling_layer=False)
        return Classifier(Transformer(network), Architecture(), classes=2, pair=False).double()

    technique, data, loops = TECHNIQUES[name](), corpus(), []
    for _ in range(2):
        run = make_run(technique, make, data=data, validation=data, epochs=1)
        stage = technique.stages(0)[-1]
        loops.append(run._loop(0, stage, run._begin(stage, (0, 0))))
    ordinary, static = loops
    assert why_not_static(static) is None
    assert not can_stack([static, static])
    static.job = ordinary.job = replace(static.job, stacks=True)
    ordinary.execute()
    StackedLoop([static]).execute()
    assert_same_weights([ordinary], [static])


def test_graphs_can_be_switched_off():
    job = loop_of(Vanilla(), 0, corpus()).job
    gpu = SimpleNamespace(device=torch.device("cuda"))
    on, off = (replace(job, stacks=None, accelerator=gpu, training=Training(cuda_graphs=x)) for x in (True, False))
    assert (on.uses_stacks, off.uses_stacks, replace(on, accelerator=job.accelerator).uses_stacks) == (
        True,
        False,
        False,
    )


@pytest.mark.parametrize("stacks", [True, False])
def test_too_little_memory_in_the_middle_of_training_is_a_clear_error(stacks, monkeypatch):
    def full(*_: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    loop = loop_of(Vanilla(), 0, corpus(), stacks)
    monkeypatch.setattr(loop, "start_epoch", full)
    with pytest.raises(UserError, match=r"too little memory.*--set batch_size=16.*--device cpu"):
        train_loops([loop])


def test_too_little_memory_halves_the_stack_and_then_is_an_error(monkeypatch):
    data = corpus()

    def rehearse(stack: StackedLoop) -> None:
        if stack.count > most:
            raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(StackedLoop, "rehearse", rehearse)
    most = 2
    loops, alone = ([loop_of(Vanilla(), seed, data) for seed in range(4)] for _ in range(2))
    records = train_loops(loops)
    for loop in alone:
        loop.execute()
    assert len(records) == 4
    assert_same_weights(loops, alone)
    most = 0
    with pytest.raises(UserError, match=r"too little memory.*--set batch_size=16"):
        train_loops([loop_of(Vanilla(), 0, data)])
