"""Selectors fitted to a black box's answers about images: what they find, and what the black box is then shown."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from images.toys import PLACE, Watched, knows, planted
from steadygaze.core.errors import UserError
from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.l2x import L2X
from steadygaze.images.fitted_images import ImageFit, hold_out_images, post_hoc
from steadygaze.images.image_black_box import as_image_black_box
from steadygaze.images.image_inputs import read_images
from steadygaze.images.patch_networks import PatchConfig, image_settings

QUICK = {"k": 1, "epochs": 4, "batch_size": 32, "hidden": 32, "approximator": "simple"}
IMAGES = read_images(planted(400)[0])
TEST = read_images(planted(60, seed=1)[0])


def box():
    return as_image_black_box(knows, classes=["dark", "bright"])


def fit(kind=L2X, canvas=None, images=IMAGES, **changes):
    how = image_settings(kind, {**QUICK, **changes})
    return ImageFit(how, canvas or PatchConfig(patch=2, reader=True)).fit(box(), *hold_out_images(images))


@pytest.fixture(scope="module")
def learned():
    return fit()


@pytest.mark.slow
def test_l2x_finds_the_patch_that_decides(learned):
    result = learned.explain(box(), TEST)
    assert np.mean([explanation.top()[0][0] == PLACE for explanation in result]) > 0.95
    measured = {name: float(values.mean()) for name, values in learned.measured(box(), TEST).items()}
    assert measured["post-hoc-accuracy"] > 0.95
    assert measured["fidelity"] > 0.95
    assert measured["independent-reader-accuracy"] > 0.95 > measured["independent-reader-accuracy/random-words"]
    assert measured["leakage-gap"] < 0.05
    assert measured["post-hoc-accuracy/unselected"] < 0.7
    assert measured["probe-loss"] > 0.5  # always the same patch: it is independent of the label


@pytest.mark.slow
def test_an_explanation_has_exactly_k_patches_and_weight_on_no_other(learned):
    for explanation in learned.explain(box(), TEST):
        assert explanation.mask.sum() == 2 * 2
        assert (explanation.weights > 0).sum() == 1
        assert explanation.explainer == "l2x"
        assert explanation.label == ("bright" if explanation.probabilities["bright"] > 0.5 else "dark")


@pytest.mark.slow
def test_an_image_is_explained_alike_in_any_batch(learned):
    whole = learned.scores(TEST, box().predict_proba(TEST))
    part = TEST.of(TEST.pixels[7:9])
    assert_close(learned.scores(part, box().predict_proba(part)), whole[7:9], atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("short_probe_training")
@pytest.mark.parametrize("fill", ["zero", "mean", "gray"])
def test_the_black_box_is_shown_what_the_approximator_saw(fill):
    few = IMAGES.of(IMAGES.pixels[:40])
    watched, seen = Watched(), []
    learned = fit(canvas=PatchConfig(patch=2, fill=fill), images=few, epochs=1)
    learned = type(learned)(learned.config, learned.canvas, learned.shape, (0, 1), learned.networks)
    learned.networks["approximator"].layers.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    learned.measured(as_image_black_box(watched), TEST)
    approximated = TEST.of(torch.cat(seen)).as_given()
    whole, selected, rest = watched.shown
    np.testing.assert_array_equal(selected, approximated)
    np.testing.assert_array_equal(whole, TEST.as_given())
    blank = few.of(learned.fill.unsqueeze(0)).as_given()[0]
    np.testing.assert_array_equal((selected == whole) | (selected == blank), np.ones_like(whole, bool))
    np.testing.assert_array_equal(selected.astype(int) + rest, whole.astype(int) + blank)
    assert {"zero": 0, "gray": 128}.get(fill, blank[0, 0]) == blank[0, 0]


def test_post_hoc_accuracy_by_hand():
    """The box reads one patch.  That patch alone gives the same; filled with black, it predicts dark for any image."""
    images = read_images(planted(50, seed=3)[0])
    probs = box().predict_proba(images)
    kept = torch.zeros(50, 16)
    kept[:, 1 * 4 + 2] = 1
    result = post_hoc(box(), images, probs, kept, torch.zeros(1, 8, 8), 2)
    assert result["post-hoc-accuracy"].all()
    assert_close(result["post-hoc-accuracy/unselected"], (probs.argmax(-1) == 0).double())


@pytest.mark.usefixtures("short_probe_training")
def test_the_same_seed_gives_the_same_selector():
    few = IMAGES.of(IMAGES.pixels[:64])
    first, again = (fit(images=few, epochs=1).networks.state_dict() for _ in range(2))
    assert all((first[name] == again[name]).all() for name in first)


@pytest.mark.sweep(keep=1)
@pytest.mark.usefixtures("short_probe_training")
@pytest.mark.parametrize("mitigation", ["random-pretraining", "mask-neutral", "random-query"])
def test_every_mitigation_runs_on_images(mitigation):
    few = IMAGES.of(IMAGES.pixels[:64])
    learned = fit(
        images=few, epochs=1, pretraining_epochs=1, conditioned=True, mitigation=mitigation, approximator="cnn"
    )
    assert learned.history[-1]["stage"] == "selecting"
    assert all(len(values) == 60 for values in learned.measured(box(), TEST).values())


@pytest.mark.usefixtures("short_probe_training")
def test_ail_runs_on_images():
    learned = fit(Ail, images=IMAGES.of(IMAGES.pixels[:64]), epochs=1)
    assert "opponent" in learned.networks
    assert learned.explain(box(), TEST)[0].explainer == "ail"


@pytest.mark.slow
def test_images_classes_and_patches_of_other_shapes_are_refused(learned):
    with pytest.raises(UserError, match="this explainer has images of 8 × 8 pixels"):
        learned.explain(box(), read_images(np.zeros((2, 6, 8), np.uint8)))
    swapped = as_image_black_box(knows, classes=["bright", "dark"])
    with pytest.raises(UserError, match=r"classes \['dark', 'bright'\] in this order; knows has \['bright', 'dark'\]"):
        learned.explain(swapped, TEST)
    for k in (16, 17):
        with pytest.raises(UserError, match=f"k is {k}, but an image of 8 × 8 pixels has 16 patches: k must be less"):
            fit(k=k)
    with pytest.raises(UserError, match="cannot be divided into patches of 3 × 3"):
        fit(canvas=PatchConfig(patch=3))
    with pytest.raises(UserError, match="the training set has images of 8 × 8"):
        ImageFit(L2X(k=1), PatchConfig()).fit(box(), IMAGES, read_images(np.zeros((2, 9, 9), np.uint8)))
    sentence = (
        "the training set has pixels in whole numbers from 0 to 255, found floats from 0 to 1: use one format for both"
    )
    with pytest.raises(UserError, match=sentence):
        ImageFit(L2X(k=1), PatchConfig()).fit(box(), IMAGES, read_images(TEST.as_given() / 255))


class Failing:
    """A black box that breaks down after so many questions."""

    def __init__(self, questions):
        self.left = questions

    def __call__(self, images):
        if not self.left:
            raise RuntimeError("out of order")
        self.left -= 1
        return knows(images)


@pytest.mark.slow
@pytest.mark.usefixtures("short_probe_training")
def test_answers_of_a_black_box_before_it_failed_are_cached(tmp_path):
    inputs = read_images(planted(600)[0]), TEST
    how = image_settings(L2X, {**QUICK, "epochs": 1})
    with pytest.raises(UserError, match=r"out of order.*512 of 600 inputs are done and cached"):
        ImageFit(how, PatchConfig(patch=2)).fit(as_image_black_box(Failing(1), [0, 1]), *inputs, tmp_path)
    again = Failing(4)  # the 88 that are left, the other split, and some of both to test that answers repeat
    ImageFit(how, PatchConfig(patch=2)).fit(as_image_black_box(again, [0, 1]), *inputs, tmp_path)
    assert again.left == 0
