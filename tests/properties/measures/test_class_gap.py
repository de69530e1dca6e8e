"""The gap between class-mean attentions, by hand and by a plain loop."""

import numpy as np
import pytest
import torch

from steadygaze.properties.measures.shortcut_measures import class_gap


def test_by_hand():
    """Means of class 0: (0.6, 0.4, 0); of class 1: (0.1, 0.2, 0.7).  ½ (0.5 + 0.2 + 0.7) = 0.7."""
    weights = torch.tensor([[0.8, 0.2, 0.0], [0.4, 0.6, 0.0], [0.1, 0.2, 0.7]], dtype=torch.float64)
    mask = torch.ones(3, 3, dtype=torch.bool)
    assert class_gap(weights, torch.tensor([0, 0, 1]), mask) == pytest.approx(0.7, abs=1e-12)
    assert class_gap(weights, torch.tensor([0, 0, 0]), mask) == 0


def test_three_classes_are_compared_in_pairs():
    """Each looks at another place: every pair is 1 apart; two that share a place: ⅔ on average."""
    mask, label = torch.ones(3, 3, dtype=torch.bool), torch.tensor([2, 0, 1])
    assert class_gap(torch.eye(3), label, mask) == 1
    assert class_gap(torch.eye(3)[[0, 0, 1]], label, mask) == pytest.approx(2 / 3)


def test_of_one_law_for_all_classes_only_noise_is_left():
    """Of 10,000 texts of Dirichlet(1) over nine places each mean is sure to √(1/9 · 8/9 / 10 / 10,000) = 0.001."""
    weights = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(9), 20_000))
    label = torch.arange(20_000) % 2
    assert class_gap(weights, label, torch.ones_like(weights, dtype=torch.bool)) < 9 / 2 * 4 * 0.001 * 2**0.5


def test_a_text_without_a_word_does_not_count_nor_what_stands_in_masked_places():
    weights = torch.tensor([[1.0, 0.0], [0.0, 1.0], [torch.nan, 5.0]])
    mask = torch.tensor([[True, True], [True, True], [False, False]])
    assert class_gap(weights, torch.tensor([0, 1, 1]), mask) == 1
