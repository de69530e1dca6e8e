"""HardKuma: against SciPy's quadrature and its incomplete beta function, and by simulation."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special
from torch.nn.functional import pad

from contract.tiny import assert_close
from steadygaze.core.maths import kumaraswamy as hard

SHAPES = [(0.3, 0.7), (1.0, 1.0), (0.5, 3.0), (4.0, 0.2), (7.0, 20.0), (100.0, 100.0), (1e-6, 1e-6), (1e-6, 100.0)]


def pair(a: float, b: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)


def density(k: float, a: float, b: float) -> float:
    return a * b * k ** (a - 1) * (1 - k**a) ** (b - 1)


def grid(n: int) -> torch.Tensor:
    """Even numbers, exactly: the middle of each of n cells."""
    return (torch.arange(n, dtype=torch.float64) + 0.5) / n


def test_even_is_worked_by_hand():
    """a = b = 1: K = u.  P(0) = 1/12, P(1) = 1/12, the mean is ½ by symmetry; u = ½ gives ½, u = 1/24 gives 0."""
    a, b = pair(1.0, 1.0)
    assert_close(hard.probability_zero(a, b), torch.tensor(1 / 12, dtype=torch.float64))
    assert_close(hard.probability_one(a, b), torch.tensor(1 / 12, dtype=torch.float64))
    assert_close(hard.mean(a, b), torch.tensor(0.5, dtype=torch.float64))
    drawn = hard.sample(a, b, torch.tensor([0.5, 1 / 24, 23 / 24, 0.25], dtype=torch.float64))
    assert_close(drawn, torch.tensor([0.5, 0.0, 1.0, 0.2], dtype=torch.float64))


@pytest.mark.parametrize(("a", "b"), SHAPES[:5])
def test_probabilities_are_the_mass_of_the_clipped_density(a, b):
    """Between the ends the density is smooth; what is below and above it is by F(k) = I_{kᵃ}(1, b)."""
    inside, _ = integrate.quad(density, 1 / 12, 11 / 12, args=(a, b), epsabs=1e-12)
    p0, p1 = (float(each(*pair(a, b))) for each in (hard.probability_zero, hard.probability_one))
    assert p0 == pytest.approx(special.betainc(1, b, (1 / 12) ** a), abs=1e-12)
    assert p0 + p1 + inside == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_the_mean_is_that_of_the_stretched_and_clipped_number(a, b):
    """E[H] = P(1) + ∫ (1.2 k − .1) f(k) dk; by parts 1.2 ∫ (1 − kᵃ)ᵇ dk, here adaptively and by the beta function."""
    inside, _ = integrate.quad(lambda k: (1 - k**a) ** b, 1 / 12, 11 / 12, epsabs=1e-13, limit=500)
    result = float(hard.mean(*pair(a, b)))
    assert result == pytest.approx(1.2 * inside, abs=1e-10)
    if 0.1 < a < 10:
        mass = [special.betainc(1 / a, b + 1, k**a) * special.beta(1 / a, b + 1) / a for k in (1 / 12, 11 / 12)]
        assert result == pytest.approx(1.2 * (mass[1] - mass[0]), abs=1e-10)


@pytest.mark.parametrize(("a", "b"), SHAPES[:5])
def test_samples_have_these_probabilities_and_this_mean(a, b):
    drawn = hard.sample(*pair(a, b), grid(200_000))
    near = {"abs": 2e-5}
    assert float((drawn == 0).double().mean()) == pytest.approx(float(hard.probability_zero(*pair(a, b))), **near)
    assert float((drawn == 1).double().mean()) == pytest.approx(float(hard.probability_one(*pair(a, b))), **near)
    assert float(drawn.mean()) == pytest.approx(float(hard.mean(*pair(a, b))), **near)


def test_samples_have_the_gradient_of_finite_differences_and_none_where_clipped():
    a = torch.tensor([0.7, 2.0, 1.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([0.9, 3.0, 1.0], dtype=torch.float64, requires_grad=True)
    u = torch.tensor([0.5, 0.6, 0.01], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a, b: hard.sample(a, b, u), (a, b))
    (slope,) = torch.autograd.grad(hard.sample(a, b, u)[2], a)
    assert slope[2] == 0
    for statistic in (hard.probability_zero, hard.probability_one, hard.mean):
        assert torch.autograd.gradcheck(statistic, (a, b))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_ends_of_the_shapes_give_finite_numbers_and_gradients(dtype):
    ends = torch.tensor([1e-6, 1e-3, 1.0, 100.0], dtype=dtype)
    a, b = (each.flatten().requires_grad_() for each in torch.meshgrid(ends, ends, indexing="ij"))
    for u in (0.001, 0.5, 0.999):
        for result in (
            hard.sample(a, b, torch.tensor(u, dtype=dtype)),
            hard.probability_zero(a, b),
            hard.probability_one(a, b),
            hard.mean(a, b),
        ):
            assert ((result >= 0) & (result <= 1 + 1e-6)).all()
            assert all(slope.isfinite().all() for slope in torch.autograd.grad(result.sum(), (a, b)))


def test_expected_l0_and_fused_lasso_are_those_of_all_outcomes():
    """Three tokens are 0 or not: eight outcomes, each with its probability; the fourth is padding."""
    a = torch.tensor([[0.4, 2.0, 1.0, 5.0]], dtype=torch.float64)
    b = torch.tensor([[1.5, 0.8, 6.0, 5.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]])
    p0 = hard.probability_zero(a, b)[0]
    shown = changes = 0.0
    for outcome in range(8):
        seen = [bool(outcome >> t & 1) for t in range(3)]
        probability = math.prod(float(1 - p0[t]) if seen[t] else float(p0[t]) for t in range(3))
        shown += probability * sum(seen) / 3
        changes += probability * ((seen[0] != seen[1]) + (seen[1] != seen[2])) / 3
    assert float(hard.probability_shown(a, b, mask)) == pytest.approx(shown, abs=1e-12)
    assert float(hard.lasso(a, b, mask)) == pytest.approx(changes, abs=1e-12)


def test_padding_counts_neither_in_l0_nor_in_the_lasso():
    draw = np.random.default_rng(0)
    a, b = (torch.from_numpy(draw.uniform(0.2, 4, (5, 6))) for _ in range(2))
    mask = torch.arange(6) < torch.tensor([6, 1, 0, 3, 4]).unsqueeze(-1)
    for statistic in (hard.probability_shown, hard.lasso):
        wide = statistic(pad(a, (0, 4), value=3.0), pad(b, (0, 4), value=3.0), pad(mask, (0, 4)))
        torch.testing.assert_close(wide, statistic(a, b, mask), rtol=0, atol=1e-12)
        assert statistic(a, b, mask)[2] == 0
    assert hard.lasso(a, b, mask)[1] == 0  # one token has no neighbor


def test_evaluation_shows_what_has_most_of_the_mass():
    """(.1, 4): (1/12)^.1 = .78, so P(0) = 1 − .22⁴ ≈ 1.  (4, .1): P(1) = (1 − (11/12)⁴)^.1 = .88.  (1, 1): 5/6.

    (.2, .3): P(0) = .245, P(1) = .296, and what is left, less than half, is still the most: .459.
    """
    a, b = (torch.tensor(each, dtype=torch.float64) for each in ([0.1, 4.0, 1.0, 0.2], [4.0, 0.1, 1.0, 0.3]))
    assert_close(hard.choice(a, b)[:3], torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64))
    assert_close(hard.choice(a, b)[3], hard.mean(a[3], b[3]))


def test_small_probabilities_keep_their_digits_in_single_precision():
    """1 − (11/12)^a with a = 1e-6 is 8.7e-8: a number of this precision near 1 has steps of 6e-8."""
    a, b = torch.tensor(1e-6), torch.tensor(1.0)
    assert float(hard.probability_one(a, b)) == pytest.approx(-math.expm1(1e-6 * math.log(11 / 12)), rel=1e-5)
