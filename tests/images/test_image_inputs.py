"""Images as they come from a user."""

import numpy as np
import pytest
import torch

from steadygaze.core.errors import UserError
from steadygaze.images.image_inputs import match_shape, read_images

GREY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def apart(images):
    """An array of images, as a column of a table holds them."""
    several = np.empty(len(images), dtype=object)
    several[:] = list(images)
    return several


@pytest.mark.parametrize(
    "given",
    [
        GREY,
        np.stack([GREY] * 3, -1),
        GREY[..., None],
        GREY / 255,
        (GREY / 255).astype(np.float32),
        list(GREY),
        tuple(GREY),
        apart(GREY),
        torch.from_numpy(GREY),
        GREY > 12,
    ],
)
def test_what_is_read_can_be_given_back_as_it_was(given):
    images = read_images(given)
    want = np.stack([np.asarray(image) for image in given])
    assert images.pixels.dtype == torch.float32
    assert images.pixels.shape[2:] == (3, 4)
    assert float(images.pixels.min()) >= 0
    assert float(images.pixels.max()) <= 1
    np.testing.assert_allclose(images.as_given().astype(np.float64), want.astype(np.float64), atol=1e-7)


def test_colours_stand_first_inside():
    """Pixel (1, 2) of image 0, whose colours are 10, 20 and 30 of 255."""
    images = np.zeros((2, 3, 4, 3), np.uint8)
    images[0, 1, 2] = [10, 20, 30]
    found = read_images(images)
    assert found.shape == (3, 3, 4)
    assert torch.allclose(found.pixels[0, :, 1, 2] * 255, torch.tensor([10.0, 20.0, 30.0]))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([GREY[0], GREY[0].T], r"images\[0\] is \(3, 4\), images\[1\] is \(4, 3\); resize them first"),
        (apart([GREY[0], GREY[0].T, None]), "one size"),
        (GREY.astype(object), "found type object"),
        (GREY[0], r"found shape \(3, 4\): put a single image in a list"),
        (np.zeros((5, 3, 32, 32), np.uint8), r"1 to 4 channels last; found shape \(5, 3, 32, 32\)"),
        (np.zeros(7), r"found shape \(7,\)"),
        ([], "there are no images"),
        (np.zeros((0, 8, 8)), "there are no images"),
        (GREY.astype(np.int64), "found type int64"),
        (GREY.astype(np.float64), "between 0 and 1, found 0 to 23: scale them"),
        (GREY - 1.0, "found -1 to 22"),
        (np.full((2, 3, 4), np.nan), "found nan to nan"),
        (np.full((2, 3, 4), np.inf), "between 0 and 1"),
        ("cat.png", "found 'cat.png'"),
        (["cat.png", "dog.png"], r"found shape \(2,\)"),
        (None, "found None"),
        (7, "found 7"),
        ({"image": GREY}, "found {'image'"),
    ],
)
def test_images_that_cannot_be_read(given, sentence):
    with pytest.raises(UserError, match=sentence):
        read_images(given)


def test_images_of_another_size_than_is_known_are_refused():
    with pytest.raises(
        UserError, match="this classifier has images of 8 × 8 pixels with 1 channels, found images of 3"
    ):
        match_shape(read_images(GREY), (1, 8, 8), "this classifier")
