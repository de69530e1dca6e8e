"""RNP: each estimator has its documented gradient; REINFORCE is unbiased, by enumeration of all selections."""

import dataclasses
from itertools import count

import pytest
import torch
from torch import Tensor

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Terms
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.techniques.rationalizing import BASELINE_BATCHES, sample_selection
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.technique import LossContext, task_loss
from techniques.byhand import record_calls, selecting_model, texts

THREE = texts([3, 4, 6, 5, 8, 13, 9, 2, 7], label=[0])
"""Three sentences; ids 6 and 13 end one."""
WORDS = texts([3, 4, 5], label=[0])
ESTIMATORS = ("reinforce", "straight-through", "gumbel")


def model_of(technique: Rnp) -> Rationalizer:
    model = selecting_model(technique, hidden=6)
    with torch.no_grad():  # so that probabilities are far from even, and selections differ
        model.generator.scorer.weigh.weight.mul_(4)
        for value in model.predictor.parameters():
            value.mul_(3)
    return model


def generator_pull(loss: Tensor, model: Rationalizer) -> list[Tensor]:
    return list(torch.autograd.grad(loss, list(model.generator.parameters())))


def drawn_loss(technique: Rnp, model: Rationalizer, batch: Batch, seed: int) -> tuple[Terms, Tensor]:
    """The terms, and the selection that was read for them."""
    calls = record_calls(model, "read")
    terms = technique.loss(model, batch, LossContext(key=RandomKey(seed)))
    return terms, calls[-1][1]


def selections(model: Rationalizer, batch: Batch) -> list[Tensor]:
    """All that can be drawn: each sentence; or each set of words."""
    if model.selection_config.granularity == "sentence":
        numbers = model.sentences(batch)
        return [numbers == sentence for sentence in range(int(numbers.max()) + 1)]
    many = batch.ids.shape[1]
    return [torch.tensor([[bool(code >> t & 1) for t in range(many)]]) for code in range(2**many)]


def selection_probabilities(technique: Rnp, model: Rationalizer, batch: Batch) -> list[Tensor]:
    """q of each of them, with its gradient, as the paper and no code of ours has it."""
    p = model.generate(batch).probability[0]
    if model.selection_config.granularity == "sentence":
        return list((1 - technique.exploration) * p + technique.exploration / len(p))
    q = (1 - technique.exploration) * p + technique.exploration * technique.share
    return [torch.where(selection[0], q, 1 - q).prod() for selection in selections(model, batch)]


def cost(technique: Rnp, model: Rationalizer, batch: Batch, chosen: Tensor) -> Tensor:
    result = task_loss(model.read(batch, chosen), batch)[0].tanh()
    if model.selection_config.granularity == "sentence":
        return result
    z, n = chosen[0].double(), batch.ids.shape[1]
    changes = sum(abs(z[t] - z[t + 1]) for t in range(n - 1))
    pieces = max(0, float(changes) - 2 * technique.spans) / n
    return result + technique.sparsity * abs(z.sum() / n - technique.share) + technique.continuity * pieces


@pytest.mark.sweep(strength=2)
@pytest.mark.parametrize("batch", [THREE, WORDS], ids=["sentences", "tokens"])
@pytest.mark.parametrize("costs", [(), (0.3, 0.5)], ids=["no baseline", "baseline"])
@pytest.mark.parametrize("exploration", [0.0, 0.2])
def test_reinforce_is_unbiased_for_the_cost_of_a_selection_as_it_is_drawn(batch, costs, exploration):
    """Exactly: Σ_M q(M) · (the gradient it takes where M was drawn) is the gradient of Σ_M q(M) c(M)."""
    granularity = "sentence" if batch is THREE else "token"
    technique = Rnp(granularity=granularity, costs=costs, exploration=exploration, share=0.4, spans=1, sparsity=0.7)
    technique = dataclasses.replace(technique, continuity=2.0)
    model = model_of(technique)
    every, drawn = selections(model, batch), selection_probabilities(technique, model, batch)
    assert_close(sum(drawn).detach(), torch.tensor(1.0, dtype=torch.float64))
    charged = [cost(technique, model, batch, selection).detach() for selection in every]
    assert max(charged) - min(charged) > 0.05, "or nothing is to be learned"
    truth = generator_pull(sum(q * c for q, c in zip(drawn, charged, strict=True)), model)
    assert any(pull.abs().max() > 1e-4 for pull in truth), "or nothing is compared"

    met: dict[int, list[Tensor]] = {}
    for seed in count():  # until all that can be drawn has been
        terms, chosen = drawn_loss(technique, model, batch, seed)
        which = next(i for i, selection in enumerate(every) if torch.equal(selection, chosen > 0))
        met.setdefault(which, generator_pull(terms["policy"].sum(), model))
        if len(met) == len(every):
            break
    for place, expected in enumerate(truth):
        assert_close(sum(drawn[i].detach() * met[i][place] for i in met), expected)


def test_exploration_shortens_the_gradient_for_sentences_and_turns_it_nowhere():
    technique = Rnp(exploration=0.2)
    model = model_of(technique)
    charged = [cost(technique, model, THREE, selection).detach() for selection in selections(model, THREE)]
    pulls = [
        generator_pull(
            sum(q * c for q, c in zip(selection_probabilities(Rnp(exploration=e), model, THREE), charged, strict=True)),
            model,
        )
        for e in (0.0, 0.2)
    ]
    for bare, explored in zip(*pulls, strict=True):
        assert_close(explored, 0.8 * bare)


@pytest.mark.parametrize("granularity", ["sentence", "token"])
def test_with_reinforce_the_generator_minimizes_the_policy_loss_and_the_predictor_the_task_loss(granularity):
    technique = Rnp(granularity=granularity)
    model = model_of(technique)
    terms = technique.loss(model, THREE, LossContext(key=RandomKey(1)))
    parameters = list(model.generator.parameters())
    assert all(
        g is None for g in torch.autograd.grad(terms["task"].sum(), parameters, allow_unused=True, retain_graph=True)
    )
    gradients = torch.autograd.grad(terms["policy"].sum(), list(model.predictor.parameters()), allow_unused=True)
    assert all(pull is None for pull in gradients)
    assert {player.name: player.terms for player in technique.players()} == {
        "predictor": ("task",),
        "generator": ("policy",),
    }


@pytest.mark.sweep
@pytest.mark.parametrize("granularity", ["sentence", "token"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_whatever_the_estimator_what_is_read_is_a_selection_and_nothing_in_between(estimator, granularity):
    technique = Rnp(estimator=estimator, granularity=granularity, share=0.4, spans=2)
    model = model_of(technique)
    for seed in range(5):
        terms, chosen = drawn_loss(technique, model, THREE, seed)
        assert set(chosen.unique().tolist()) <= {0.0, 1.0}
        assert torch.equal(task_loss(model.read(THREE, chosen > 0), THREE), terms["task"])
        if estimator != "reinforce":
            assert any(pull.abs().max() > 0 for pull in generator_pull(terms["task"].sum(), model))
            if granularity == "token":
                assert int(chosen.sum()) <= 0.4 * 9


def test_straight_through_has_the_gradient_of_the_probabilities():
    """∂ℓ/∂z at what was drawn, times ∂π/∂θ."""
    technique = Rnp(estimator="straight-through")
    model = model_of(technique)
    result = generator_pull(technique.loss(model, THREE, LossContext(key=RandomKey(2)))["task"].sum(), model)
    looked = model.generate(THREE)
    units = sample_selection(looked, THREE, RandomKey(2), technique.exploration).units
    z = looked.spread(units).double().requires_grad_()
    (slope,) = torch.autograd.grad(task_loss(model.read(THREE, z), THREE).sum(), z)
    expected = generator_pull((looked.spread(looked.probability) * slope).sum(), model)
    assert_close(result, expected)


@pytest.mark.parametrize("batch", [THREE, WORDS], ids=["sentences", "tokens"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_gumbel_draws_as_reinforce_does_and_pulls_through_what_is_softer_the_higher_the_temperature(batch, temperature):
    """∂ℓ/∂z at what was drawn, times ∂/∂θ of softmax((ln q + g) / τ), g = −ln −ln u; of coins, of the same of two."""
    granularity = "sentence" if batch is THREE else "token"
    technique = Rnp(estimator="gumbel", temperature=temperature, granularity=granularity, share=None, sparsity=0.0)
    technique = dataclasses.replace(technique, continuity=0.0)
    model = model_of(technique)
    result = generator_pull(technique.loss(model, batch, LossContext(key=RandomKey(2)))["task"].sum(), model)
    looked = model.generate(batch)
    p, u = looked.probability, RandomKey(2).uniform(batch.index, looked.real.shape[1], dtype=torch.float64)
    if batch is THREE:
        noisy = (0.8 * p + 0.2 / 3).log() - (-u.log()).log()
        soft, units = (noisy / temperature).softmax(-1), noisy == noisy.amax(-1, keepdim=True)
    else:
        q = 0.8 * p + 0.2 * 0.5
        soft, units = (((q / (1 - q)).log() - (u / (1 - u)).log()) / temperature).sigmoid(), u < q
    assert torch.equal(technique.drawn(looked, batch, LossContext(key=RandomKey(2))).units, units)
    z = looked.spread(units).double().requires_grad_()
    (slope,) = torch.autograd.grad(task_loss(model.read(batch, z), batch).sum(), z)
    expected = generator_pull((looked.spread(soft) * slope).sum(), model)
    assert any(pull.abs().max() > 1e-6 for pull in expected), "or nothing is compared"
    assert_close(result, expected)


def test_with_a_share_gumbel_takes_the_best_windows_after_noise_and_straight_through_those_of_evaluation():
    for estimator, many in (("straight-through", 1), ("gumbel", 4)):
        technique = Rnp(estimator=estimator, granularity="token", share=0.4, spans=2)
        model = model_of(technique)
        seen = {tuple((drawn_loss(technique, model, THREE, seed)[1] > 0)[0].tolist()) for seed in range(12)}
        assert len(seen) >= many, estimator
        usual = model.select(THREE, model.generate(THREE))[0]
        assert (seen == {tuple(usual.tolist())}) == (estimator == "straight-through")


def test_tokens_without_a_share_pay_for_what_they_take_whatever_the_estimator():
    for estimator in ESTIMATORS:
        technique = Rnp(granularity="token", share=None, spans=None, estimator=estimator)
        terms = technique.loss(model_of(technique), WORDS, LossContext(key=RandomKey(1)))
        assert {"sparsity", "continuity"} <= set(terms)
        (generator,) = [player for player in technique.players() if player.name == "generator"]
        assert set(generator.terms or ()) == (
            {"policy"} if estimator == "reinforce" else {"task", "sparsity", "continuity"}
        )


def test_the_baseline_is_the_mean_cost_of_the_last_batches():
    """Costs 0.5 and 1, mean .75; then only the last 200 batches are kept.  What knows no cost remembers none."""
    technique = Rnp()
    assert technique.baseline == 0.0
    once = technique.after_step({"cost": torch.tensor([0.5, 1.0]), "policy": torch.tensor([9.0, 9.0])})
    assert once.costs == (once.baseline,) == (0.75,)
    for _ in range(BASELINE_BATCHES):
        once = once.after_step({"cost": torch.zeros(2)})
    assert once.costs == (0.0,) * BASELINE_BATCHES
    assert Rnp(estimator="gumbel").after_step({"task": torch.ones(2)}) == Rnp(estimator="gumbel")


@pytest.mark.parametrize("granularity", ["sentence", "token"])
def test_the_cost_is_that_of_what_was_drawn_and_pulls_as_far_as_it_is_from_the_baseline(granularity):
    technique = Rnp(granularity=granularity, costs=(0.25,), share=0.4, spans=1)
    model = model_of(technique)
    terms, chosen = drawn_loss(technique, model, THREE, 1)
    assert_close(terms["cost"][0], cost(technique, model, THREE, chosen > 0))
    assert not terms["cost"].requires_grad
    bare = drawn_loss(dataclasses.replace(technique, costs=()), model, THREE, 1)[0]
    assert_close(terms["policy"] * terms["cost"], bare["policy"] * (terms["cost"] - 0.25))
