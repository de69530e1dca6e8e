"""Whether labels are right, by hand."""

import pytest
import torch

from steadygaze.properties.measures.correctness_measures import accuracy, macro_f1

PROBS = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.8, 0.1, 0.1]])


def test_a_label_is_right_or_wrong():
    assert accuracy(PROBS, torch.tensor([0, 1, 2, 0])).tolist() == [1, 1, 0, 1]


def test_every_class_counts_alike_in_macro_f1():
    """Predicted 0 1 0 0, true 0 1 2 0.  Class 0: 2 of 3 right, all found: 4/5; class 1: 1; class 2: 0.  Mean 3/5."""
    assert macro_f1(PROBS, torch.tensor([0, 1, 2, 0])) == pytest.approx(3 / 5)


def test_a_class_that_neither_occurs_nor_is_predicted_does_not_count():
    assert macro_f1(PROBS, torch.tensor([0, 1, 0, 0])) == 1


def test_a_class_that_is_only_predicted_has_an_f1_of_0():
    """Predicted 0 1 0 0, true 0 0 0 0.  Class 0: 3 of 3 right, 3 of 4 found: 6/7; class 1: 0.  Mean 3/7."""
    assert macro_f1(PROBS, torch.tensor([0, 0, 0, 0])) == pytest.approx(3 / 7)


def test_no_examples_have_no_f1():
    with pytest.raises(ValueError, match="at least one example"):
        macro_f1(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
