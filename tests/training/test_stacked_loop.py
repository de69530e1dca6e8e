"""Stacked training against the ordinary loop, one model at a time, with the same batches."""

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from contract.tiny import assert_close
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import LossContext, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.optimizers import Training
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.stacked_stages import can_stack, train_loops, why_not_static
from steadygaze.training.teacher_cache import TeacherCache
from steadygaze.training.technique_loop import TechniqueLoop
from steadygaze.training.training_run import TrainingRun, execute_together
from training.toys import TOYS, WORDS, Listener, Recorder, corpus, make_run, model_for, outcome, weights

ON_SCORES = ["attention-at", "attention-rp", "attention-iat"]
STATIC = ["vanilla", "word-at", "word-iat", *ON_SCORES, "seat", "anchored", "adversary"]
EXACT = {"dtype": torch.float64, "dropout": 0.0}
SMOOTH = {"seat": {"overlap": 0.0}, "anchored": {"overlap": 0.0}}
"""Settings without the top-k term: |w − w̃| has a kink at 0, where training starts; there rounding decides the sign."""


def loop_of(technique: Technique, seed: int, data: Data, stacks: bool = True, **settings: Any) -> TechniqueLoop:
    """The last stage of a technique, ready to train; earlier stages have untrained models."""
    make = partial(model_for, technique, **EXACT)
    run = make_run(technique, make, data=data, seed=seed, validation=data, stacks=stacks, **settings)
    run.job = replace(run.job, synonyms=SYNONYMS)
    names = sorted({stage.model for stage in technique.stages(seed)} - {"model"})
    for number, name in enumerate(names):
        torch.manual_seed(seed * 100 + number)
        run.models[name] = make().eval().requires_grad_(False)
    stage = technique.stages(seed)[-1]
    state = run._begin(stage, (run._seed(stage), 0))
    return run._loop(0, stage, state)


def assert_same_model(model: Any, other: Any) -> None:
    for name, value in model.state_dict().items():
        assert_close(value, other.state_dict()[name])


def assert_same_weights(loops: list[TechniqueLoop], others: list[TechniqueLoop]) -> None:
    for loop, other in zip(loops, others, strict=True):
        assert_same_model(loop.state.model, other.state.model)


def two_loops(technique: Technique | None = None) -> tuple[TechniqueLoop, TechniqueLoop]:
    """The same loop twice: for the static step, and for the ordinary one."""
    first, second = (loop_of(technique or Vanilla(), 0, corpus()) for _ in range(2))
    return first, second


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


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", [name for name in STATIC if TECHNIQUES[name].stacks])
def test_each_model_of_a_stack_trains_as_if_alone(name):
    technique, data = TECHNIQUES[name](**SMOOTH.get(name, {})), corpus()
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
    "seat": [{"radius": 0.1, "stability": 3.0}, {"radius": 0.5, "stability": 9.0}],
    "seat pgd": [{"solver": "pgd", "steps": 2, "radius": radius} for radius in (0.1, 0.5)],
    "seat l2": [{"solver": "pgd", "norm": "l2", "steps": 2, "radius": radius} for radius in (0.1, 0.5)],
    "seat released": [{"variant": "released", "steps": 2, "embedding_radius": size} for size in (0.01, 0.2)],
    "anchored": [{"noise": 1.0, "share": 0.3}, {"noise_radius": 0.5, "closeness": 3.0, "swaps": 4.0}],
    "consensus": [{"teachers": 2, "radius": 0.1}, {"teachers": 3, "radius": 0.2}],
    "adversary": [{"difference": 0.01}, {"difference": 0.5}],
    "synonym-augmentation": [{"weight": 0.5, "share": 0.2}, {"weight": 2.0, "share": 0.9}],
}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", VARIED)
def test_models_of_a_stack_have_their_own_settings(name):
    data, kind = corpus(), TECHNIQUES[name.split()[0]]
    alone, stacked = (
        [
            loop_of(
                kind(**{**SMOOTH.get(name.split()[0], {}), **settings}),
                seed,
                data,
                learning_rate=0.01 * (seed + 1),
                clip=0.1 + seed,
                weight_decay=0.1 * seed,
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


def make_damaged(make: Callable[[], Any], is_damaged: bool) -> Any:
    model = make()
    if is_damaged:
        with torch.no_grad():
            next(model.parameters())[2:] = torch.nan
    return model


def damaged_runs(
    damaged: Sequence[int], folder: Path | None = None, resume: bool = False, stacks: bool = True, **settings: Any
) -> list[TrainingRun]:
    """Runs of three seeds; the weights of some are NaN."""
    runs = []
    for seed in range(3):
        make = partial(make_damaged, partial(model_for, Vanilla(), **EXACT), seed in damaged)
        options = {"epochs": 3, "batch_size": 8 if stacks else 4 + seed, "stacks": stacks, "resume": resume, **settings}
        own = folder and folder / str(seed)
        runs.append(make_run(Vanilla(), make, data=DATA, validation=DATA, seed=seed, folder=own, **options))
    return runs


DATA = corpus()
NO_MODEL = r"train, seed 1: training diverged.*The other models are not affected"


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("stacks", [True, False], ids=["one stack", "one after another"])
def test_a_model_that_diverges_is_left_out_and_the_others_go_on(stacks):
    (alone,) = execute_together(damaged_runs([], stacks=stacks)[2:])
    with pytest.warns(UserWarning, match=NO_MODEL):
        models = execute_together(damaged_runs([1], stacks=stacks))
    assert [model is not None for model in models] == [True, False, True]
    assert_same_model(models[2], alone)


def test_models_go_on_if_the_diverged_one_was_trained_alone_after_a_lack_of_memory(monkeypatch):
    def rehearse(stack: StackedLoop) -> None:
        if stack.count > 1:
            raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(StackedLoop, "rehearse", rehearse)
    with pytest.warns(UserWarning, match=NO_MODEL):
        models = execute_together(damaged_runs([1]))
    assert [model is not None for model in models] == [True, False, True]


@pytest.mark.parametrize("stacks", [True, False])
def test_all_models_diverging_is_an_error_and_is_not_recorded(stacks, tmp_path):
    with pytest.warns(UserWarning, match=r"seed \d: training"), pytest.raises(UserError, match="training diverged"):
        execute_together(damaged_runs([0, 1, 2], tmp_path, stacks=stacks))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.sweep(keep=0)
@pytest.mark.parametrize("stacks", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_resumed_run_knows_which_model_diverged(stacks, tmp_path, monkeypatch):
    whole = execute_together(damaged_runs([], tmp_path / "whole", stacks=stacks))
    runs = damaged_runs([1], tmp_path / "killed", stacks=stacks)
    runs[2].job = replace(runs[2].job, watcher=Recorder(epochs=2))
    with pytest.warns(UserWarning, match=NO_MODEL), pytest.raises(KeyboardInterrupt):
        execute_together(runs)
    trained: list[int] = []
    monkeypatch.setattr(TechniqueLoop, "__init__", recorded(TechniqueLoop.__init__, trained))
    with pytest.warns(UserWarning, match=NO_MODEL):
        models = execute_together(damaged_runs([1], tmp_path / "killed", resume=True, stacks=stacks))
    assert sorted(trained) == [0, 2]
    assert models[1] is None
    for number in (0, 2):
        assert_same_model(models[number], whole[number])
    with pytest.raises(UserError, match="training diverged: the task loss is nan in epoch 1"):
        execute_together(damaged_runs([1], tmp_path / "killed", resume=True, stacks=stacks)[1:2])
    other = damaged_runs([1], tmp_path / "killed", resume=True, stacks=stacks, learning_rate=1e-4)[1:2]
    with pytest.raises(UserError, match=r"another training\.learning_rate"):
        execute_together(other)


def recorded(init: Callable[..., None], seeds: list[int]) -> Callable[..., None]:
    """Record the seed of each loop."""

    def __init__(loop: TechniqueLoop, *arguments: Any, **options: Any) -> None:
        init(loop, *arguments, **options)
        seeds.append(loop.state.stream[0])

    return __init__


@pytest.mark.parametrize(
    ("technique", "reason"),
    [(TOYS["duel"], "several players"), (TOYS["anneal"], "change with every step"), (TECHNIQUES["rnp"](), "players")],
)
def test_a_step_that_is_not_static_is_named(technique, reason):
    assert reason in why_not_static(loop_of(technique, 0, corpus()))


def consensus_run(folder: Path | None = None, watcher: Recorder | None = None) -> TrainingRun:
    technique = TECHNIQUES["consensus"](teachers=3)
    make = partial(model_for, technique, **EXACT)
    options = {"resume": folder is not None, "validation": corpus(12, 1), "stacks": True}
    return make_run(technique, make, folder=folder, watcher=watcher, **options)


def test_teachers_are_trained_at_once_and_each_equals_its_own_run():
    run = consensus_run()
    run.execute()
    stages = [record["stage"] for record in run.history]
    assert stages == [f"teacher {i} of 3" for i in (1, 2, 3) for _ in range(2)] + ["student"] * 2
    for seed in range(3):
        make = partial(model_for, Vanilla(), **EXACT)
        alone = make_run(Vanilla(), make, seed=seed, validation=corpus(12, 1), stacks=True)
        assert_same_model(alone.execute(), run.models[f"teacher-{seed}"])


@pytest.mark.slow
@pytest.mark.sweep(keep=("2",))
@pytest.mark.parametrize("epochs", range(1, 8))
def test_a_run_with_stacked_teachers_resumes_after_any_epoch(epochs, tmp_path):
    """Between the checkpoints of two teachers, one is an epoch ahead: it then trains in a stack of its own."""
    whole, resumed = consensus_run(), consensus_run(tmp_path)
    expected = whole.execute()
    with pytest.raises(KeyboardInterrupt):
        consensus_run(tmp_path, Recorder(epochs=epochs)).execute()
    model = resumed.execute()
    assert_same_model(model, expected)
    epochs_of = [[(record["stage"], record["epoch"]) for record in run.history] for run in (resumed, whole)]
    assert epochs_of[0] == epochs_of[1]
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


def with_damaged_teacher(run: TrainingRun) -> TrainingRun:
    """The run, whose first teacher begins with weights that are not numbers."""
    begin = run._begin

    def damaged(stage, stream):
        state = begin(stage, stream)
        if stage.model == "teacher-0":
            with torch.no_grad():
                next(state.model.parameters())[2:] = torch.nan
        return state

    run._begin = damaged
    return run


def test_a_diverged_teacher_is_left_out():
    run = with_damaged_teacher(consensus_run())
    with pytest.warns(UserWarning, match="teacher 1 of 3, seed 0: training diverged"):
        run.execute()
    assert sorted(run.models) == ["model", "teacher-1", "teacher-2"]


def test_a_run_resumes_without_its_diverged_teacher(tmp_path):
    with pytest.warns(UserWarning, match="teacher 1 of 3, seed 0"), pytest.raises(KeyboardInterrupt):
        # two teachers of two epochs, and one epoch of the student
        with_damaged_teacher(consensus_run(tmp_path, Recorder(epochs=5))).execute()
    resumed = with_damaged_teacher(consensus_run(tmp_path))
    with pytest.warns(UserWarning, match="teacher 1 of 3, seed 0"):
        resumed.execute()
    assert sorted(resumed.models) == ["model", "teacher-1", "teacher-2"]


def test_a_technique_that_cannot_be_stacked_is_reported_once_with_the_reason():
    listener = Listener()
    make_run(TOYS["anneal"], watcher=listener, stacks=True).execute()
    assert listener.details == ["Anneal trains without CUDA graphs: its settings change with every step"]


def test_a_driver_without_graphs_trains_without_them_and_reports_it_once(monkeypatch):
    """On a CPU, torch cannot capture a graph."""
    messages: list[str] = []
    static, ordinary = two_loops()
    monkeypatch.setattr(static.watcher, "detail", messages.append)
    StackedLoop([static], graphs=True).execute()
    ordinary.execute()
    assert_same_weights([static], [ordinary])
    (message,) = messages
    assert message.startswith("Vanilla trains without CUDA graphs: ")


def test_a_step_that_cannot_be_captured_is_found_before_training(monkeypatch):
    """On a GPU, torch raises this error in the rehearsal if the loss reads a number from the device."""
    messages: list[str] = []
    static, ordinary = two_loops()
    monkeypatch.setattr(static.watcher, "detail", messages.append)
    forbidden: list[bool] = []

    @contextmanager
    def forbid(_: torch.device) -> Iterator[None]:
        forbidden.append(True)
        yield
        raise RuntimeError("called a synchronizing CUDA operation\nand more")

    monkeypatch.setattr("steadygaze.training.stacked_loop._waiting_is_an_error", forbid)
    stack = StackedLoop([static], graphs=True)
    stack.rehearse()
    assert messages == ["Vanilla trains without CUDA graphs: called a synchronizing CUDA operation"]
    stack.execute()
    ordinary.execute()
    assert_same_weights([static], [ordinary])
    assert stack.run_step.captures
    assert not any(stack.run_step.captures.values())
    StackedLoop([loop_of(Vanilla(), 0, corpus())], graphs=False).rehearse()
    assert forbidden == [True]


def test_a_lack_of_memory_in_the_rehearsal_is_not_a_reason_to_train_without_graphs(monkeypatch):
    @contextmanager
    def full(_: torch.device) -> Iterator[None]:
        yield
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr("steadygaze.training.stacked_loop._waiting_is_an_error", full)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        StackedLoop([loop_of(Vanilla(), 0, corpus())], graphs=True).rehearse()


def make_transformer(dropout: float) -> Classifier:
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = BertConfig(vocab_size=WORDS, max_position_embeddings=16, **rates, **sizes)
    network = BertModel(config, add_pooling_layer=False)
    return Classifier(Transformer(network), Architecture(), classes=2, pair=False).double()


WITH_DROPOUT = {
    "stack": (Vanilla(), partial(model_for, Vanilla(), dtype=torch.float64, dropout=0.3, word_dropout=0.2)),
    "several players": (TOYS["duel"], partial(model_for, TOYS["duel"], dtype=torch.float64, dropout=0.3)),
    "transformer": (Vanilla(), partial(make_transformer, 0.3)),
}

DROPOUT_KINDS = ["stack", "several players", pytest.param("transformer", marks=pytest.mark.slow)]


def dropout_runs(
    kind: str, seeds: Sequence[int], folder: Path | None = None, watchers: Sequence[Recorder] = (), resume: bool = False
) -> list[TrainingRun]:
    options = {"data": DATA, "validation": DATA, "resume": resume, "stacks": True}
    return [
        make_run(*WITH_DROPOUT[kind], seed=seed, folder=folder and folder / str(seed), watcher=watcher, **options)
        for seed, watcher in zip_longest(seeds, watchers)
    ]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", DROPOUT_KINDS)
def test_dropout_of_a_model_does_not_depend_on_the_models_trained_with_it(kind):
    three = execute_together(dropout_runs(kind, (0, 1, 2)))
    two = execute_together(dropout_runs(kind, (1, 2)))
    (alone,) = execute_together(dropout_runs(kind, (1,)))
    assert_same_model(alone, three[1])
    assert_same_model(alone, two[0])
    without, *_ = execute_together([run_without_dropout(kind)])
    assert not torch.allclose(next(without.parameters()), next(alone.parameters()), atol=1e-4)


def run_without_dropout(kind: str) -> TrainingRun:
    (run,) = dropout_runs(kind, (1,))
    make = run.make_model

    def make_without() -> Any:
        model = make()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        if kind != "transformer":
            model.encoder.word_dropout = 0.0
        return model

    run.make_model = make_without
    return run


@pytest.mark.sweep(keep=0)
@pytest.mark.parametrize("kind", DROPOUT_KINDS)
def test_models_with_dropout_resume_as_if_not_interrupted(kind, tmp_path):
    whole = execute_together(dropout_runs(kind, (0, 1), tmp_path / "whole"))
    watchers = [Recorder(epochs=1), Recorder()]
    with pytest.raises(KeyboardInterrupt):
        execute_together(dropout_runs(kind, (0, 1), tmp_path / "killed", watchers))
    resumed = execute_together(dropout_runs(kind, (0, 1), tmp_path / "killed", resume=True))
    for model, expected in zip(resumed, whole, strict=True):
        assert_same_model(model, expected)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", ["vanilla", "attention-at", "word-at"])
def test_a_transformer_trains_as_in_the_ordinary_loop(name):
    technique, data, loops = TECHNIQUES[name](), corpus(), []
    for _ in range(2):
        run = make_run(technique, partial(make_transformer, 0.0), data=data, validation=data, epochs=1, stacks=True)
        stage = technique.stages(0)[-1]
        loops.append(run._loop(0, stage, run._begin(stage, (0, 0))))
    ordinary, static = loops
    assert why_not_static(static) is None
    assert not can_stack([static, static])
    ordinary.execute()
    StackedLoop([static]).execute()
    assert_same_weights([ordinary], [static])


def test_graphs_can_be_switched_off():
    job = loop_of(Vanilla(), 0, corpus()).job
    gpu = SimpleNamespace(device=torch.device("cuda"))
    on, off = (replace(job, stacks=None, accelerator=gpu, training=Training(cuda_graphs=x)) for x in (True, False))
    jobs = (on, off, replace(on, accelerator=job.accelerator))
    assert [each.uses_stacks for each in jobs] == [True, False, False]


@pytest.mark.parametrize("stacks", [True, False])
def test_too_little_memory_in_the_middle_of_training_is_a_clear_error(stacks, monkeypatch):
    def full(*_: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    loop = loop_of(Vanilla(), 0, corpus(), stacks)
    monkeypatch.setattr(loop, "start_epoch", full)
    with pytest.raises(UserError, match=r"too little memory.*--set batch_size=16.*--device cpu"):
        train_loops([loop])


def test_too_little_memory_halves_the_stack_and_then_is_an_error(monkeypatch):
    """The memory of a stack that failed is free when its halves are made."""
    rehearse, failed = StackedLoop.rehearse, []

    def full(stack: StackedLoop) -> None:
        rehearse(stack)
        activations = torch.zeros(8)
        assert [reference() for reference in failed] == [None] * len(failed)
        if stack.count > most:
            failed.extend([weakref.ref(stack), weakref.ref(stack.model), weakref.ref(activations)])
            raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(StackedLoop, "rehearse", full)
    most = 2
    loops, alone = ([loop_of(Vanilla(), seed, DATA, epochs=1) for seed in range(4)] for _ in range(2))
    records = train_loops(loops)
    for loop in alone:
        loop.execute()
    assert len(records) == 4
    assert len(failed) == 3
    assert_same_weights(loops, alone)
    most = 0
    with pytest.raises(UserError, match=r"too little memory.*--set batch_size=16"):
        train_loops([loop_of(Vanilla(), 0, DATA)])


@pytest.mark.slow
def test_too_little_memory_in_the_first_epoch_halves_the_stack(monkeypatch):
    """A CUDA graph needs memory that the rehearsal does not.  The optimizers have a state, as after a resumption."""
    step, counts = StackedLoop.step, []

    def full(stack: StackedLoop, widths: tuple[int, ...]) -> None:
        step(stack, widths)
        counts.append(stack.count)
        if stack.count > 2 and len(counts) == 3:
            raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(StackedLoop, "step", full)
    loops, alone = ([loop_of(Vanilla(), seed, DATA) for seed in range(3)] for _ in range(2))
    for loop in (*loops, *alone):
        loop.finish_epoch(loop.train_epoch())
    train_loops(loops)
    assert counts[:4] == [3, 3, 3, 1]
    for loop in alone:
        loop.execute()
    assert_same_weights(loops, alone)


def test_too_little_memory_in_a_later_epoch_of_a_stack_is_an_error(monkeypatch):
    train_epoch = StackedLoop.train_epoch

    def full(stack: StackedLoop, active: Sequence[int]) -> Any:
        if stack.epochs:
            raise torch.cuda.OutOfMemoryError
        return train_epoch(stack, active)

    monkeypatch.setattr(StackedLoop, "train_epoch", full)
    with pytest.raises(UserError, match="too little memory"):
        train_loops([loop_of(Vanilla(), seed, DATA) for seed in range(2)])


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("amsgrad", [True, False])
def test_the_rehearsal_allocates_the_optimizer_state_and_changes_nothing(amsgrad):
    loops, alone = ([loop_of(Vanilla(), seed, DATA, amsgrad=amsgrad) for seed in range(2)] for _ in range(2))
    stack = StackedLoop(loops)
    stack.rehearse()
    names = {"step", "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else [])}
    allocated = {member: set(moments) for member, moments in stack.optimizer.state.items()}
    assert list(allocated.values()) == [names] * len(list(loops[0].state.model.parameters())) * 2
    stack.execute()
    assert set(stack.optimizer.state) == set(allocated)
    for loop in alone:
        loop.execute()
    assert_same_weights(loops, alone)


def test_a_stack_is_freed_without_garbage_collection():
    """A reference cycle would keep the memory of its graphs."""
    gc.disable()
    try:
        stack = StackedLoop([loop_of(Vanilla(), seed, corpus()) for seed in range(2)])
        stack.execute()
        reference = weakref.ref(stack)
        del stack
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [1, 2])
def test_a_step_leaves_no_gradients(count):
    stack = StackedLoop([loop_of(Vanilla(), seed, corpus()) for seed in range(count)])
    stack.rehearse()
    stack.step(stack._start_epoch()[0])
    assert all(p.grad is None for some in (stack._parameters(), *stack.members) for p in some.values())


def test_a_capture_that_fails_after_the_backward_pass_has_no_effect(monkeypatch):
    """As on a GPU with too little memory: the gradients of the capture are not used."""
    static, ordinary = two_loops()
    stack = StackedLoop([static], graphs=True)

    def fail(_: StackedLoop) -> None:
        raise torch.cuda.OutOfMemoryError

    @contextmanager
    def full(*_: Any, **__: Any) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(StackedLoop, "_set_gradients", fail)
            yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
    monkeypatch.setattr(torch.cuda, "graph", full)
    stack.execute()
    ordinary.execute()
    assert not stack.run_step.uses_graphs
    assert_same_weights([static], [ordinary])


class Probed(Vanilla):
    """An auxiliary network reads the attended states."""

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"probe": nn.Linear(model.encoder.size, 2).to(next(model.parameters()).dtype)}

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        out = model(batch)
        attended = (out.weights.unsqueeze(-1) * out.encoded.hidden).sum(1)
        logits = {"task": out.logits, "probe": context.modules["probe"](attended)}
        return {name: nn.functional.cross_entropy(x, batch.label, reduction="none") for name, x in logits.items()}


def test_auxiliary_networks_train_as_in_the_ordinary_loop():
    static, ordinary = two_loops(Probed())
    stack = StackedLoop([static])
    stack.rehearse()
    stack.execute()
    ordinary.execute()
    assert_same_weights([static], [ordinary])
    for own, other in zip(*(loop.state.modules.parameters() for loop in (static, ordinary)), strict=True):
        assert_close(own, other)
