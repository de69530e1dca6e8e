"""Explainers of images that learn nothing, against models whose weights are known."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from images.toys import PLACE, Watched, knows, planted, straight
from steadygaze.core.errors import UserError
from steadygaze.images.explain_images import explain_images
from steadygaze.images.image_black_box import as_image_black_box, together
from steadygaze.images.image_inputs import read_images
from steadygaze.images.patch_explainers import IMAGE_EXPLAINERS, Gradient, LeaveOneOut, Lime, PatchRequest, Random
from steadygaze.images.patch_networks import PatchConfig

WEIGHTS = np.linspace(-0.02, 0.03, 36).reshape(6, 6)


def linear(images):
    """How likely class 1 is grows by its weight with each pixel: 0.5 + Σ w x."""
    p = 0.5 + (images * WEIGHTS).sum((1, 2))
    return np.stack([1 - p, p], 1)


def patch_request(box, patch=2, many=3, fill=0.0, side=6):
    images = read_images(np.random.default_rng(0).random((many, side, side)).astype(np.float32))
    box = as_image_black_box(box, classes=["a", "b"])
    return PatchRequest(
        box, images, box.predict_proba(images), torch.full(images.shape, fill), patch, (side // patch) ** 2
    )


def shares_of(images, fill):
    """What each patch of 2 × 2 adds to the probability of the predicted class, b: Σ w (x − fill).  (N,9)"""
    added = (images.as_given().astype(np.float64) - fill) * WEIGHTS
    return torch.from_numpy(added.reshape(-1, 3, 2, 3, 2).sum((2, 4)).reshape(-1, 9))


def test_leave_one_out_of_a_linear_model_is_what_each_patch_adds():
    case = patch_request(linear, fill=0.25)
    assert (case.aim == 1).all()
    assert_close(LeaveOneOut().weigh(case), shares_of(case.images, 0.25), atol=1e-6, rtol=0)


def test_lime_of_a_linear_model_is_what_each_patch_adds():
    case = patch_request(linear, fill=0.25)
    assert_close(Lime(samples=400, ridge=1e-9).weigh(case), shares_of(case.images, 0.25), atol=1e-6, rtol=0)


def test_the_gradient_of_a_linear_network_is_known():
    """Two classes, logits V x: ∂p_c/∂x = p (1 − p) (v_c − v_other), whose sizes are summed."""
    network = straight(channels=3)
    images = read_images(np.random.default_rng(0).random((4, 6, 6, 3)))
    images = images.of(images.pixels.double())
    box = as_image_black_box(network, classes=[0, 1])
    probs = box.predict_proba(images)
    result = Gradient().weigh(PatchRequest(box, images, probs, torch.zeros(3, 6, 6), 2, 9))
    v = network[1].weight.detach()
    size = (v[0] - v[1]).abs().view(3, 6, 6).sum(0)
    patches = size.view(3, 2, 3, 2).sum((1, 3)).flatten()
    assert_close(result, probs.prod(-1, keepdim=True) * patches)
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("name", IMAGE_EXPLAINERS)
def test_an_image_gets_the_same_weights_whatever_batch_it_stands_in(name):
    network = straight().float()
    way, whole = IMAGE_EXPLAINERS[name](), patch_request(network, many=4)
    network.train()
    together = way.weigh(whole)
    alone = [
        way.weigh(
            PatchRequest(whole.black_box, whole.images.of(whole.images.pixels[[i]]), whole.probs[[i]], whole.fill, 2, 9)
        )
        for i in range(4)
    ]
    assert_close(torch.cat(alone), together, atol=1e-6, rtol=1e-5)
    assert together.shape == (4, 9)
    assert network.training


def test_random_weights_belong_to_the_image_and_the_seed():
    case = patch_request(linear)
    first = Random().weigh(case)
    assert (first == Random().weigh(case)).all()
    assert (first != Random(seed=1).weigh(case)).all()
    assert len(set(first.flatten().tolist())) == 27


@pytest.mark.parametrize("name", ["leave-one-out", "lime"])
def test_the_patch_that_decides_is_found(name):
    images, labels = planted(6)
    box = as_image_black_box(knows, classes=["dark", "bright"])
    explanations = explain_images(box, images, name, k=1, canvas=PatchConfig(patch=2, fill="gray"))
    assert [explanation.top()[0][0] for explanation in explanations] == [PLACE] * 6
    assert [explanation.label for explanation in explanations] == [["dark", "bright"][label] for label in labels]
    assert explanations[0].explainer == name
    assert explanations[0].probabilities[explanations[0].label] > 0.9


def test_the_black_box_is_shown_images_as_its_user_gives_them():
    box = Watched()
    images, _ = planted(4)
    explain_images(box, images, "leave-one-out", k=1, canvas=PatchConfig(patch=4, fill="zero"))
    shown = np.concatenate(box.shown)
    assert shown.dtype == np.uint8
    assert shown.shape == (4 + 4 * 4, 8, 8)
    assert (shown[4, :4, :4] == 0).all()
    assert (shown[4, 4:] == images[0, 4:]).all()


def nan(images):
    return np.full((len(images), 2), np.nan)


@pytest.mark.parametrize(
    ("box", "changes", "sentence"),
    [
        (knows, {"explainer": "gradient"}, "needs a torch network, and knows returns probabilities only"),
        (knows, {"explainer": "gradiant"}, "did you mean 'gradient'"),
        (knows, {"k": 65}, "k is 65, but an image of 8 × 8 pixels has 64 patches"),
        (knows, {"k": 64}, "k is 64, but an image of 8 × 8 pixels has 64 patches: k must be less"),
        (knows, {"k": 0}, "k is 0; it must be a whole number, 1 or more"),
        (knows, {"canvas": PatchConfig(patch=3)}, "cannot be divided into patches of 3 × 3"),
        (nan, {}, "are not all finite"),
    ],
)
def test_what_cannot_be_explained(box, changes, sentence):
    images, _ = planted(3)
    with pytest.raises(UserError, match=sentence):
        explain_images(as_image_black_box(box, classes=[0, 1]), images, **{"explainer": "random", "k": 1, **changes})


def test_black_boxes_without_the_required_outputs():
    with pytest.raises(UserError, match="knows has no classes_"):
        as_image_black_box(knows)
    with pytest.raises(UserError, match="cannot explain 7"):
        as_image_black_box(7)
    with pytest.raises(UserError, match="names 3 classes, but Watched has 2"):
        as_image_black_box(Watched(), classes=[0, 1, 2])
    assert as_image_black_box(Watched()).classes == (0, 1)
    with pytest.raises(UserError, match="cannot explain None"):
        as_image_black_box(None, classes=[0, 1])


def test_classes_may_be_renamed_but_not_swapped():
    renamed = as_image_black_box(Watched(), classes=["no", "yes"])
    assert renamed.classes == ("no", "yes")
    assert as_image_black_box(renamed, classes=["dark", "bright"]).classes == ("dark", "bright")
    assert as_image_black_box(Watched(), classes=[0, 1]).classes == (0, 1)
    assert as_image_black_box(Watched(), classes=[1, 2]).classes == (1, 2)
    for box, swapped in ((Watched(), [1, 0]), (renamed, ["yes", "no"])):
        with pytest.raises(UserError, match=r"in another order than its own, .*: remove it, or pass them in that"):
            as_image_black_box(box, classes=swapped)


def test_a_foreign_black_box_is_queried_by_its_predict_proba():
    """A wrapper may keep a network and predict something else."""
    box = Watched()
    box.network_ = straight(side=8).float()
    result = as_image_black_box(box)
    assert result.network is None
    assert result.fingerprint == ""
    images, _ = planted(3)
    np.testing.assert_array_equal(result.predict_proba(read_images(images)).numpy(), knows(images))


@pytest.mark.parametrize("name", ["leave-one-out", "lime"])
def test_one_image_can_be_explained_and_the_fill_is_gray_unless_the_mean_is_known(name):
    """The training images of a black box are unknown; a batch shows nothing of them."""
    images, _ = planted(7)
    alone, gray = (
        explain_images(Watched(), images[:1], name, 1, canvas)[0] for canvas in (None, PatchConfig(fill="gray"))
    )
    np.testing.assert_array_equal(alone.weights, gray.weights)
    np.testing.assert_allclose(explain_images(Watched(), images, name, 1)[0].weights, alone.weights, atol=1e-9)
    with pytest.raises(UserError, match=r"the mean image of Watched is not known.* choose the fill zero or gray"):
        explain_images(Watched(), images, name, 1, PatchConfig(fill="mean"))


class Largest(TorchDispatchMode):
    """The most numbers that any tensor held."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.entries = max(self.entries, result.numel())
        return result


@pytest.mark.parametrize(("way", "most"), [(Lime(samples=64), 128 * 17), (LeaveOneOut(), 512)])
def test_memory_is_bounded_by_pixels_however_many_images_are_shown(way, most, monkeypatch):
    """Two images of 8 × 8, shown 128 times by LIME, which draws 17 numbers for each, and 32 times by leave-one-out."""
    monkeypatch.setattr("steadygaze.images.image_black_box.PIXELS", 512)
    case = patch_request(straight(side=8).float(), many=2, side=8)
    with Largest() as largest:
        way.weigh(case)
    assert largest.entries == most


def test_a_query_has_a_maximum_number_of_pixels(monkeypatch):
    monkeypatch.setattr("steadygaze.images.image_black_box.PIXELS", 512)
    network, shown = straight(side=8).float(), []
    network.register_forward_pre_hook(lambda _, inputs: shown.append(len(inputs[0])))
    case = patch_request(network, many=20, side=8)
    assert shown == [8, 8, 4]
    Gradient().weigh(case)
    assert shown == [8, 8, 4] * 2
    assert together((3, 1 << 12, 1 << 12)) == 1


def test_a_black_box_may_change_the_images_that_it_is_given():
    def erasing(images):
        bright = np.asarray(images, np.float64).reshape(len(images), -1).mean(1)
        images[:] = 0
        return np.stack([1 - bright, bright], 1)

    images = read_images(np.full((2, 4, 4), 0.25))
    for _ in range(2):
        result = as_image_black_box(erasing, classes=["dark", "bright"]).predict_proba(images)
        np.testing.assert_allclose(result[:, 1], 0.25, rtol=1e-6)
