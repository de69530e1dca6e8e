"""Infidelity and max-sensitivity: Captum's numbers on the same perturbations, in double precision."""

import pytest
import torch
from captum.metrics import infidelity as captum_infidelity
from captum.metrics import sensitivity_max

from steadygaze.properties.measures.faithfulness_measures import infidelity, max_sensitivity

S, N = 12, 6


def f(z):
    """A curved function of kept words.  (K,n) -> (K,)"""
    use = torch.arange(1.0, N + 1, dtype=torch.float64) / 10
    return torch.sigmoid(z.double() @ use - z.double()[:, 0] * z.double()[:, 2])


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_infidelity_is_captums_on_the_same_sets_of_words(scale):
    gone = torch.rand(S, N, generator=torch.Generator().manual_seed(1)) < 0.4
    whole = torch.ones(1, N, dtype=torch.float64)
    weights = scale * torch.randn(1, N, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    theirs = captum_infidelity(
        f, lambda x: (gone.double(), x - gone.double()), whole, weights, n_perturb_samples=S, normalize=True
    )
    lost = f(whole) - f(whole - gone.double())
    result = infidelity((gone * weights).sum(-1)[None], lost[None])
    torch.testing.assert_close(result, theirs.double(), rtol=0, atol=1e-12)


def test_weights_that_add_up_to_what_is_lost_have_none_at_any_scale():
    lost = torch.tensor([[0.1, 0.3, -0.2]], dtype=torch.float64)
    assert infidelity(7 * lost, lost).item() == pytest.approx(0, abs=1e-15)
    assert infidelity(0 * lost, lost).item() == pytest.approx((0.01 + 0.09 + 0.04) / 3)


def test_max_sensitivity_is_captums_at_the_same_points():
    near = 0.02 * torch.randn(S, 1, N, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x = torch.linspace(-1, 1, N, dtype=torch.float64)[None]
    turn = torch.randn(N, N, generator=torch.Generator().manual_seed(4), dtype=torch.float64)

    def first(points):
        return points[0] if isinstance(points, tuple) else points

    def explain(points):
        return torch.tanh(first(points) @ turn)

    theirs = sensitivity_max(
        lambda points: (explain(points),), x, lambda points, _: first(points) + near[:, 0], n_perturb_samples=S
    )
    own = explain(x)
    distances = (explain(x + near) - own).flatten(1).norm(dim=-1)[None]
    torch.testing.assert_close(max_sensitivity(distances, own.norm(dim=-1)), theirs.double(), rtol=0, atol=1e-12)


def test_an_explanation_of_nothing_has_no_max_sensitivity():
    assert max_sensitivity(torch.ones(1, 3), torch.zeros(1)).isnan().all()
