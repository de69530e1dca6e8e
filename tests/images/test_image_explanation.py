"""The explanation of an image, and its drawing."""

import io
import json
import re
import struct
import zlib
from base64 import b64decode

import numpy as np
import pytest

from steadygaze.images.image_explanation import GAP, LINE, ImageExplanation, overlay, png, side_by_side_images

IMAGE = np.linspace(0, 1, 64).reshape(8, 8)
WEIGHTS = np.zeros((4, 4))
WEIGHTS[1, 2], WEIGHTS[3, 0], WEIGHTS[0, 0] = 0.6, 0.3, -5


def explained(image=IMAGE, **changes):
    usual = {"weights": WEIGHTS, "patch": 2, "k": 2, "label": "eight", "probabilities": {"three": 0.25, "eight": 0.75}}
    return ImageExplanation(image, **{**usual, "explainer": "l2x", **changes})


def decoded(file):
    """The pixels of a PNG without filters, read by hand."""
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    place, parts = 8, {}
    while place < len(file):
        (size,), kind = struct.unpack(">I", file[place : place + 4]), file[place + 4 : place + 8]
        body = file[place + 8 : place + 8 + size]
        assert struct.unpack(">I", file[place + 8 + size : place + 12 + size])[0] == zlib.crc32(kind + body)
        parts[kind], place = body, place + 12 + size
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert (lines[:, 0] == 0).all()
    return lines[:, 1:].reshape(height, width, 3)


def test_the_mask_is_of_exactly_k_patches():
    mask = explained().mask
    assert mask.shape == (8, 8)
    assert mask.sum() == 2 * 2 * 2
    assert mask[2:4, 4:6].all()
    assert mask[6:8, 0:2].all()
    assert explained(weights=np.zeros((4, 4)), k=3).mask[:2, :6].all()  # of equals, the earlier


def test_the_top_patches_are_named_by_their_upper_left_pixel():
    assert explained().top() == [((2, 4), 0.6), ((6, 0), 0.3)]
    assert explained().top(1) == [((2, 4), 0.6)]


def test_a_png_holds_the_pixels_and_others_can_read_it():
    drawn = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    np.testing.assert_array_equal(decoded(png(drawn)), drawn)
    pillow = pytest.importorskip("PIL.Image")
    np.testing.assert_array_equal(np.asarray(pillow.open(io.BytesIO(png(drawn)))), drawn)


def test_selected_patches_keep_their_pixels_and_the_rest_is_grayed():
    """8 pixels become 224: 28 to one.  Pixel (2, 4) is selected; its middle is not on the line, which is 4 thick.
    (0, 0) is black, a quarter of whose contrast with gray 128 is left: 96.
    """
    shown = overlay(IMAGE, explained().mask)
    assert shown.shape == (224, 224, 3)
    assert (shown[2 * 28 + 14, 4 * 28 + 14] == round(IMAGE[2, 4] * 255)).all()
    assert (shown[14, 14] == 96).all()
    assert tuple(shown[2 * 28, 4 * 28]) == LINE
    assert tuple(shown[2 * 28 + 3, 4 * 28 + 14]) == LINE
    assert tuple(shown[2 * 28 + 14, 5 * 28]) != LINE  # between two pixels of one patch there is none


def test_the_image_stands_beside_its_overlay(tmp_path):
    whole = side_by_side_images(IMAGE, explained().mask)
    assert whole.shape == (224, 224 + GAP + 224, 3)
    assert (whole[14, 14] == 0).all()
    file = tmp_path / "new" / "one.png"
    assert explained().to_png(file) == file.read_bytes()
    np.testing.assert_array_equal(decoded(file.read_bytes()), whole)
    assert decoded(explained().to_png(original=False)).shape == (224, 224, 3)
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("image", [np.full((8, 8, 3), 200, np.uint8), np.zeros((8, 8, 1)), np.ones((8, 8, 4))])
def test_colors_are_drawn(image):
    assert decoded(explained(image).to_png()).shape == (224, 456, 3)


def test_html_is_escaped_and_loads_nothing():
    html = explained(label="<b>&", probabilities={"<b>&": 1.0}, explainer='"x"')._repr_html_()
    assert "<b>&" not in html
    assert "&lt;b&gt;&amp; 100.0 %" in html
    assert "&quot;x&quot;: 2 of 16 patches of 2 × 2 pixels selected" in html
    (source,) = re.findall(r'src="([^"]*)"', html)
    assert decoded(b64decode(source.removeprefix("data:image/png;base64,"))).shape == (224, 456, 3)


def test_it_can_be_written_as_json():
    values = json.loads(json.dumps(explained((IMAGE * 255).astype(np.uint8), label=8).to_dict()))
    assert values["selected"] == [[2, 4], [6, 0]]
    assert values["image"][0][0] == 0
    assert values["label"] == 8
    assert values["bounds"] is None
    assert repr(explained()).endswith("l2x: 2 of 16 patches of 2 × 2 pixels selected>")


def test_bounds_are_reported_for_every_patch_and_drawn_for_the_top_ones():
    bounds = np.stack([WEIGHTS - 0.25, WEIGHTS + 0.125], -1)
    explanation = explained(bounds=bounds, explainer="cxplain")
    assert json.loads(json.dumps(explanation.to_dict()))["bounds"][1][2] == [0.35, 0.725]
    assert "selected; top-weighted (2, 4) 0.600 [0.350, 0.725]>" in repr(explanation)
    assert "top-weighted (2, 4) 0.600 [0.350, 0.725]" in explanation._repr_html_()


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"weights of shape \(4, 4\) for 6 × 8"):
        explained(IMAGE[:6])
    with pytest.raises(ValueError, match=r"bounds of shape \(4, 4\)"):
        explained(bounds=WEIGHTS)
    with pytest.raises(ValueError, match="not a finite number"):
        explained(weights=np.full((4, 4), np.nan))
