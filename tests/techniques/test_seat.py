"""SEAT: its terms by hand, what each variant trains, and what it is at strength zero."""

import copy
import math

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.maths.distributions import cross_entropy
from steadygaze.techniques.seat import Seat
from techniques.byhand import (
    EVEN,
    LN3,
    PEAKED,
    assert_gradient,
    by_hand,
    even,
    frozen,
    handed,
    loss,
    real_model,
    record_calls,
    texts,
)
from training.toys import make_model, make_run, weights


@pytest.mark.parametrize("variant", ["paper", "joint"])
@pytest.mark.parametrize("solver", ["pairs", "exact"])
def test_the_terms_by_hand(variant, solver):
    """The reference has w = (¾, ¼), p = 27/28; the model w̃ = (½, ½), z = (0, 2 ln 3), y = (1/10, 9/10).

    D1 = −27/28 ln(9/10) − 1/28 ln(1/10).  L_topk = (½ + ½)/4 = ¼, k = 7 being more than two words.
    a_10 = (4 ln 3, 0); R = ¼: margins 2 ln 3 ± ln 3, y = 3/4 or 27/28, and the first is the worse:
    D2 = −9/10 ln(3/4) − 1/10 ln(1/4).
    """
    reference, batch = by_hand(PEAKED), texts([1, 2])
    technique = Seat(variant=variant, radius=0.25, solver=solver, stability=3.0, overlap=8.0)
    terms = loss(technique, even(reference), batch, models={"reference": frozen(reference)})
    close = -27 / 28 * math.log(0.9) - 1 / 28 * math.log(0.1)
    stable = -0.9 * math.log(0.75) - 0.1 * math.log(0.25)
    results = {name: value.item() for name, value in terms.items()}
    assert results == pytest.approx({"task": close, "top-k": 8 * 0.25, "stable": 3 * stable}, abs=1e-12)


@pytest.mark.parametrize("variant", ["paper", "joint"])
def test_at_strength_zero_it_is_plain_distillation(variant):
    reference, batch = real_model()
    model = copy.deepcopy(reference)
    torch.nn.init.normal_(model.scorer.weigh.weight)
    terms = loss(Seat(variant=variant, overlap=0, stability=0), model, batch, models={"reference": frozen(reference)})
    assert list(terms) == ["task"]
    expected = cross_entropy(reference(batch).logits.softmax(-1).detach(), model(batch).logits)
    assert_close(terms["task"], expected)
    if variant == "paper":  # of which the loop freezes the rest
        model.encoder.requires_grad_(False)
        model.decoder.requires_grad_(False)
        terms = loss(Seat(overlap=0, stability=0), model, batch, models={"reference": frozen(reference)})
        expected = cross_entropy(reference(batch).logits.softmax(-1).detach(), model(batch).logits)
    assert_gradient(model, terms["task"].sum(), expected.sum())


def test_a_model_equal_to_its_reference_has_only_the_gradient_of_the_stability_term():
    reference, batch = real_model()
    terms = loss(Seat(), reference, batch, models={"reference": frozen(reference)})
    assert (terms["top-k"] == 0).all()
    pull = torch.autograd.grad(terms["task"].sum(), list(reference.parameters()), retain_graph=True, allow_unused=True)
    assert all(gradient is None or gradient.abs().max() < 1e-12 for gradient in pull)


def test_hidden_states_come_from_memory_and_are_the_encoders():
    reference, batch = real_model()
    inputs = handed(Seat(), reference, batch, models={"reference": frozen(reference)})
    assert_close(inputs.cached_targets.tokens["hidden"], reference.encode(batch).hidden.detach())
    model = even(reference)
    calls = record_calls(model, "encode")
    Seat().loss(model, batch, inputs)
    assert not calls
    joint = Seat(variant="joint")
    assert "hidden" not in joint.cache_targets({"reference": frozen(reference)}, batch).tokens
    joint.loss(model, batch, handed(joint, model, batch, models={"reference": frozen(reference)}))
    assert len(calls) == 1


def changed(before, after) -> set[str]:
    """Which parts differ."""
    first, second = weights(before), weights(after)
    return {name.split(".")[0] for name in first if first[name] != second[name]}


@pytest.mark.parametrize(("variant", "parts"), [("paper", {"scorer"}), ("joint", {"scorer", "encoder", "decoder"})])
def test_the_variant_determines_what_is_trained(variant, parts):
    run = make_run(Seat(variant=variant), epochs=2)
    model = run.execute()
    assert changed(run.models["reference"], model) == parts
    assert [record["stage"] for record in run.history] == ["reference"] * 2 + ["student"] * 2


def test_started_from_the_reference_without_strength_it_stays_there():
    """Its loss is smallest there.  In double precision, where Adam has no rounding to make steps of."""
    run = make_run(
        Seat(overlap=0, stability=0), lambda: make_model(dtype=torch.float64, dropout=0.0), epochs=4, learning_rate=1e-3
    )
    model = run.execute()
    for parameter, other in zip(model.parameters(), run.models["reference"].parameters(), strict=True):
        torch.testing.assert_close(parameter.detach(), other, rtol=0, atol=1e-6)


def test_released_by_hand():
    """x_1 = (0, 4 ln 3), x_2 = (0, 0): w̃ = (½, ½), ℓ = ln(10/9).  Radius ρ = ½ ln 3.

    The loss rises as both second entries and the first word's score fall and the second's score rises, wherever in the
    ball one stands; ten steps of 2ρ/10 cross it.  So r = ((−ρ, −ρ), (ρ, −ρ)): w̃ = (¼, ¾),
    z = ¼ (4 ln 3 − ρ) − ¾ ρ = ½ ln 3, ℓ = ln(1 + 1/√3); L_topk = (½ + ½)/4.
    """
    model, batch = by_hand(EVEN), texts([1, 2])
    technique = Seat(variant="released", embedding_radius=LN3 / 2, stability=3.0, overlap=8.0)
    results = {name: value.item() for name, value in loss(technique, model, batch).items()}
    expected = {"task": math.log(10 / 9), "adversarial": 3 * math.log(1 + 3**-0.5), "top-k": 2.0}
    assert results == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("clamp", [False, True])
def test_released_keeps_to_its_ball_and_only_the_clamp_leaves_it(clamp):
    """Pressed into [0, 1], every negative entry moves by more than the radius: what the released code does."""
    model, batch = real_model()
    calls = record_calls(model, "encode")
    loss(Seat(variant="released", embedding_radius=0.05, clamp=clamp), model, batch)
    own, perturbed = model.embed(batch).detach(), calls[-2][1].detach()
    r = perturbed - own
    assert_close(calls[-1][1].detach(), own)
    if clamp:
        assert ((perturbed >= 0) & (perturbed <= 1)).all()
        assert r.abs().max() > 0.2
    else:
        assert r.abs().max() <= 0.05 + 1e-12
        assert (r[~batch.mask] == 0).all()
        assert (r[batch.mask] != 0).all()


def test_released_rewards_uninformative_attention():
    """Its top-k term is exactly 0 for one, and not for an ordinary one; the paper's is the other way round."""
    model, batch = real_model()
    several = batch.mask.sum(-1) > 1
    released = Seat(variant="released", embedding_radius=0.1)
    assert (loss(released, even(model), batch)["top-k"] == 0).all()
    assert (loss(released, model, batch)["top-k"][several] > 0).all()
    arguments = {"models": {"reference": frozen(model)}}
    assert (loss(Seat(), even(model), batch, **arguments)["top-k"][several] > 0).all()
    assert (loss(Seat(), model, batch, **arguments)["top-k"] == 0).all()


def test_released_needs_no_reference():
    assert [stage.name for stage in Seat(variant="released").stages(0)] == ["train"]
    assert [stage.model for stage in Seat().stages(0)] == ["reference", "model"]
