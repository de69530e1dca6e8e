"""CXPlain on images: the patch without which the most is lost."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from images.toys import PLACE, knows, planted
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.images.fitted_images import ImageFit, image_effects
from steadygaze.images.image_black_box import as_image_black_box
from steadygaze.images.image_inputs import read_images
from steadygaze.images.patch_explainers import PatchRequest
from steadygaze.images.patch_networks import PatchConfig

IMAGES, TEST = (read_images(planted(many, seed)[0]) for many, seed in ((80, 0), (20, 1)))
HOW = CXPlain(k=1, members=2, epochs=6, batch_size=16, hidden=16, learning_rate=3e-3)


def box():
    return as_image_black_box(knows, classes=["dark", "bright"])


@pytest.fixture(scope="module")
def learned():
    return ImageFit(HOW, PatchConfig(patch=2, fill="gray")).fit(box(), IMAGES, TEST)


def test_what_a_patch_is_worth_is_what_the_prediction_loses():
    """Only one patch matters: Δ = ln p(whole) − ln p(without), of the others 0."""
    probs = box().predict_proba(TEST)
    request = PatchRequest(box(), TEST, probs, torch.zeros(1, 8, 8), 2, 16)
    result = torch.from_numpy(image_effects(request, None).values).view(20, 16)
    black = TEST.as_given()
    black[:, 2:4, 4:6] = 0
    without = torch.from_numpy(knows(black)).gather(-1, request.aim.unsqueeze(-1)).squeeze(-1)
    assert_close(result[:, 1 * 4 + 2], probs.max(-1).values.log() - without.log())
    assert not result[:, torch.arange(16) != 6].any()


@pytest.mark.slow
def test_the_patch_that_decides_is_found_and_the_members_agree(learned):
    result = learned.explain(box(), TEST)
    assert np.mean([explanation.top()[0][0] == PLACE for explanation in result]) > 0.95
    assert result[0].explainer == "cxplain"
    low, middle, high = learned.bounds(TEST)
    assert ((low <= middle) & (middle <= high)).all()
    measured = {name: float(values.double().mean()) for name, values in learned.measured(box(), TEST).items()}
    assert measured["post-hoc-accuracy"] > 0.95
    assert (learned.fill == round(0.5 * 255) / 255).all()
    assert "fill" in learned.networks.state_dict()


def test_an_explanation_has_the_bounds_of_the_members(learned):
    low, middle, high = (bound.view(20, 4, 4).numpy() for bound in learned.bounds(TEST))
    for number, explanation in enumerate(learned.explain(box(), TEST)):
        np.testing.assert_array_equal(explanation.bounds, np.stack([low[number], high[number]], -1))
        np.testing.assert_array_equal(explanation.weights, middle[number])
        assert f"{low[number].ravel()[middle[number].argmax()]:.3f}, " in repr(explanation)
        assert explanation.to_dict()["bounds"] == explanation.bounds.tolist()
    assert (high > low).any()


def test_answers_are_cached(tmp_path):
    quick = CXPlain(k=1, members=1, epochs=1, batch_size=16, hidden=4)
    for _ in range(2):
        ImageFit(quick, PatchConfig(patch=4)).fit(box(), TEST, TEST, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"train", "train-effects", "held-out", "held-out-effects"}
