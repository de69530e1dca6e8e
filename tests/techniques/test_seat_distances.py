"""The two distances of SEAT: by hand, and the worst change against all corners, a search and other norms."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from contract.tiny import assert_close
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import cross_entropy, entropy
from steadygaze.core.random_key import RandomKey
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.perturbations.closed_form import best_pair
from steadygaze.techniques.anchored import Anchored
from steadygaze.techniques.consensus import Consensus
from steadygaze.techniques.seat import Seat, WeightBall, top_k_distance, worst_change
from techniques.byhand import LN3, by_hand, real_model, texts

W = torch.tensor([[0.5, 0.3, 0.2, 0.0]], dtype=torch.float64)
OWN = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
WORDS = torch.ones(1, 4, dtype=torch.bool)


def binary(encoder: str = "bilstm"):
    """A model of two classes, and a batch for it."""
    model, batch = real_model(encoder)
    torch.manual_seed(1)
    two = Classifier(model.encoder, Architecture(), 2, pair=False).double().eval()
    with torch.no_grad():
        two.decoder.output.weight.mul_(5)  # so that predictions are no halves
    return two, batch


def worst(model, batch, key: RandomKey | None = None, **ball) -> Tensor:
    output = model(batch)
    return worst_change(
        model, output.encoded, output.weights, output.logits, batch, WeightBall(**ball), key or RandomKey(5)
    )


@pytest.mark.parametrize(("k", "expected"), [(1, 0.4), (2, 0.25), (3, 0.2), (4, 0.25), (9, 0.25)])
def test_the_top_k_distance_by_hand(k, expected):
    """Differences (.4, .1, .1, .4).  k = 1: (.4 + .4)/2.  k = 2: words 1, 2 of w, 4, 3 of w̃: (.5 + .5)/4.

    k = 3: words 1, 2, 3 and 4, 3, 2: (.6 + .6)/6.  k = 4 and more: all four words, (1 + 1)/8.
    """
    assert top_k_distance(W, OWN, WORDS, k).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_equal_weights_are_at_no_distance_and_the_distance_is_symmetric(k):
    assert top_k_distance(W, W, WORDS, k).item() == 0
    assert_close(top_k_distance(W, OWN, WORDS, k), top_k_distance(OWN, W, WORDS, k))


def test_a_tie_goes_to_the_earlier_word():
    """k = 1.  w = (.1, .4, .4, .1): word 2.  w̃ = (.6, .1, .2, .1): word 1.  (|.4 − .1| + |.1 − .6|)/2 = .4.

    Had the tie gone to word 3: (|.4 − .2| + .5)/2 = .35.
    """
    tied = torch.tensor([[0.1, 0.4, 0.4, 0.1]], dtype=torch.float64)
    other = torch.tensor([[0.6, 0.1, 0.2, 0.1]], dtype=torch.float64)
    assert top_k_distance(tied, other, WORDS, 1).item() == pytest.approx(0.4, abs=1e-12)
    assert top_k_distance(other, tied, WORDS, 1).item() == pytest.approx(0.4, abs=1e-12)


def test_padding_is_not_counted_and_a_text_without_words_is_at_no_distance():
    mask = torch.tensor([[True, True, False, False], [False] * 4])
    w, own = torch.cat([W, W]), torch.cat([OWN, OWN]).requires_grad_()
    result = top_k_distance(w, own, mask, 7)
    assert_close(result, torch.tensor([0.25, 0], dtype=torch.float64))  # (.5 + .5)/4
    (gradient,) = torch.autograd.grad(result.sum(), own)
    assert (gradient[~mask] == 0).all()


def test_its_gradient_takes_the_choice_of_words_as_given():
    """k = 2: words 1, 2 of w and 4, 3 of w̃, each once, ± 1/4."""
    own = OWN.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(top_k_distance(W, own, WORDS, 2).sum(), own)
    assert_close(gradient, torch.tensor([[-0.25, -0.25, 0.25, 0.25]], dtype=torch.float64))


@pytest.mark.parametrize(("divergence", "expected"), [("cross-entropy", 16 / 3), ("kl", 4 / 3)])
def test_the_worst_change_by_hand(divergence, expected):
    """Words (1, 0) and (0, 3), Θ = 1 and a bias that makes z = 0: a_10 = (−1, 3), n = 4; R = ln(3)/4: margins ± ln 3.

    CE(½, ¾) = −½ ln ¾ − ½ ln ¼ = ½ ln(16/3);  KL(½, ¾) = ½ ln(16/3) − ln 2 = ½ ln(4/3).
    """
    model, batch = by_hand([(1, 0), (0, 3)], ((1, 0), (0, 1))), texts([1, 2])
    with torch.no_grad():
        model.decoder.output.bias.copy_(-model(batch).logits[0])
    for solver in ("pairs", "exact", "pgd"):
        result = worst(model, batch, radius=LN3 / 4, solver=solver, divergence=divergence)
        assert result.item() == pytest.approx(math.log(expected) / 2, abs=1e-12)


def test_with_frozen_hidden_states_and_two_classes_the_stability_term_depends_on_the_margin_alone():
    """Whatever the attention, δ changes the margin m by at most r = R‖hθ‖₁ = 0.1 · (1 + 3 + 1 + 2).

    The worst KL is that of m and m ± r; from |m| = r on it falls with |m|: it rewards confidence.
    """
    model, batch = by_hand([(1, 0), (0, 3), (2, 1), (0, -2)], ((1, 0), (0, 1))), texts([1, 2, 3, 4])
    encoded, reach, found = model(batch).encoded, 0.7, {}
    weights = torch.rand(100, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for row in weights / weights.sum(-1, keepdim=True):
        logits = model.decode(encoded, row)
        ball = WeightBall(radius=0.1, divergence="kl")
        margin = abs(logits[0, 1] - logits[0, 0])
        found[margin.item()] = worst_change(model, encoded, row, logits, batch, ball, RandomKey(0)).item()
        p, both = margin.sigmoid(), torch.stack([margin - reach, margin + reach])
        worst_kl = (
            (-p * both.sigmoid().log() - (1 - p) * (-both).sigmoid().log()).max()
            + p * p.log()
            + (1 - p) * (1 - p).log()
        )
        assert found[margin.item()] == pytest.approx(worst_kl.item(), abs=1e-12)
    large = [found[margin] for margin in sorted(found) if margin > reach]
    assert len(large) > 10
    assert large == sorted(large, reverse=True)


@pytest.mark.sweep
@pytest.mark.parametrize("encoder", ["average", "bilstm", "transformer"])
@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0])
def test_for_two_classes_pairs_and_exact_are_the_highest_of_all_corners(encoder, radius):
    model, batch = binary(encoder)
    result = worst(model, batch, radius=radius)
    assert torch.equal(result, worst(model, batch, radius=radius, solver="exact"))
    output = model(batch)
    places = batch.mask.any(0).nonzero().flatten()
    highest = torch.full_like(result, -torch.inf)
    for signs in product((-radius, radius), repeat=len(places)):
        delta = torch.zeros_like(output.weights)
        delta[:, places] = torch.tensor(signs, dtype=torch.float64)
        moved = model.decode(output.encoded, output.weights + delta.masked_fill(~batch.mask, 0.0))
        highest = torch.maximum(highest, cross_entropy(output.logits.softmax(-1), moved))
    assert_close(result, highest)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("divergence", ["cross-entropy", "kl"])
def test_a_search_never_finds_more_for_two_classes_and_comes_near(norm, divergence):
    model, batch = binary()
    least = entropy_of(model, batch) if divergence == "cross-entropy" else torch.zeros(len(batch))
    for radius in (1e-3, 0.1, 1.0):
        ball = {"radius": radius, "norm": norm, "divergence": divergence}
        exact = worst(model, batch, **ball)
        tried = [worst(model, batch, RandomKey().child(i), solver="pgd", **ball) for i in range(12)]
        assert all((result <= exact * (1 + 1e-9) + 1e-15).all() for result in tried)
        assert (torch.stack(tried).amax(0) - least >= 0.9 * (exact - least) - 1e-12).all()


@pytest.mark.parametrize("solver", ["pairs", "pgd"])
def test_it_is_never_below_the_entropy_of_the_prediction_and_grows_with_the_radius(solver):
    model, batch = real_model()
    entropy = entropy_of(model, batch)
    values = [worst(model, batch, radius=radius, solver=solver) for radius in (1e-6, 0.01, 0.1, 1.0)]
    torch.testing.assert_close(values[0], entropy, rtol=0, atol=1e-5)
    words = batch.mask.any(-1)
    for smaller, larger in zip([entropy, *values], values, strict=False):
        assert (larger[words] >= smaller[words] - 1e-12).all()
    for value in values:
        assert_close(value[~words], entropy[~words])  # nothing there to be moved


@pytest.mark.parametrize("make", [binary, real_model])
def test_its_gradient_is_that_of_the_loss_at_the_worst_change_held_fast(make):
    model, batch = make()
    output = model(batch)
    reach = model.decoder.reach(output.encoded)
    delta = best_pair(reach, output.logits, output.logits.softmax(-1), batch.mask, 0.2, "linf", False).detach()
    fixed = cross_entropy(output.logits.softmax(-1), model.decode(output.encoded, output.weights + delta))
    result = worst(model, batch, radius=0.2)
    assert_close(result, fixed)
    parameters = list(model.parameters())
    for gradient, other in zip(*(torch.autograd.grad(v.sum(), parameters) for v in (result, fixed)), strict=True):
        assert_close(gradient, other)


def gradient(value: Tensor, model: Classifier) -> Tensor:
    """Of the sum, with respect to all parameters, as one vector."""
    result = torch.autograd.grad(value.sum(), list(model.parameters()), retain_graph=True, allow_unused=True)
    pairs = zip(result, model.parameters(), strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])


def entropy_of(model, batch) -> Tensor:
    own = model(batch).logits.softmax(-1)
    return entropy(own, torch.ones_like(own, dtype=torch.bool))


def written_out_kl(model, batch, delta: Tensor) -> Tensor:
    """Σ p (ln p − ln q), p at the model's own weights and q at those plus a fixed δ; both live."""
    output = model(batch)
    log_p = output.logits.log_softmax(-1)
    log_q = model.decode(output.encoded, output.weights + delta).log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


SETUPS = [(binary, "exact"), (binary, "pairs"), (binary, "pgd"), (real_model, "pairs"), (real_model, "pgd")]


@pytest.mark.parametrize(("make", "solver"), SETUPS)
def test_at_the_default_radius_of_seat_cross_entropy_minimizes_the_entropy(make, solver):
    """The gradient of cross-entropy D2 at R = 0.001 is the gradient of the entropy; that of KL is not."""
    model, batch = make()
    of_entropy = gradient(entropy_of(model, batch), model)
    ce, kl = (
        gradient(worst(model, batch, radius=1e-3, solver=solver, divergence=name), model)
        for name in ("cross-entropy", "kl")
    )
    assert torch.cosine_similarity(ce, of_entropy, dim=0) >= 0.999
    assert torch.cosine_similarity(kl, of_entropy, dim=0).abs() < 0.9
    assert kl.norm() < 0.01 * of_entropy.norm()
    assert_close(ce - of_entropy, kl)


@pytest.mark.parametrize(("make", "solver"), SETUPS)
@pytest.mark.parametrize("radius", [1e-3, 0.2])
def test_kl_is_cross_entropy_minus_the_entropy_for_every_solver(make, solver, radius):
    model, batch = make()
    ce, kl = (
        worst(model, batch, radius=radius, solver=solver, divergence=name, steps=20) for name in ("cross-entropy", "kl")
    )
    assert_close(kl, ce - entropy_of(model, batch))
    assert (kl >= -1e-12).all()
    assert kl.max() > 0


@pytest.mark.parametrize("make", [binary, real_model])
def test_the_gradient_of_kl_is_that_of_kl_written_out(make):
    model, batch = make()
    output = model(batch)
    problem = (output.logits, output.logits.softmax(-1), batch.mask, 0.2, "linf", False)
    delta = best_pair(model.decoder.reach(output.encoded), *problem).detach()
    expected = written_out_kl(model, batch, delta)
    for solver in ("pairs", "exact") if make is binary else ("pairs",):
        result = worst(model, batch, radius=0.2, solver=solver, divergence="kl")
        assert_close(result, expected)
        assert_close(gradient(result, model), gradient(expected, model))


@pytest.mark.parametrize(("make", "solver"), SETUPS)
def test_kl_and_its_gradient_vanish_with_the_radius(make, solver):
    """The value falls with R² and the gradient with R² at least; cross-entropy keeps the entropy."""
    model, batch = make()
    values = [worst(model, batch, radius=r, solver=solver, divergence="kl") for r in (1e-2, 1e-3, 1e-8)]
    sizes = [gradient(value, model).norm().item() for value in values]
    assert values[1].max() < 0.02 * values[0].max()
    assert sizes[1] < 0.02 * sizes[0]
    assert values[2].abs().max() < 1e-12
    assert sizes[2] < 1e-9
    assert gradient(worst(model, batch, radius=1e-8, solver=solver), model).norm() > 1e-2


def test_a_decoder_that_is_not_linear_has_kl_by_search():
    model, batch = real_model(decoder="mlp")
    kl = worst(model, batch, radius=0.1, solver="pgd", divergence="kl")
    assert_close(kl, worst(model, batch, radius=0.1, solver="pgd") - entropy_of(model, batch))


def test_seat_is_read_as_printed_and_our_own_techniques_use_kl():
    assert Seat().divergence == "cross-entropy"
    assert Seat(divergence="kl").divergence == "kl"
    assert Anchored().divergence == Consensus().divergence == "kl"


def test_an_unsupported_combination_of_a_solver_is_an_error():
    straight, bent_shape = Architecture(), Architecture(decoder="mlp")
    assert WeightBall(solver="exact").validate(straight, 3) == (
        "solver=exact is for two classes, found 3: use solver=pairs, or pgd"
    )
    for solver in ("pairs", "exact"):
        assert "decoder=mlp" in (WeightBall(solver=solver).validate(bent_shape, 2) or "")
        assert WeightBall(solver=solver).validate(straight, 2) is None
        assert WeightBall(solver=solver, stability=0).validate(bent_shape, 3) is None
    assert WeightBall(solver="pgd").validate(bent_shape, 3) is None
    bent, batch = real_model(decoder="mlp")
    with pytest.raises(UserError, match="linear in the weights: use solver=pgd"):
        worst(bent, batch, solver="pairs")
    assert worst(bent, batch, radius=0.1, solver="pgd").isfinite().all()
