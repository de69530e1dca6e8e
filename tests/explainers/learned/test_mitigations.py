"""Who learns from which masks."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Terms
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.l2x import L2X, InputBatch, SelectorConfig, SelectorStep
from steadygaze.explainers.learned.mitigations import MITIGATIONS, RANDOM, _shuffled_query
from steadygaze.explainers.learned.text_inputs import text_nets
from steadygaze.explainers.learned.vibi import Vibi
from steadygaze.training.optimizers import player_parameters
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.training_loop import Rows, StageLoop, StageState

SMALL = {"k": 2, "dimension": 6, "hidden": 8, "conditioned": True}
SELECTING: dict[str, type[SelectorConfig]] = {
    n: kind for n, kind in METHODS.items() if issubclass(kind, SelectorConfig)
}
CASES = [(name, mitigation) for name, kind in SELECTING.items() for mitigation in kind.mitigations]


def views() -> InputBatch:
    x = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 2, 0, 0], [3, 3, 9, 5, 0]])
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    return InputBatch(x, x > 0, probs, torch.tensor([4, 5, 6]))


def round_of(how: SelectorConfig, step: int = 0) -> SelectorStep:
    torch.manual_seed(0)
    return SelectorStep(how, text_nets(how, 10, 2), views(), RandomKey(1).child(step), torch.tensor([0.5, 0.5]))


class OneStep(StageLoop):
    """A loop of which only `update` is called."""

    def batches(self) -> list[Rows]:
        return []

    def train_step(self, rows: Rows) -> Terms:
        raise NotImplementedError


def moved(how: SelectorConfig, stage: int = -1) -> set[str]:
    """Which networks a step of a stage changes."""
    step, mitigation = round_of(how), MITIGATIONS[how.mitigation]
    where = mitigation.stages(how)[stage]
    players = mitigation.players(how, where.name)
    moving = player_parameters(dict(step.networks.named_parameters()), where, players)
    before = {name: value.clone() for name, value in step.networks.state_dict().items()}
    steps = torch.optim.SGD([p for part in moving.values() for p in part], 0.5)
    state = StageState(networks=step.networks, parameters_by_player=moving, optimizer=steps)
    OneStep(where, state, SilentWatcher(), 3, players).update(mitigation.terms(step, where.name), None)
    after = step.networks.state_dict()
    return {name.split(".")[0] for name, value in before.items() if not torch.equal(value, after[name])}


@pytest.mark.parametrize(("method", "mitigation"), CASES)
def test_terms_are_one_finite_number_per_input(method: str, mitigation: str) -> None:
    how = SELECTING[method](mitigation=mitigation, **SMALL)
    for stage in MITIGATIONS[mitigation].stages(how):
        terms = MITIGATIONS[mitigation].terms(round_of(how), stage.name)
        assert all(value.shape == (3,) and value.isfinite().all() for value in terms.values())


@pytest.mark.parametrize(("method", "mitigation"), CASES)
def test_slopes_reach_the_selector(method: str, mitigation: str) -> None:
    assert "selector" in moved(SELECTING[method](mitigation=mitigation, **SMALL))


@pytest.mark.parametrize("mitigation", ["none", "mask-neutral"])
def test_all_learn_together(mitigation: str) -> None:
    assert moved(L2X(mitigation=mitigation, **SMALL)) == {"selector", "approximator", "probe"}


@pytest.mark.parametrize("method", ["l2x", "vibi"])
def test_the_approximator_learns_from_random_masks_first_and_is_frozen_then(method: str) -> None:
    how = SELECTING[method](mitigation="random-pretraining", **SMALL)
    assert moved(how, 0) == {"approximator"}
    assert moved(how, 1) == {"selector", "probe"}


def test_random_masks_know_nothing_of_the_input() -> None:
    """Another ŷ and another selector draw the same masks, so the input of the approximator is the same."""
    how = L2X(mitigation="random-pretraining", **SMALL)
    step, other = round_of(how), round_of(how)
    nn.init.normal_(other.networks["selector"].score.weight, std=5)
    mitigation = MITIGATIONS["random-pretraining"]
    assert torch.equal(mitigation.terms(step, RANDOM)["prediction"], mitigation.terms(other, RANDOM)["prediction"])


def slopes(terms: Terms, name: str, net: nn.Module) -> list[torch.Tensor | None]:
    return list(torch.autograd.grad(terms[name].sum(), list(net.parameters()), allow_unused=True, retain_graph=True))


@pytest.mark.parametrize("mitigation", ["none", "random-pretraining", "mask-neutral", "random-query"])
def test_no_player_receives_the_gradient_of_the_probe(mitigation: str) -> None:
    """The label is not kept out of the mask by a penalty: the probe only measures."""
    how = L2X(mitigation=mitigation, **SMALL)
    step = round_of(how)
    terms = MITIGATIONS[mitigation].terms(step, "selecting")
    assert all(slope is None for slope in slopes(terms, "mask", step.networks["selector"]))


def test_with_weights_the_last_epoch_is_kept() -> None:
    """The epoch of the best guesses would be the one with the best code."""
    kept = {name: MITIGATIONS[name].stages(L2X(**SMALL))[-1].select for name in MITIGATIONS}
    assert kept == {"none": "best", "random-pretraining": "best", "mask-neutral": "last", "random-query": "best"}


def test_weights_have_no_slope() -> None:
    """Through the weights the probe would learn from the prediction."""
    step = round_of(L2X(mitigation="mask-neutral", **SMALL))
    terms = MITIGATIONS["mask-neutral"].terms(step, "selecting")
    assert all(slope is None for slope in slopes(terms, "prediction", step.networks["probe"]))


def test_with_random_query_all_learn_from_others_labels_and_then_the_selector_from_the_true_ones() -> None:
    how = L2X(mitigation="random-query", **SMALL)
    assert moved(how, 0) == {"selector", "approximator", "probe"}
    assert moved(how, 1) == {"selector", "probe"}


def test_labels_are_dealt_out_anew_in_the_first_stage_alone() -> None:
    """The selector is conditioned on the prediction for another input of the batch, and never for its own."""
    step = round_of(L2X(mitigation="random-query", **SMALL))
    rings = [_shuffled_query(round_of(step.config, number)) for number in range(20)]
    for dealt in rings:
        assert sorted(dealt.tolist()) == sorted(step.views.probs.tolist())
        assert not (dealt == step.views.probs).any()
    assert len({str(dealt) for dealt in rings}) > 1
    own = MITIGATIONS["random-query"].terms(step, "selecting")["prediction"]
    assert torch.equal(own, MITIGATIONS["none"].terms(step, "selecting")["prediction"])


def test_an_input_that_is_alone_in_its_batch_is_conditioned_on_the_shares_of_the_classes() -> None:
    step = round_of(L2X(mitigation="random-query", **SMALL))
    x, selectable, probs, rows = (
        part[:1] for part in (step.views.x, step.views.selectable, step.views.probs, step.views.rows)
    )
    alone = replace(step, views=InputBatch(x, selectable, probs, rows), prior=torch.tensor([0.25, 0.75]))
    assert _shuffled_query(alone).tolist() == [[0.25, 0.75]]


class ConstantNetwork(nn.Module):
    """Has the same output for every mask or view."""

    def __init__(self, *log_probs: list[float]) -> None:
        super().__init__()
        self.log_probs_ = torch.tensor(log_probs, dtype=torch.float64).log()

    def forward(self, *_: torch.Tensor) -> torch.Tensor:
        return self.log_probs_


def test_mask_neutral_weights_worked_by_hand() -> None:
    """P(y) = (1/4, 3/4).  Two sure inputs, of class 0 and 1; by their masks the probe gives them 1/2 each.

    w = P(y)/P(y|m) = 1/2 and 3/2, whose mean is 1.  The approximator gives the right class 1/4 and 1/2:
    w·ℓ = 1/2 ln 4 and 3/2 ln 2.
    """
    x = torch.tensor([[2, 3, 4], [5, 6, 7]])
    inputs = InputBatch(x, x > 0, torch.eye(2, dtype=torch.float64), torch.tensor([0, 1]))
    nets = nn.ModuleDict(
        {
            "selector": ConstantNetwork([0.5, 0.25, 0.25], [0.25, 0.5, 0.25]),
            "approximator": ConstantNetwork([0.25, 0.75], [0.5, 0.5]),
            "probe": ConstantNetwork([0.5, 0.5], [0.5, 0.5]),
        }
    )
    step = SelectorStep(L2X(k=1), nets, inputs, RandomKey(0), torch.tensor([0.25, 0.75], dtype=torch.float64))
    terms = MITIGATIONS["mask-neutral"].terms(step, "selecting")
    assert terms["prediction"].tolist() == pytest.approx([0.5 * math.log(4), 1.5 * math.log(2)])
    assert terms["mask"].tolist() == pytest.approx([math.log(2)] * 2), "the probe learns from all equally"


def test_a_price_on_choosing_unevenly_worked_by_hand() -> None:
    """z = (ln 3, 0): p = (3/4, 1/4), KL to even = 3/4 ln(3/2) + 1/4 ln(1/2); times β k = 0.1 · 2."""
    how = Vibi(k=2, beta=0.1)
    x = torch.tensor([[2, 3, 0]])
    inputs = InputBatch(x, x > 0, torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    scores = torch.tensor([[math.log(3), 0.0, 5.0]], dtype=torch.float64)
    right = 0.2 * (0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert how.selection_cost(scores, inputs).item() == pytest.approx(right, abs=1e-12)


def test_the_selector_is_conditioned_on_the_prediction_only_with_conditioned() -> None:
    for query in (True, False):
        how = L2X(**{**SMALL, "conditioned": query})
        step = round_of(how)
        flipped = replace(step.views, probs=step.views.probs.flip(-1))
        other = replace(step, views=flipped)
        assert torch.equal(step.scores(), other.scores()) != query
