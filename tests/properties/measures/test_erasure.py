"""Comprehensiveness and sufficiency, by hand."""

import pytest
import torch

from steadygaze.properties.measures.faithfulness_measures import (
    aopc,
    comprehensiveness,
    post_hoc_accuracy,
    probability_drops,
    sufficiency,
)

FULL = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)


def test_the_drop_is_that_of_the_class_predicted_on_the_full_text():
    """Text 0 predicts class 0 at 0.9; without the words it is at 0.2, then 0.5: it loses 0.7 and 0.4.

    Text 1 predicts class 1 at 0.7; then 0.8 and 0.1: it gains 0.1 and loses 0.6.  The means are 0.55 and 0.25.
    """
    erased = torch.tensor([[[0.2, 0.8], [0.5, 0.5]], [[0.2, 0.8], [0.9, 0.1]]], dtype=torch.float64)
    torch.testing.assert_close(
        probability_drops(FULL, erased), torch.tensor([[0.7, 0.4], [-0.1, 0.6]], dtype=torch.float64)
    )
    assert comprehensiveness(FULL, erased).tolist() == pytest.approx([0.55, 0.25])


def test_one_size_is_its_own_mean():
    kept = torch.tensor([[[0.85, 0.15]], [[0.1, 0.9]]], dtype=torch.float64)
    assert sufficiency(FULL, kept).tolist() == pytest.approx([0.05, -0.2])
    assert torch.equal(aopc(probability_drops(FULL, kept)), probability_drops(FULL, kept)[:, 0])


def test_a_rationale_that_is_the_whole_reason_is_as_comprehensive_and_sufficient_as_can_be():
    """Sure with the words and of the opposite without them: 1.  Sure with the words alone: 0."""
    full, without = torch.tensor([[1.0, 0.0]]), torch.tensor([[[0.0, 1.0]]])
    assert comprehensiveness(full, without).item() == 1
    assert sufficiency(full, full.unsqueeze(1)).item() == 0


def test_classes_may_be_many_and_only_the_predicted_one_counts():
    full = torch.tensor([[0.1, 0.2, 0.6, 0.1]])
    probs, other = torch.tensor([[[0.7, 0.0, 0.2, 0.1]]]), torch.tensor([[[0.0, 0.1, 0.2, 0.7]]])
    assert comprehensiveness(full, probs).item() == pytest.approx(0.4)
    assert torch.equal(comprehensiveness(full, probs), comprehensiveness(full, other))


def test_the_label_stays_or_goes_whatever_its_probability():
    """Text 0 predicts class 0: kept at 0.51, lost at 0.2, so half.  Text 1 predicts class 1 both times."""
    kept = torch.tensor([[[0.51, 0.49], [0.2, 0.8]], [[0.4, 0.6], [0.0, 1.0]]], dtype=torch.float64)
    assert post_hoc_accuracy(FULL, kept).tolist() == [0.5, 1.0]
