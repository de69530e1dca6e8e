"""Training steps of selectors as CUDA graphs.  Without a GPU: batches gathered on the device, without graphs."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.random_key import RandomKey
from steadygaze.data.batches import Data
from steadygaze.explainers.learned import independent_reader, selector_training
from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.l2x import L2X, BatchFunction, InputBatch, InputSplit, SelectorConfig
from steadygaze.explainers.learned.mitigations import MITIGATIONS
from steadygaze.explainers.learned.selector_training import SelectorFit
from steadygaze.explainers.learned.text_inputs import Table, TextInputs, text_nets
from steadygaze.explainers.learned.vibi import Vibi
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, image_nets
from steadygaze.training.cuda_graphs import CapturedFunction
from steadygaze.training.progress import SilentWatcher

COUNT, WORDS, SHAPE = 45, 30, (1, 8, 8)
CONFIGS: list[SelectorConfig] = [
    L2X(k=3),
    L2X(k=3, conditioned=True, mitigation="random-pretraining", approximator="cnn"),
    L2X(k=3, conditioned=True, mitigation="mask-neutral"),
    L2X(k=3, conditioned=True, mitigation="random-query", optimizer="adam"),
    Vibi(k=3),
    Ail(k=3),
]
NAMES = [f"{type(config).__name__} {config.mitigation}" for config in CONFIGS]
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
Splits = Callable[[torch.device], InputSplit]


def text_split(device: torch.device) -> TextInputs:
    """Texts of 4 to 24 words: their batches have several widths."""
    random = np.random.default_rng(0)
    lengths = random.integers(4, 25, COUNT)
    ids = random.integers(2, WORDS, lengths.sum()).astype(np.int32)
    tokens = TokenArray(ids, np.ones(len(ids), np.bool_), row_starts(lengths), np.zeros(COUNT, np.bool_))
    return TextInputs(Data(tokens), predictions(), Table(torch.arange(WORDS), None).to(device), device)


def image_split(device: torch.device) -> ImageInputs:
    pixels = torch.rand(COUNT, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return ImageInputs(pixels.to(device), predictions().to(device), 64)


def predictions() -> Tensor:
    return torch.rand(COUNT, 2, generator=torch.Generator().manual_seed(2)).mul(4).softmax(-1)


def fit(config: SelectorConfig, split: Splits, device: str, epochs: int = 2) -> tuple[nn.ModuleDict, list[Any]]:
    config = replace(config, epochs=epochs, pretraining_epochs=epochs, batch_size=16)
    nets = (
        partial(text_nets, config, WORDS, 2)
        if split is text_split
        else partial(image_nets, config, SHAPE, 2, PatchConfig(patch=1, reader=True))
    )
    inputs = split(torch.device(device))
    run = SelectorFit(config, lambda: nets().double(), inputs, inputs, SilentWatcher(), torch.device(device))
    return run.execute(), run.history


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independent_reader, "EPOCHS", 12)
    monkeypatch.setattr(independent_reader, "EVALUATE", 4)
    monkeypatch.setattr(selector_training, "STEPS", 12)
    monkeypatch.setattr(selector_training, "INTERVAL", 4)


def check_equal(first: tuple[nn.ModuleDict, list[Any]], second: tuple[nn.ModuleDict, list[Any]]) -> None:
    """The weights of all networks, and the terms and scores of all epochs."""
    for (name, weight), other in zip(first[0].state_dict().items(), second[0].state_dict().values(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-6, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")
    for epoch, other in zip(first[1], second[1], strict=True):
        assert epoch["terms"] == pytest.approx(other["terms"], rel=1e-6)
        assert epoch["fidelity"] == other["fidelity"]


@pytest.mark.sweep(keep=2)
@pytest.mark.usefixtures("_short")
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
@pytest.mark.parametrize("split", [text_split, image_split])
@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_batches_gathered_on_the_device_train_the_same_networks(
    config: SelectorConfig, split: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have more padding, which has no effect without dropout."""
    usual = fit(config, split, "cpu")
    gathered: list[tuple[int, ...]] = []
    gather = TextInputs.gather if split is text_split else ImageInputs.gather

    def counted(inputs: Any, rows: Tensor, widths: tuple[int, ...]) -> InputBatch:
        gathered.append(widths)
        return gather(inputs, rows, widths)

    monkeypatch.setattr(TextInputs if split is text_split else ImageInputs, "gather", counted)
    monkeypatch.setattr(BatchFunction, "gathering_devices", ("cpu",))
    check_equal(usual, fit(config, split, "cpu"))
    assert len(gathered) > 15


@pytest.mark.parametrize("split", [text_split, image_split])
def test_a_gathered_batch_is_the_usual_one_with_padding(split: Splits) -> None:
    inputs: Any = split(torch.device("cpu"))
    rows = np.array([5, 41, 8])
    usual, gathered = inputs.views(rows), inputs.gather(torch.from_numpy(rows), inputs.widths(rows))
    width = usual.selectable.shape[1]
    assert gathered.selectable.shape[1] - width in range(8)
    assert torch.equal(gathered.selectable[:, :width], usual.selectable)
    assert not gathered.selectable[:, width:].any()
    assert torch.equal(gathered.x[..., : usual.x.shape[-1]], usual.x)
    assert torch.equal(gathered.probs, usual.probs)
    assert torch.equal(gathered.rows, usual.rows)


def test_a_key_on_the_device_draws_the_same_numbers() -> None:
    rows, key = torch.arange(5), RandomKey(-7).child(3)
    on_device = RandomKey(torch.tensor(key.key))
    assert torch.equal(on_device.uniform(rows, 4), key.uniform(rows, 4))
    assert torch.equal(on_device.child(2).uniform(rows, 4), key.child(2).uniform(rows, 4))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_function_that_cannot_be_captured_is_called() -> None:
    """On a CPU, torch cannot capture a graph."""
    reasons: list[str] = []
    function = CapturedFunction(lambda value, factor: value * factor, torch.device("cpu"), reasons.append, graphs=True)
    assert [function(torch.tensor(number), 3).item() for number in (1, 2, 4)] == [3, 6, 12]
    assert not function.uses_graphs
    assert [reason.startswith("trains without CUDA graphs: ") for reason in reasons] == [True]


@NEEDS_GPU
@pytest.mark.usefixtures("_short")
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
@pytest.mark.parametrize("split", [text_split, image_split])
@pytest.mark.parametrize("config", [*CONFIGS, L2X(k=3, dropout=0.2)], ids=[*NAMES, "L2X dropout"])
def test_graphs_train_the_same_networks(config: SelectorConfig, split: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of every kind becomes a graph, and eight epochs replay graphs of several shapes in any order."""
    capture, functions, outcomes = CapturedFunction._capture, [], []

    def counted(function: CapturedFunction, arguments: tuple[Any, ...]) -> Any:
        functions.append(function)
        outcomes.append(capture(function, arguments))
        return outcomes[-1]

    monkeypatch.setattr(CapturedFunction, "_capture", counted)
    graphs = fit(config, split, "cuda", epochs=8)
    assert None not in outcomes
    stages = len(MITIGATIONS[config.mitigation].stages(config))
    assert len(set(map(id, functions))) == stages + 3  # the mask probe, the reader, and the reader's validation
    monkeypatch.setattr(CapturedFunction, "_capture", lambda *_: None)
    check_equal(graphs, fit(config, split, "cuda", epochs=8))


@NEEDS_GPU
def test_outputs_follow_the_inputs_of_each_call() -> None:
    function = CapturedFunction(lambda value, factor: value * factor, torch.device("cuda"))
    values = [function(torch.tensor([number, 1.0]), 3).tolist() for number in (1.0, 2.0, 4.0, 8.0)]
    assert values == [[3.0, 3.0], [6.0, 3.0], [12.0, 3.0], [24.0, 3.0]]
    assert [capture is not None for capture in function.captures.values()] == [True]
    assert function(torch.tensor([1.0]), 5).tolist() == [5.0]  # another shape


@NEEDS_GPU
def test_a_function_that_reads_from_the_device_is_called() -> None:
    """Afterward random numbers can be drawn, from the seed."""
    function = CapturedFunction(lambda value: value * float(value.sum()), torch.device("cuda"))
    assert [function(torch.tensor([number])).item() for number in (1.0, 2.0, 3.0)] == [1.0, 4.0, 9.0]
    assert not function.uses_graphs
    torch.manual_seed(0)
    drawn = torch.rand(3, device="cuda")
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3, device="cuda"), drawn)
    assert drawn.std() > 0


@pytest.mark.slow
def test_a_fit_leaves_no_graphs_and_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference cycle would keep the memory of graphs until the next garbage collection."""
    monkeypatch.setattr(BatchFunction, "gathering_devices", ("cpu",))
    monkeypatch.setattr(independent_reader, "EPOCHS", 2)
    made: list[weakref.ref[CapturedFunction]] = []
    create = CapturedFunction.__init__

    def recorded(function: CapturedFunction, *arguments: Any) -> None:
        create(function, *arguments)
        made.append(weakref.ref(function))

    monkeypatch.setattr(CapturedFunction, "__init__", recorded)
    gc.disable()
    try:
        networks, _ = fit(L2X(k=3), text_split, "cpu")
        left = [function for function in made if function() is not None]
    finally:
        gc.enable()
    assert len(made) == 4  # selector, mask probe, reader, its validation
    assert not left
    assert all(parameter.grad is None for parameter in networks.parameters())
