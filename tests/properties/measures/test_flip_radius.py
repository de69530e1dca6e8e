"""Areas and errors, by hand."""

import pytest
import torch

from steadygaze.properties.measures.faithfulness_measures import (
    RADII,
    flip_radius,
    flip_radius_above_random,
    seat_sensitivity,
)


def test_the_area_under_the_radii_is_divided_by_its_width():
    """At 10, 20, 50 %: 4, 2, 1.  (0.1·3 + 0.3·1.5) / 0.4 = 0.75 / 0.4 = 1.875.  Alike everywhere: the radius itself."""
    radii = torch.tensor([[4.0, 2, 1], [3.0, 3, 3]], dtype=torch.float64)
    assert flip_radius(radii).tolist() == pytest.approx([1.875, 3.0])


def test_below_random_is_a_smaller_radius_than_random_words():
    radii, drawn = torch.tensor([[2.0, 2, 2]]), torch.tensor([[5.0, 5, 5]])
    assert flip_radius_above_random(radii, drawn).item() == pytest.approx(-3)


def test_the_ceiling_of_seats_number_is_what_their_table_shows():
    """Wholly wrong at every radius: mean r/4 = 0.196875 / 24 = 0.008203; times their batch of 32, 0.2625."""
    wrong = torch.tensor([0.0, 1.0]).expand(1, len(RADII), 2)
    assert seat_sensitivity(wrong, torch.tensor([0])).item() == pytest.approx(0.2625 / 32)
    assert seat_sensitivity(wrong, torch.tensor([1])).item() == 0


def test_a_larger_radius_counts_for_more():
    """Half right at two radii: (0.5 · 0.4 / 4 + 0.5 · 0.2 / 4) / 2 = 0.0375."""
    probs = torch.full((1, 2, 2), 0.5)
    assert seat_sensitivity(probs, torch.tensor([1]), (0.4, 0.2)).item() == pytest.approx(0.0375)
