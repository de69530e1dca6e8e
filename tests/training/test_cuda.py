"""CUDA graphs, stacks and a lack of memory on a GPU.  Without one, test_stacked_loop.py tests what a CPU can show."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import Tensor

from steadygaze.core.ragged import TokenArray
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import LossContext, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.stacked_stages import train_loops
from steadygaze.training.technique_loop import TechniqueLoop
from steadygaze.training.training_run import TrainingRun, execute_together
from training.test_stacked_loop import make_damaged, make_transformer
from training.toys import WORDS, Listener, Recorder, corpus, make_run, model_for

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]
DROPOUT = {"dropout": 0.3, "word_dropout": 0.2}
MODELS: dict[str, Callable[[], Any]] = {
    "bilstm": partial(model_for, Vanilla(), "bilstm", torch.float64, **DROPOUT),
    "transformer": partial(make_transformer, 0.3),
}


@pytest.fixture
def gpu() -> Iterator[Accelerator]:
    with accelerator("cuda", "no") as accelerate:
        yield accelerate


@pytest.fixture
def all_memory() -> Iterator[None]:
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def even_corpus(count: int = 44, width: int = 8) -> Data:
    """Texts of the same length, so that there is one graph."""
    random = np.random.default_rng(0)
    ids = random.integers(4, WORDS, count * width).astype(np.int32)
    starts = np.arange(count + 1) * width
    texts = TokenArray(ids, np.ones(len(ids), dtype=bool), starts, np.zeros(count, dtype=bool))
    return Data(texts, None, np.arange(count) % 2)


DATA, EVEN = corpus(), even_corpus()


def loop_of(
    gpu: Accelerator,
    make: Callable[[], Any],
    seed: int = 0,
    data: Data = EVEN,
    technique: Technique | None = None,
    **options: Any,
) -> TechniqueLoop:
    technique = technique or Vanilla()
    run = make_run(technique, make, data=data, validation=data, seed=seed, accelerate=gpu, **options)
    stage = technique.stages(seed)[-1]
    return run._loop(0, stage, run._begin(stage, (seed, 0)))


def train_epochs(stack: StackedLoop, epochs: int) -> list[Tensor]:
    """The task loss of each text in each step; (B,K) each."""
    losses = []
    for _ in range(epochs):
        widths = stack._start_epoch()
        for width in widths:
            stack.run_step(width)
            losses.append(stack.latest["task"].clone())
        for loop in stack.loops:
            loop.state.step += len(widths)
    return losses


def is_captured(stack: StackedLoop) -> bool:
    return any(capture is not None for capture in stack.run_step.captures.values())


def assert_same_weights(models: Sequence[Any], others: Sequence[Any]) -> None:
    """To the rounding of kernels that add in random order."""
    for model, other in zip(models, others, strict=True):
        for name, value in model.state_dict().items():
            assert torch.allclose(value.cpu(), other.state_dict()[name].cpu(), rtol=0, atol=1e-8), name


@pytest.mark.parametrize("count", [1, 3])
def test_dropout_from_keys_is_the_same_with_and_without_a_graph(count: int, gpu: Accelerator) -> None:
    make = partial(model_for, Vanilla(), "bilstm", **DROPOUT)
    losses = []
    for graphs in (True, False):
        stack = StackedLoop([loop_of(gpu, make, seed, learning_rate=0.001) for seed in range(count)], graphs)
        losses.append(torch.stack(train_epochs(stack, 5)))
        assert is_captured(stack) is graphs
    assert len(losses[0]) == 30
    assert float((losses[0] - losses[1]).abs().max()) < 1e-5


def masks_of(gpu: Accelerator, seeds: Sequence[int]) -> Tensor:
    """Which numbers of the word vectors dropout sets to zero.  (steps,texts,K,T,E)"""
    make = partial(model_for, Vanilla(), "bilstm", dropout=0.3)
    stack = StackedLoop([loop_of(gpu, make, seed) for seed in seeds])
    encoder, epochs = stack.model.encoder, 3
    embed = encoder.embed
    masks = torch.zeros((len(stack.rows), stack.rows.shape[1], 8, 5), dtype=torch.bool, device=stack.device)

    def recording(ids: Tensor) -> Tensor:
        vectors: Tensor = embed(ids)
        masks.index_copy_(0, stack.counter, (vectors == 0).unsqueeze(0))
        return vectors

    encoder.embed = recording
    batches = []
    for _ in range(epochs):
        train_epochs(stack, 1)
        batches.append(masks.clone())
    assert is_captured(stack)
    return torch.cat(batches).unflatten(1, (-1, len(seeds)))


def test_masks_change_with_every_step_and_do_not_depend_on_the_other_models(gpu: Accelerator) -> None:
    three, two, alone = (masks_of(gpu, seeds) for seeds in ((0, 1, 2), (1, 2), (1,)))
    assert abs(float(alone.float().mean()) - 0.3) < 0.02
    assert all(not torch.equal(masks, other) for masks, other in combinations(alone, 2))
    assert torch.equal(three[:, :, 1], alone[:, :, 0])
    assert torch.equal(two[:, :, 0], alone[:, :, 0])
    assert not torch.equal(three[:, :, 0], alone[:, :, 0])


def transformer_losses(gpu: Accelerator, seed: int, graphs: bool, dropout: float = 0.3) -> list[float]:
    """The loss of the same batch in ten epochs, at a learning rate that changes nothing."""
    loop = loop_of(
        gpu, partial(make_transformer, dropout), seed, even_corpus(8), learning_rate=1e-30, encoder_learning_rate=1e-30
    )
    stack = StackedLoop([loop], graphs)
    losses = [float(values.sum()) for values in train_epochs(stack, 10)]
    assert is_captured(stack) is graphs
    return losses


def test_dropout_of_a_transformer_changes_with_every_replay_and_depends_on_the_seed(gpu: Accelerator) -> None:
    first = transformer_losses(gpu, 0, graphs=True)
    assert len({round(loss, 9) for loss in first}) == 10
    assert transformer_losses(gpu, 0, graphs=True) == pytest.approx(first, rel=1e-12)
    assert transformer_losses(gpu, 0, graphs=False) == pytest.approx(first, rel=1e-12)
    assert transformer_losses(gpu, 1, graphs=True) != pytest.approx(first, rel=1e-3)
    without = transformer_losses(gpu, 0, graphs=True, dropout=0.0)
    assert without == pytest.approx([without[0]] * 10, rel=1e-9)


def runs(
    gpu: Accelerator, kind: str, folder: Path, watchers: Sequence[Recorder] = (), resume: bool = False
) -> list[TrainingRun]:
    options = {"data": DATA, "validation": DATA, "resume": resume, "epochs": 3, "accelerate": gpu}
    return [
        make_run(Vanilla(), MODELS[kind], seed=seed, watcher=watcher, folder=folder / str(seed), **options)
        for seed, watcher in zip_longest((0, 1), watchers)
    ]


@pytest.mark.parametrize("stop", [{"epochs": 1}, {"steps": 9}], ids=str)
@pytest.mark.parametrize("kind", MODELS)
def test_models_resume_as_if_not_interrupted(kind: str, stop: dict[str, int], gpu: Accelerator, tmp_path: Path) -> None:
    whole = execute_together(runs(gpu, kind, tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        execute_together(runs(gpu, kind, tmp_path / "killed", [Recorder(**stop), Recorder()]))
    resumed = execute_together(runs(gpu, kind, tmp_path / "killed", resume=True))
    assert_same_weights(resumed, whole)


def test_a_model_that_diverges_does_not_affect_the_others(gpu: Accelerator) -> None:
    def made(damaged: int | None) -> list[TrainingRun]:
        make = partial(model_for, Vanilla(), "bilstm", torch.float64, **DROPOUT)
        makes = [partial(make_damaged, make, seed == damaged) for seed in range(3)]
        return [
            make_run(Vanilla(), factory, data=DATA, seed=seed, accelerate=gpu) for seed, factory in enumerate(makes)
        ]

    whole = execute_together(made(None))
    with pytest.warns(UserWarning, match="seed 1: training diverged"):
        models = execute_together(made(1))
    assert models[1] is None
    assert_same_weights(models[::2], whole[::2])


class Large:
    """Models of which eight fill a limit of memory that four do not."""

    make = partial(model_for, Vanilla(), "average", hidden=1000, dimension=4000, dropout=0.0)  # 32 MB

    @classmethod
    def loops(cls, gpu: Accelerator, count: int = 8, epochs: int = 2) -> list[TechniqueLoop]:
        return [loop_of(gpu, cls.make, seed, epochs=epochs) for seed in range(count)]


def peak(work: Callable[[], object]) -> int:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_reserved()


@pytest.mark.usefixtures("all_memory")
def test_a_stack_that_does_not_fit_is_halved_and_its_memory_is_free(
    gpu: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Large.loops(gpu)
    models = torch.cuda.memory_allocated()
    half = peak(lambda: train_loops(expected[:4])) - models
    train_loops(expected[4:])
    losses = [loop.state.history[-1]["terms"] for loop in expected]
    loops = Large.loops(gpu)
    for loop in loops[1:]:
        loop.watcher = loops[0].watcher
    allocated: list[tuple[int, int]] = []
    init = StackedLoop.__init__

    def recorded(stack: StackedLoop, some: Sequence[TechniqueLoop], *options: Any) -> None:
        allocated.append((len(some), torch.cuda.memory_allocated()))
        init(stack, some, *options)

    monkeypatch.setattr(StackedLoop, "__init__", recorded)
    messages: list[str] = []
    monkeypatch.setattr(loops[0].watcher, "detail", messages.append)
    torch.cuda.empty_cache()
    limit = torch.cuda.memory_allocated() + half + 128 * 2**20  # fragments; eight models need 400 MB more than four
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    records = train_loops(loops)
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert messages == ["8 models do not fit into the memory of the GPU: 4 at a time"]
    assert [count for count, _ in allocated] == [8, 4, 4]
    first, *later = [number for _, number in allocated]
    assert max(later) - first < 64 * 2**20, allocated
    assert torch.cuda.memory_allocated() - first < 64 * 2**20
    assert all(record is not None for record in records)
    assert [loop.state.history[-1]["terms"] for loop in loops] == [pytest.approx(terms, rel=1e-4) for terms in losses]


@settings
class Reading(Vanilla):
    """Reads a number from the device in every step, which a graph cannot."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        terms = super().loss(model, batch, context)
        float(terms["task"].mean())
        return terms


def assert_the_device_is_as_before(gpu: Accelerator) -> None:
    """Later models train in graphs, dropout is drawn, and memory is returned."""
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.rand(3, device="cuda")
    torch.cuda.empty_cache()
    assert len({round(loss, 9) for loss in transformer_losses(gpu, 0, graphs=True)}) == 10


@pytest.mark.parametrize("kind", MODELS)
def test_a_step_that_waits_for_the_device_trains_without_graphs(kind: str, gpu: Accelerator) -> None:
    watcher = Listener()
    loop = loop_of(gpu, MODELS[kind], technique=Reading(), watcher=watcher)
    train_loops([loop])
    other = loop_of(gpu, MODELS[kind])
    StackedLoop([other], graphs=False).execute()
    assert_same_weights([loop.state.model], [other.state.model])
    (message,) = watcher.details
    assert message.startswith("Reading trains without CUDA graphs: ")
    assert_the_device_is_as_before(gpu)


@pytest.mark.parametrize("kind", MODELS)
def test_a_capture_that_fails_has_no_effect(kind: str, gpu: Accelerator) -> None:
    """Without the rehearsal that would have found it."""
    watcher = Listener()
    loop, other = loop_of(gpu, MODELS[kind], technique=Reading(), watcher=watcher), loop_of(gpu, MODELS[kind])
    torch.manual_seed(5)
    StackedLoop([loop]).execute()
    torch.manual_seed(5)
    StackedLoop([other], graphs=False).execute()
    assert_same_weights([loop.state.model], [other.state.model])
    (message,) = watcher.details
    assert message.startswith("Reading trains without CUDA graphs: ")
    assert_the_device_is_as_before(gpu)


@pytest.mark.usefixtures("all_memory")
def test_a_capture_without_enough_memory_has_no_effect(gpu: Accelerator) -> None:
    watcher = Listener()
    loop, other = (loop_of(gpu, Large.make, watcher=observer) for observer in (watcher, None))
    stack, plain = StackedLoop([loop]), StackedLoop([other], graphs=False)
    capture = stack.run_step._capture

    def short_of_memory(arguments: tuple[Any, ...]) -> Any:
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2**20) / total)
        try:
            return capture(arguments)
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)

    stack.run_step._capture = short_of_memory  # type: ignore[method-assign]
    losses, expected = (torch.stack(train_epochs(trained_loop, 2)) for trained_loop in (stack, plain))
    assert not stack.run_step.uses_graphs
    assert not is_captured(stack)
    assert watcher.details == ["Vanilla trains without CUDA graphs: too little memory"]
    assert torch.allclose(losses, expected, atol=1e-5)
    assert_the_device_is_as_before(gpu)


def test_a_stack_resumed_on_the_gpu_keeps_its_own_settings(gpu: Accelerator, tmp_path: Path) -> None:
    """Learning rates differ; the optimizer's state of each model is its own."""

    def made(folder: Path, watchers: Sequence[Recorder] = (), resume: bool = False) -> list[TrainingRun]:
        own = runs(gpu, "bilstm", folder, watchers, resume)
        for number, run in enumerate(own):
            training = replace(run.job.training, learning_rate=0.01 * (number + 1))
            run.job = replace(run.job, training=training)
        return own

    whole = execute_together(made(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        execute_together(made(tmp_path / "killed", [Recorder(), Recorder(epochs=2)]))
    assert_same_weights(execute_together(made(tmp_path / "killed", resume=True)), whole)
