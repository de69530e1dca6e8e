"""The closed form against enumeration, linear programs, a general solver, and gradient ascent."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize
from torch import Tensor

from contract.tiny import assert_close
from steadygaze.core.maths.distributions import kl_logits
from steadygaze.perturbations.closed_form import (
    best_pair,
    corner,
    spread,
    worst_binary,
    worst_own,
    worst_pairs,
)
from steadygaze.perturbations.gradient_ascent import ascend

NORM = pytest.mark.parametrize("norm", ["l2", "linf"])
SIMPLEX = pytest.mark.parametrize("simplex", [False, True], ids=["free", "simplex"])
WORDS = (9, 1, 6, 0, 2)
ROUNDING = 1e-12


def random_problem(
    classes: int, words: tuple[int, ...] = WORDS, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """reach, logits, clean prediction, mask; texts of one word and of none among them, numbers where padding is."""
    random = torch.Generator().manual_seed(seed)
    reach = torch.randn(len(words), max(words), classes, generator=random, dtype=torch.float64)
    logits = torch.randn(len(words), classes, generator=random, dtype=torch.float64)
    mask = torch.arange(max(words)) < torch.tensor(words).unsqueeze(-1)
    return reach, logits, logits.softmax(-1), mask


def divergence(reach: Tensor, logits: Tensor, target: Tensor, delta: Tensor) -> Tensor:
    """D at δ, by the definition.  -> (B,)"""
    return kl_logits(target, logits + torch.einsum("btc,bt->bc", reach, delta))


def by_program(a: np.ndarray, norm: str, simplex: bool) -> float:
    """max a·δ over ‖δ‖ ≤ 1 [and Σδ = 0], by somebody else's solver."""
    if norm == "linf":
        sums = {"A_eq": np.ones((1, len(a))), "b_eq": [0.0]} if simplex else {}
        return -linprog(-a, bounds=[(-1, 1)] * len(a), **sums).fun
    rules = [{"type": "ineq", "fun": lambda d: 1 - d @ d, "jac": lambda d: -2 * d}]
    rules += [{"type": "eq", "fun": lambda d: d.sum(), "jac": np.ones_like}] * simplex
    start = (a - a.mean()) / np.abs(a).sum() / 2
    return -minimize(lambda d: -a @ d, start, jac=lambda _: -a, constraints=rules, method="SLSQP").fun


def test_by_hand_two_classes_two_tokens():
    """A = [[1, 0], [0, 3]], so a_10 = (−1, 3): n = 4 (ℓ∞), √10 (ℓ2).

    On the simplex: the lower median is −1, a − median = (0, 4), n = 4 still: δ = (−1, 1) sums to 0 already.  The mean
    is 1, a − mean = (−2, 2), n = √8.
    z = (0, 0), p = (½, ½), R = ln(3)/4, ℓ∞: margins ± ln 3, q = (¼, ¾) or its mirror image,
    D = ½ ln(½/¼) + ½ ln(½/¾) = ½ ln 2 + ½ ln(2/3) = ½ ln(4/3).
    """
    reach = torch.tensor([[[1.0, 0.0], [0.0, 3.0]]], dtype=torch.float64)
    logits, mask = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool)
    sizes = {("linf", False): 4, ("l2", False): 10**0.5, ("linf", True): 4, ("l2", True): 8**0.5}
    for (norm, simplex), size in sizes.items():
        expected = size * (1 - torch.eye(2, dtype=torch.float64))
        assert_close(spread(reach, mask, norm, simplex)[0], expected)
    worst = worst_binary(reach, logits, logits.softmax(-1), mask, np.log(3) / 4, "linf", False)
    assert_close(worst, torch.tensor([np.log(4 / 3) / 2], dtype=torch.float64))


@pytest.mark.parametrize("radius", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("words", [1, 2, 7, 12])
def test_for_two_classes_it_is_the_highest_of_all_corners_of_the_cube(words, radius):
    reach, logits, target, mask = random_problem(2, (words, words), seed=words)
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=words)), dtype=torch.float64)  # (2^T,T)
    moved = logits.unsqueeze(1) + torch.einsum("st,btc->bsc", radius * signs, reach)
    highest = kl_logits(target.unsqueeze(1), moved).amax(-1)
    assert_close(worst_binary(reach, logits, target, mask, radius, "linf", False), highest)


@pytest.mark.sweep
@NORM
@SIMPLEX
def test_the_spread_is_what_a_solver_finds(norm, simplex):
    """An ℓ1 norm about the median for a cube, and so on: four claims of linear-programming duality."""
    reach, _, _, mask = random_problem(4)
    result = spread(reach, mask, norm, simplex)
    for b, i, j in product(range(len(reach)), range(4), range(4)):
        a = (reach[b, mask[b], i] - reach[b, mask[b], j]).numpy()
        expected = by_program(a, norm, simplex) if len(a) and a.any() else 0.0
        if len(a) == 1 and simplex:
            expected = 0.0  # one word cannot move without another
        assert result[b, i, j].item() == pytest.approx(expected, abs=1e-6)


@NORM
@SIMPLEX
@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "ties"])
def test_a_corner_lies_in_the_ball_and_reaches_the_dual_norm(norm, simplex, ties):
    """With ties at the median, too: (0, 0, 0, 1, 2) needs the zeros to weigh up the two that rise."""
    reach, _, _, mask = random_problem(2)
    a = reach[..., 0].round() if ties else reach[..., 0]
    radius = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=torch.float64)
    delta = corner(a, mask, radius, norm, simplex)
    order = torch.inf if norm == "linf" else 2
    assert (torch.linalg.vector_norm(delta, order, dim=-1) <= radius * (1 + ROUNDING)).all()
    assert (delta[~mask] == 0).all()
    if simplex:
        assert_close(delta.sum(-1), torch.zeros(5, dtype=torch.float64))
    size = spread(torch.stack([a, torch.zeros_like(a)], -1), mask, norm, simplex)[:, 0, 1]
    assert_close((a * delta).sum(-1), radius * size)


@NORM
@SIMPLEX
@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0])
def test_for_two_classes_pairs_and_exact_agree(norm, simplex, radius):
    problem = (*random_problem(2), radius, norm, simplex)
    assert_close(worst_pairs(*problem), worst_binary(*problem))


@NORM
@SIMPLEX
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_value_of_pairs_is_reached_by_its_corner(norm, simplex, classes):
    reach, logits, target, mask = random_problem(classes)
    problem = (reach, logits, target, mask, 0.2, norm, simplex)
    assert_close(divergence(reach, logits, target, best_pair(*problem)), worst_pairs(*problem))


@NORM
def test_gradient_ascent_never_exceeds_the_exact_value_and_comes_near_it(norm):
    reach, logits, target, mask = random_problem(2, (8,) * 40)
    center = torch.rand(40, 8, dtype=torch.float64)
    for radius in (1e-3, 0.05, 0.5):
        exact = worst_binary(reach, logits, target, mask, radius, norm, False)
        best = torch.zeros(40, dtype=torch.float64)
        random = radius * (2 * torch.rand(40, 8, dtype=torch.float64) - 1)
        for start in (random, -random):  # one of the two leans to the end that counts
            settings = {"center": center, "radius": radius, "norm": norm, "steps": 10, "best": True}
            result = ascend(lambda w: divergence(reach, logits, target, w - center), start, **settings)
            best = torch.maximum(best, divergence(reach, logits, target, result))
        assert (best <= exact * (1 + 1e-9) + ROUNDING).all()
        assert (best > 0.8 * exact).all()


@NORM
def test_with_more_classes_pairs_is_a_lower_bound_that_ascent_may_exceed(norm):
    reach, logits, target, mask = random_problem(4, (6,) * 200)
    pairs = worst_pairs(reach, logits, target, mask, 1.0, norm, False)
    start = best_pair(reach, logits, target, mask, 1.0, norm, False)
    settings = {"center": torch.zeros_like(start), "radius": 1.0, "norm": norm, "steps": 20, "best": True}
    result = ascend(lambda delta: divergence(reach, logits, target, delta), start, **settings)
    higher = divergence(reach, logits, target, result)
    assert (higher >= pairs - ROUNDING).all()
    assert (higher > pairs * 1.001).any()


@pytest.mark.sweep
@NORM
@SIMPLEX
def test_its_gradient_is_right(norm, simplex):
    for worst, classes in ((worst_binary, 2), (worst_pairs, 3)):
        reach, logits, target, mask = random_problem(classes, (4, 3))
        free = (reach.requires_grad_(), logits.requires_grad_())
        checked = lambda reach, logits: worst(reach, logits, target, mask, 0.3, norm, simplex)  # noqa: B023, E731
        assert torch.autograd.gradcheck(checked, free)


@NORM
@SIMPLEX
@pytest.mark.parametrize("worst", [worst_binary, worst_pairs])
def test_padding_and_batch_mates_change_nothing(worst, norm, simplex):
    reach, logits, target, mask = random_problem(2)
    whole = worst(reach, logits, target, mask, 0.3, norm, simplex)
    alone = [
        worst(reach[i : i + 1, :n], logits[i : i + 1], target[i : i + 1], mask[i : i + 1, :n], 0.3, norm, simplex)
        for i, n in enumerate(max(n, 1) for n in WORDS)
    ]
    assert_close(torch.cat(alone), whole)
    reach = reach.requires_grad_()
    (gradient,) = torch.autograd.grad(worst(reach, logits, target, mask, 0.3, norm, simplex).sum(), reach)
    assert (gradient[~mask] == 0).all()
    assert gradient.isfinite().all()


@NORM
@SIMPLEX
def test_a_text_without_words_cannot_be_moved(norm, simplex):
    problem = (*random_problem(2), 5.0, norm, simplex)
    assert_close(worst_binary(*problem)[3], torch.tensor(0.0, dtype=torch.float64))
    assert (spread(problem[0], problem[3], norm, simplex)[3] == 0).all()


def test_certain_predictions_stay_finite():
    """p of exactly 0 and 1: 0·ln 0 is 0."""
    reach, _, _, mask = random_problem(2, (3, 3))
    logits = torch.tensor([[900.0, -900.0], [-900.0, 900.0]], dtype=torch.float64)
    worst = worst_binary(reach, logits, logits.softmax(-1), mask, 0.1, "linf", False)
    assert logits.softmax(-1).unique().tolist() == [0, 1]
    assert_close(worst, torch.zeros(2, dtype=torch.float64))


def test_the_exact_form_refuses_more_than_two_classes():
    with pytest.raises(ValueError, match="2 classes only, found 3: use worst_pairs"):
        worst_binary(*random_problem(3), 0.1, "linf", False)


def test_one_radius_for_each_text():
    reach, logits, target, mask = random_problem(3)
    radii = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=torch.float64)
    each = worst_pairs(reach, logits, target, mask, radii, "l2", False)
    alone = [worst_pairs(reach, logits, target, mask, float(r), "l2", False)[i] for i, r in enumerate(radii)]
    assert_close(each, torch.stack(alone))


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_against_its_own_prediction_the_worst_end_is_the_other_classes(norm):
    """The value and the gradient of both ends compared; margins of either sign, one of them 0."""
    reach, logits, _, mask = random_problem(2)
    logits = logits.clone()
    logits[0] = 0.25  # no class is ahead
    reach, logits = reach.requires_grad_(), logits.requires_grad_()
    for radius in (0.01, 0.3, 4.0):
        own = logits.softmax(-1)
        both = worst_binary(reach, logits, own, mask, radius, norm, False) - (own * own.log()).sum(-1)
        short = worst_own(reach, logits, mask, radius, norm)
        assert_close(short, both)
        for gradient, other in zip(
            *(torch.autograd.grad(v.sum(), (reach, logits)) for v in (short, both)), strict=True
        ):
            assert_close(gradient, other)
