"""What the mask alone tells, by a judge that saw the masks explanations have."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from steadygaze.explain.learned.l2x import L2X
from steadygaze.explain.learned.loop import _averaged
from steadygaze.explain.learned.telling import fresh_judge, given_away
from steadygaze.explain.learned.views import Views
from steadygaze.maths.judge import Judge

MANY, UNITS = 600, 8


class Coded(nn.Module):
    """Takes the first unit where the black box says class 1, the last where it says class 0; else by lot."""

    def __init__(self, told: bool) -> None:
        super().__init__()
        self.told = told

    def forward(self, views: Views, query: Tensor | None = None) -> Tensor:
        scores = views.x.float()
        if self.told and query is not None:
            scores = scores + 10 * query[:, 1:] * (torch.arange(UNITS) == 0)
            scores = scores + 10 * query[:, :1] * (torch.arange(UNITS) == UNITS - 1)
        return scores


class Inputs(SimpleNamespace):
    def __len__(self) -> int:
        return MANY

    def once(self, size: int) -> list[np.ndarray]:
        return np.array_split(np.arange(MANY), -(-MANY // size))

    def views(self, rows: np.ndarray) -> Views:
        index = torch.from_numpy(rows)
        return Views(self.x[index], torch.ones(len(rows), UNITS, dtype=torch.bool), self.probs[index], index)


@pytest.fixture
def inputs() -> Inputs:
    chance = torch.Generator().manual_seed(0)
    one = torch.rand(MANY, generator=chance) * 0.2 + 0.8  # surely of its class, more or less
    label = torch.rand(MANY, generator=chance) < 0.5
    likely = torch.where(label, one, 1 - one)
    return Inputs(x=torch.rand(MANY, UNITS, generator=chance), probs=torch.stack([1 - likely, likely], -1))


@pytest.mark.parametrize(("told", "least", "most"), [(True, 0.0, 0.02), (False, 0.66, 0.75)])
def test_a_code_is_read_and_where_there_is_none_nothing_is(inputs, told, least, most) -> None:
    how = L2X(k=1, query=True)
    nets = nn.ModuleDict({"selector": Coded(told), "judge": Judge(UNITS + 4, 2)})
    nets["judge"] = fresh_judge(how, nets, inputs, seed=0)
    assert nets["judge"].places == UNITS + 4, "a longer text must still be judged"
    assert least <= given_away(how, nets, inputs) <= most


def test_the_judge_who_learnt_beside_the_selector_is_not_asked(inputs) -> None:
    how, old = L2X(k=1, query=True), Judge(UNITS, 2)
    nets = nn.ModuleDict({"selector": Coded(True), "judge": old})
    before = given_away(how, nets, inputs)
    assert before > 0.5
    assert fresh_judge(how, nets, inputs, seed=0) is not old


def test_an_average_forgets_where_it_began() -> None:
    """After 1,000 steps a plain running average, of which .999 is old, is 37 % of what it began with."""
    nets = nn.ModuleDict({"one": nn.Linear(1, 1, bias=False)})
    nn.init.constant_(nets["one"].weight, 100.0)
    mean = _averaged(nets, 0.999)
    assert mean is not None
    mean.update_parameters(nets)
    by_hand = 100.0
    nn.init.constant_(nets["one"].weight, 1.0)
    for step in range(1, 1000):
        mean.update_parameters(nets)
        by_hand += (1.0 - by_hand) * max(0.001, 9 / (10 + step))
    kept = mean.module["one"].weight.item()
    assert kept == pytest.approx(by_hand, rel=1e-3)
    assert kept < 1.01
