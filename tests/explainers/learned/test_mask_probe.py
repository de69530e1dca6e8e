"""Label leakage through the mask, by a probe trained on masks of explanations."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from steadygaze.core.types import Terms
from steadygaze.explainers.learned.l2x import L2X, InputBatch, SelectorConfig, SelectorStep, selector_steps
from steadygaze.explainers.learned.mitigations import MITIGATIONS, NoMitigation
from steadygaze.explainers.learned.selector_training import SelectorFit, SelectorLoop, WeightAverage, fit_mask_probe
from steadygaze.explainers.learned.vibi import Vibi
from steadygaze.models.probe_classifier import ProbeClassifier
from steadygaze.techniques.technique import Player
from steadygaze.training.progress import SilentWatcher

MANY, UNITS = 600, 8


def leaked_share(how: SelectorConfig, nets: nn.ModuleDict, inputs: Any) -> float:
    """The mean loss of the probe on the masks of selected units, in nats."""
    with torch.no_grad():
        (step,) = selector_steps(how, nets, inputs, [np.arange(MANY)])
        return float(nll_loss(nets["probe"](step.selection()), step.views.probs.argmax(-1)))


class Coded(nn.Module):
    """Selects the first unit if the black box predicts class 1, the last if it predicts class 0; else at random."""

    def __init__(self, is_conditioned: bool) -> None:
        super().__init__()
        self.is_conditioned = is_conditioned

    def forward(self, views: InputBatch, query: Tensor | None = None) -> Tensor:
        scores = views.x.float()
        if self.is_conditioned and query is not None:
            scores = scores + 10 * query[:, 1:] * (torch.arange(UNITS) == 0)
            scores = scores + 10 * query[:, :1] * (torch.arange(UNITS) == UNITS - 1)
        return scores


class Inputs(SimpleNamespace):
    def __len__(self) -> int:
        return MANY

    def shuffled(self, size: int, seed: tuple[int, ...]) -> list[np.ndarray]:
        return self.once(size)

    def once(self, size: int) -> list[np.ndarray]:
        return np.array_split(np.arange(MANY), -(-MANY // size))

    def views(self, rows: np.ndarray) -> InputBatch:
        index = torch.from_numpy(rows)
        return InputBatch(self.x[index], torch.ones(len(rows), UNITS, dtype=torch.bool), self.probs[index], index)


@pytest.fixture
def inputs() -> Inputs:
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(MANY, generator=generator) * 0.2 + 0.8  # surely of its class, more or less
    label = torch.rand(MANY, generator=generator) < 0.5
    likely = torch.where(label, confidence, 1 - confidence)
    return Inputs(x=torch.rand(MANY, UNITS, generator=generator), probs=torch.stack([1 - likely, likely], -1))


@pytest.mark.slow
@pytest.mark.parametrize(("is_conditioned", "least", "most"), [(True, 0.0, 0.02), (False, 0.66, 0.75)])
def test_the_probe_recovers_an_encoded_label_and_nothing_otherwise(inputs, is_conditioned, least, most) -> None:
    how = L2X(k=1, conditioned=True)
    nets = nn.ModuleDict({"selector": Coded(is_conditioned), "probe": ProbeClassifier(UNITS + 4, 2)})
    nets["probe"] = fit_mask_probe(how, nets, inputs, seed=0)
    assert nets["probe"].places == UNITS + 4, "a longer text must still be judged"
    assert least <= leaked_share(how, nets, inputs) <= most


class Guess(nn.Module):
    """Has something to learn."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(UNITS, 2)

    def forward(self, views: InputBatch, mask: Tensor) -> Tensor:
        return self.last(views.x * mask)


class Moving(Coded):
    """The same, with something to learn that changes nothing."""

    def __init__(self) -> None:
        super().__init__(is_conditioned=True)
        self.nothing = nn.Parameter(torch.zeros(()))

    def forward(self, views: InputBatch, query: Tensor | None = None) -> Tensor:
        return super().forward(views, query) + self.nothing


def made() -> nn.ModuleDict:
    return nn.ModuleDict({"selector": Moving(), "approximator": Guess(), "probe": ProbeClassifier(UNITS, 2)})


def fit(inputs: Inputs, method: type[SelectorConfig] = L2X, **settings: Any) -> SelectorFit:
    how = method(k=1, conditioned=True, epochs=1, batch_size=300, **settings)
    return SelectorFit(how, made, inputs, inputs, SilentWatcher(), torch.device("cpu"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
def test_the_probe_of_a_fit_reads_masks_as_explanations_have_them(inputs: Inputs) -> None:
    """The one who learned beside the selector had two steps, on soft masks, and knows nothing."""
    run = fit(inputs)
    nets = run.execute()
    assert leaked_share(run.config, nets, inputs) < 0.02
    nets["probe"] = made()["probe"]
    assert leaked_share(run.config, nets, inputs) > 0.5


@pytest.mark.usefixtures("short_probe_training")
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
def test_what_is_kept_of_a_fit_is_the_average_of_its_weights(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps: the average begins with the weights after the first; (1 + 1)/(10 + 1) of it stays at the second."""
    seen: list[Tensor] = []

    apply = SelectorLoop.apply_gradients

    def applied(loop: SelectorLoop, active: list[Player]) -> None:
        apply(loop, active)
        seen.append(loop.state.parameters_by_player["selector"][-1].detach().clone())  # the approximator's bias

    monkeypatch.setattr(SelectorLoop, "apply_gradients", applied)
    for average, old in ((0.0, 0.0), (0.9, 2 / 11)):
        seen.clear()
        kept = fit(inputs, weight_averaging=average).execute()["approximator"].last.bias
        first, second = seen
        assert not torch.equal(first, second)
        torch.testing.assert_close(kept, old * first + (1 - old) * second)


class Watched(NoMitigation):
    """Looks at the rounds of a fit."""

    def __init__(self) -> None:
        self.rounds: list[SelectorStep] = []

    def terms(self, step: SelectorStep, stage: str) -> Terms:
        self.rounds.append(step)
        return super().terms(step, stage)


@pytest.mark.usefixtures("short_probe_training")
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
@pytest.mark.parametrize(("method", "shares"), [(L2X, [0.6, 0.4]), (Vibi, [2 / 3, 1 / 3])])
def test_the_shares_of_what_is_guessed_are_known_and_every_step_draws_anew(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch, method: type[SelectorConfig], shares: list[float]
) -> None:
    """Of every three inputs the black box predicts .9, .8 and .1 for class 0: .6 on average, and its label twice."""
    uneven = Inputs(x=inputs.x, probs=torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]]).repeat(MANY // 3, 1))
    monkeypatch.setitem(MITIGATIONS, "none", watched := Watched())
    fit(uneven, method).execute()
    first_step, other = watched.rounds
    assert first_step.prior.tolist() == pytest.approx(shares)
    drawn = [step.key.child(0).uniform(torch.arange(4), UNITS) for step in (first_step, other)]
    assert not torch.equal(*drawn)


def test_an_average_forgets_where_it_began() -> None:
    """After 1,000 steps a plain running average, of which .999 is old, is 37 % of what it began with."""
    nets = nn.ModuleDict({"one": nn.Linear(1, 1, bias=False)})
    nn.init.constant_(nets["one"].weight, 100.0)
    average = WeightAverage(nets, 0.999)
    average.update()
    by_hand = 100.0
    nn.init.constant_(nets["one"].weight, 1.0)
    for step in range(1, 1000):
        average.update()
        by_hand += (1.0 - by_hand) * max(0.001, 9 / (10 + step))
    kept = average.networks["one"].weight.item()
    assert kept == pytest.approx(by_hand, rel=1e-3)
    assert kept < 1.01
