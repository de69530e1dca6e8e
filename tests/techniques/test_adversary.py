"""The trained adversary: its terms by hand, what pulls at it, and that it gets away with another attention."""

import copy
import math

import pytest
import torch
from scipy.stats import entropy

from contract.tiny import assert_close
from steadygaze.core.maths.distributions import jensen_shannon
from steadygaze.models import inference
from steadygaze.techniques.adversary import Adversary
from steadygaze.techniques.technique import CachedTargets
from techniques.byhand import PEAKED, assert_gradient, by_hand, even, frozen, handed, loss, real_model, texts
from training.toys import corpus, make_run


def test_the_terms_by_hand():
    """The reference has w = (¾, ¼), p = 27/28; the model w̃ = (½, ½), z = (0, 2 ln 3), ỹ = 9/10.

    ½ Σ |Δy| = 27/28 − 9/10 = 9/140.  KL(w̃ ‖ w) = ½ ln(⅔) + ½ ln 2 = ½ ln(4/3); the other way round it would be
    ¾ ln(3/2) + ¼ ln(½) = 0.131, not 0.144.
    """
    reference = by_hand(PEAKED)
    terms = loss(Adversary(difference=0.2), even(reference), texts([1, 2]), models={"reference": frozen(reference)})
    results = {name: value.item() for name, value in terms.items()}
    assert results == pytest.approx({"task": 9 / 140, "difference": -0.2 * math.log(4 / 3) / 2}, abs=1e-12)


def test_the_terms_of_ragged_texts_are_those_of_scipy():
    reference, batch = real_model()
    model, reference = copy.deepcopy(reference), frozen(reference)
    torch.nn.init.normal_(model.scorer.weigh.weight)
    terms = loss(Adversary(difference=2.0), model, batch, models={"reference": reference})
    with torch.no_grad():
        own, other = model(batch), reference(batch)
    for row in range(len(batch)):
        real = batch.mask[row]
        distance = entropy(own.weights[row, real], other.weights[row, real]) if real.any() else 0.0
        assert terms["difference"][row].item() == pytest.approx(-2 * distance, abs=1e-12)
        change = (own.logits[row].softmax(-1) - other.logits[row].softmax(-1)).abs().sum().item() / 2
        assert terms["task"][row].item() == pytest.approx(change, abs=1e-12)


def test_without_a_wish_to_differ_it_only_copies_predictions():
    reference, batch = real_model()
    model = copy.deepcopy(reference)
    torch.nn.init.normal_(model.decoder.output.weight)
    terms = loss(Adversary(difference=0), model, batch, models={"reference": frozen(reference)})
    assert not terms["difference"].any()
    target = reference(batch).logits.softmax(-1).detach()
    expected = (target - model(batch).logits.softmax(-1)).abs().sum(-1) / 2
    assert_gradient(model, sum(terms.values()).sum(), expected.sum())


def test_of_one_word_there_is_nothing_to_differ_in():
    reference, batch = real_model()
    terms = loss(Adversary(), even(reference), batch, models={"reference": frozen(reference)})
    assert not terms["difference"][batch.mask.sum(-1) < 2].any()
    assert (terms["difference"][batch.mask.sum(-1) > 1] < 0).all()


def test_weights_of_exactly_nothing_are_worth_much_but_not_everything():
    """Where the published code is NaN: w = (1, 0) exactly, w̃ even: KL = ½ ln ½ + ½ (ln ½ + 708)."""
    model, batch = by_hand([(0.0, 1.0), (0.0, 0.0)]), texts([1, 2])
    weights = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    inputs = handed(Adversary(), model, batch, models={"reference": frozen(model)})
    inputs = type(inputs)(
        inputs.models, cached_targets=CachedTargets(inputs.cached_targets.texts, {"weights": weights})
    )
    terms = Adversary(difference=1.0).loss(model, batch, inputs)
    assert terms["difference"].item() == pytest.approx(math.log(2) - 0.5 * 708.396, abs=1e-2)
    slope = torch.autograd.grad(terms["difference"].sum(), list(model.parameters()), allow_unused=True)
    assert all(gradient is None or gradient.isfinite().all() for gradient in slope)


@pytest.mark.slow
def test_it_agrees_with_its_reference_and_looks_elsewhere():
    """Beside a copy with λ = 0: nearly the same predictions, another attention."""
    data, results = corpus(), {}
    for difference in (0.0, 0.1):
        run = make_run(Adversary(difference=difference), epochs=6)
        model = run.execute()
        ours, theirs = inference.split_outputs(model, data), inference.split_outputs(run.models["reference"], data)
        several = ours.mask.sum(-1) > 1
        distance = jensen_shannon(ours.weights.double(), theirs.weights.double(), ours.mask)[several]
        change = (ours.logits.softmax(-1) - theirs.logits.softmax(-1)).abs().sum(-1) / 2
        results[difference] = float(distance.mean()), float(change.mean())
    assert results[0.1][0] > 2 * results[0.0][0]
    assert results[0.1][1] < results[0.0][1] + 0.1


def test_it_starts_afresh_and_the_reference_stays_as_it_is():
    first, second = Adversary().stages(3)
    assert (first.model, second.model, second.start, second.select) == ("reference", "model", None, "last")
    run = make_run(Adversary(), epochs=1)
    alone = make_run(first.technique, epochs=1).execute()
    run.execute()
    for name, value in run.models["reference"].state_dict().items():
        assert_close(value, alone.state_dict()[name], value.dtype)
