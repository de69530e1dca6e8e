"""The independent reader: trained on random masks alone, it recovers the label only as far as the units carry it."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from steadygaze.core.maths import k_subset
from steadygaze.core.maths.label_leakage import class_balanced_accuracy, independent_reader_accuracy, leakage_gap
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers.learned.independent_reader import DRAWS, ReaderFit, read, uniform_subsets
from steadygaze.explainers.learned.l2x import InputBatch

MANY, UNITS, K = 400, 6, 2
CPU = torch.device("cpu")


class Inputs(SimpleNamespace):
    """The first unit is worth the label, the others are noise; any can be shown."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(MANY, UNITS, generator=generator) - 0.5
        likely = (x[:, 0] > 0).float()
        super().__init__(x=x, probs=torch.stack([1 - likely, likely], -1))

    def __len__(self) -> int:
        return MANY

    def shuffled(self, size: int, seed: tuple[int, ...]) -> list[np.ndarray]:
        order = np.random.default_rng(seed).permutation(MANY)
        return np.array_split(order, MANY // size)

    def once(self, size: int) -> list[np.ndarray]:
        return [np.arange(MANY)]

    def views(self, rows: np.ndarray) -> InputBatch:
        places = torch.from_numpy(rows)
        return InputBatch(self.x[places], torch.ones(len(rows), UNITS, dtype=torch.bool), self.probs[places], places)


class Linear(nn.Module):
    """Sees the units that are shown, and which they are."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(2 * UNITS, 2)

    def forward(self, views: InputBatch, mask: Tensor) -> Tensor:
        return self.last(torch.cat([views.x * mask, mask], -1))


@pytest.fixture(scope="module")
def reader() -> nn.Module:
    return ReaderFit(Linear, uniform_subsets(K), Inputs(0), Inputs(1), CPU).execute()


@pytest.mark.slow
def test_a_selection_that_carries_the_label_is_read_and_one_that_encodes_it_is_not(reader: nn.Module) -> None:
    """Both leak the label: by the value of the first unit, or by which of two other units is shown."""
    inputs = Inputs(2)
    views = inputs.views(np.arange(MANY))
    message = views.probs.argmax(-1)
    honest = torch.eye(UNITS)[torch.zeros(MANY, dtype=torch.long)]
    coded = torch.eye(UNITS)[2 + message]
    results = {
        name: read(reader, views, mask, uniform_subsets(K), views.probs).measures(views.probs)
        for name, mask in (("honest", honest), ("coded", coded))
    }
    means = {name: {key: float(value.mean()) for key, value in result.items()} for name, result in results.items()}
    assert means["honest"]["independent-reader-accuracy"] > 0.95
    assert means["coded"]["independent-reader-accuracy"] < 0.6
    assert means["honest"]["leakage-gap"] < 0.05 < 0.4 < means["coded"]["leakage-gap"]
    assert 0.45 < means["coded"]["independent-reader-accuracy/no-words"] < 0.55
    assert 0.55 < means["coded"]["independent-reader-accuracy/random-words"] < 0.8


@pytest.mark.usefixtures("short_probe_training")
def test_the_same_seed_trains_the_same_reader_and_leaves_torchs_generator_alone() -> None:
    before = torch.get_rng_state()
    reader, again = (ReaderFit(Linear, uniform_subsets(K), Inputs(0), Inputs(1), CPU).execute() for _ in range(2))
    other = ReaderFit(Linear, uniform_subsets(K), Inputs(0), Inputs(1), CPU, seed=1).execute()
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(again.last.weight, reader.last.weight)
    assert not torch.equal(other.last.weight, reader.last.weight)


def test_the_reader_is_trained_on_random_masks_only() -> None:
    """Exactly k units each, the same number from every unit up to random variation."""
    views = Inputs(0).views(np.arange(MANY))
    drawn = torch.stack([uniform_subsets(K)(views, RandomKey(0).child(n)) for n in range(DRAWS)])
    assert torch.equal(drawn.sum(-1), torch.full((DRAWS, MANY), float(K)))
    assert (drawn.mean((0, 1)) - K / UNITS).abs().max() < 0.03
    assert not torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], k_subset.random_k_subset(views.selectable, K, RandomKey(0).child(0), views.rows))


def test_accuracy_and_gap_of_numbers_worked_by_hand() -> None:
    predicted = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    kept = torch.tensor([[[0.6, 0.4], [0.4, 0.6]], [[0.1, 0.9], [0.3, 0.7]]], dtype=torch.float64)
    assert independent_reader_accuracy(predicted, kept).tolist() == [0.5, 1.0]
    own, reader = torch.tensor([[0.6, 0.4], [0.9, 0.1]]), torch.tensor([[0.4, 0.6], [0.9, 0.1]])
    assert leakage_gap(own, reader, predicted).tolist() == [1.0, 0.0]


def test_each_predicted_class_counts_alike_in_a_balanced_mean() -> None:
    """Class 0: 0, 0, 0; class 1: 1; the mean of the class means is 1/2, of which NaN is no part."""
    values = torch.tensor([0.0, 0.0, 0.0, 1.0, torch.nan], dtype=torch.float64)
    result = class_balanced_accuracy(values, torch.tensor([0, 0, 0, 1, 1]))
    assert float(result.nanmean()) == 0.5
    assert result.isnan().tolist() == [False, False, False, False, True]
    assert torch.equal(class_balanced_accuracy(torch.ones(3), torch.zeros(3)), torch.ones(3))
