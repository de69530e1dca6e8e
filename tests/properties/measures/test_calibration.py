"""Expected calibration error, by hand and on predictions drawn to be calibrated."""

import pytest
import torch

from steadygaze.properties.measures.correctness_measures import expected_calibration_error


def binary(confidence: list[float]) -> torch.Tensor:
    """Class 1 predicted with each confidence."""
    return torch.tensor([[1 - p, p] for p in confidence], dtype=torch.float64)


def test_four_predictions_by_hand():
    """0.9, 0.9 (one right): gap |0.5 − 0.9| = 0.4, half of the set.  0.6, 0.6 (both right): gap 0.4, the other half."""
    assert expected_calibration_error(binary([0.9, 0.9, 0.6, 0.6]), torch.tensor([1, 0, 1, 1])) == pytest.approx(0.4)


def test_too_sure_in_one_bin_is_not_excused_by_too_unsure_in_another():
    """+0.4 and −0.4 as above; in one bin, 0.9 right and 0.9 wrong: |0.5 − 0.9|, a mean taken before the size."""
    assert expected_calibration_error(binary([0.9, 0.9]), torch.tensor([1, 0])) == pytest.approx(0.4)
    # 0.9 wrong: −0.9; 0.6 right: +0.4; mean of the sizes 0.65, size of the mean only 0.25
    assert expected_calibration_error(binary([0.9, 0.6]), torch.tensor([0, 1])) == pytest.approx(0.65)


def test_a_bin_holds_its_upper_edge():
    """3/5 = 9/15 belongs with 0.59, not with 0.61: (0.59 wrong, 0.6 right) make one bin, |0.5 − 0.595|."""
    assert expected_calibration_error(binary([0.59, 0.6]), torch.tensor([0, 1])) == pytest.approx(0.095)
    distance = (0.61 + 0.4) / 2
    assert expected_calibration_error(binary([0.61, 0.6]), torch.tensor([0, 1])) == pytest.approx(distance)


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not_at_all():
    assert expected_calibration_error(binary([1.0, 1.0]), torch.tensor([1, 1])) == 0
    assert expected_calibration_error(binary([1.0, 1.0]), torch.tensor([0, 0])) == 1


def test_labels_drawn_from_the_stated_probabilities_are_calibrated():
    """With 100 000 draws each of some ten bins is off by about 0.5/√10 000 = 0.005; sharpened, far more."""
    logits = torch.randn(100_000, 4, dtype=torch.float64)
    label = logits.softmax(-1).multinomial(1).squeeze(-1)
    assert expected_calibration_error(logits.softmax(-1), label) < 0.01
    assert expected_calibration_error((3 * logits).softmax(-1), label) > 0.2


def test_no_examples_have_no_calibration():
    with pytest.raises(ValueError, match="at least one example"):
        expected_calibration_error(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
