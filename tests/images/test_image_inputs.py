"""Images as they come from a user."""

import numpy as np
import pytest
import torch

from steadygaze.core.errors import UserError
from steadygaze.images.image_inputs import match_shape, read_images

GRAY = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def bytes_of(images):
    """An array of images, as a column of a table holds them."""
    several = np.empty(len(images), dtype=object)
    several[:] = list(images)
    return several


@pytest.mark.parametrize(
    "sources",
    [
        GRAY,
        np.stack([GRAY] * 3, -1),
        GRAY[..., None],
        GRAY / 255,
        (GRAY / 255).astype(np.float32),
        list(GRAY),
        tuple(GRAY),
        bytes_of(GRAY),
        torch.from_numpy(GRAY),
        GRAY > 12,
    ],
)
def test_what_is_read_can_be_given_back_as_it_was(sources):
    images = read_images(sources)
    want = np.stack([np.asarray(image) for image in sources])
    assert images.pixels.dtype == torch.float32
    assert images.pixels.shape[2:] == (3, 4)
    assert float(images.pixels.min()) >= 0
    assert float(images.pixels.max()) <= 1
    np.testing.assert_allclose(images.as_given().astype(np.float64), want.astype(np.float64), atol=1e-7)


def test_colors_stand_first_inside():
    """Pixel (1, 2) of image 0, whose colors are 10, 20 and 30 of 255."""
    images = np.zeros((2, 3, 4, 3), np.uint8)
    images[0, 1, 2] = [10, 20, 30]
    result = read_images(images)
    assert result.shape == (3, 3, 4)
    assert torch.allclose(result.pixels[0, :, 1, 2] * 255, torch.tensor([10.0, 20.0, 30.0]))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ([GRAY[0], GRAY[0].T], r"images\[0\] is \(3, 4\), images\[1\] is \(4, 3\); resize them first"),
        (bytes_of([GRAY[0], GRAY[0].T, None]), "one size"),
        (GRAY.astype(object), "found type object"),
        (GRAY[0], r"found shape \(3, 4\): put a single image in a list"),
        (np.zeros((5, 3, 32, 32), np.uint8), r"1 to 4 channels last; found shape \(5, 3, 32, 32\): move the channels"),
        (np.zeros(7), r"found shape \(7,\)"),
        ([], "there are no images"),
        (np.zeros((0, 8, 8)), "there are no images"),
        (GRAY.astype(np.int64), "found type int64"),
        (GRAY.astype(np.float64), "between 0 and 1, found 0 to 23: scale them"),
        (GRAY - 1.0, "found -1 to 22"),
        (np.full((2, 3, 4), np.nan), "found nan to nan"),
        (np.full((2, 3, 4), np.inf), "between 0 and 1"),
        ("cat.png", "found 'cat.png'"),
        (["cat.png", "dog.png"], r"found shape \(2,\)"),
        (None, "found None"),
        (7, "found 7"),
        ({"image": GRAY}, "found {'image'"),
    ],
)
def test_images_that_cannot_be_read(source, sentence):
    with pytest.raises(UserError, match=sentence):
        read_images(source)


def test_images_of_another_size_than_is_known_are_refused():
    with pytest.raises(
        UserError, match="this classifier has images of 8 × 8 pixels with 1 channels, found images of 3"
    ):
        match_shape(read_images(GRAY), (1, 8, 8), "this classifier")
