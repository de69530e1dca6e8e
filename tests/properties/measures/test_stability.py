"""How far an explanation or a prediction moved."""

import pytest
import torch

from steadygaze.core.maths import distributions
from steadygaze.properties.measures import stability_measures


def test_the_prediction_change_of_two_classes_is_the_change_of_one_probability():
    """(0.9, 0.1) to (0.6, 0.4): |Δp| = 0.3, not 0.15 and not 0.6."""
    p, q = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.6, 0.4]])
    assert stability_measures.prediction_change(p, q).item() == pytest.approx(0.3)


def test_the_prediction_change_of_three_classes_is_what_moved():
    """(0.5, 0.3, 0.2) to (0.2, 0.3, 0.5): 0.3 moved from the first to the third.  Sure of another class: all."""
    p = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    q = torch.tensor([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]])
    assert stability_measures.prediction_change(p, q).tolist() == pytest.approx([0.3, 1.0])


def test_a_prediction_is_flipped_when_another_class_wins_however_narrowly():
    p = torch.tensor([[0.51, 0.49], [0.51, 0.49], [0.2, 0.8]])
    q = torch.tensor([[0.49, 0.51], [0.99, 0.01], [0.4, 0.6]])
    assert stability_measures.label_flip(p, q).tolist() == [1.0, 0.0, 0.0]


def test_a_batch_of_sixteen_changes_no_more_than_a_batch_of_one():
    """Some published code sums over the batch: the same change then reads sixteen times larger."""
    p, q = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.6, 0.4]])
    many = stability_measures.prediction_change(p.expand(16, 2), q.expand(16, 2))
    assert many.mean().item() == pytest.approx(stability_measures.prediction_change(p, q).item())


def test_distances_between_attentions_are_defined_once():
    assert stability_measures.jensen_shannon is distributions.jensen_shannon
    assert stability_measures.total_variation is distributions.total_variation
    assert stability_measures.top_k_overlap is distributions.top_k_overlap


def test_words_are_counted_that_have_another_id():
    """Two of three words; what changed in padding is no word."""
    before, after = torch.tensor([[5, 6, 7, 0]]), torch.tensor([[5, 9, 8, 3]])
    assert stability_measures.words_substituted(before, after, torch.tensor([[True, True, True, False]])).tolist() == [
        2
    ]
