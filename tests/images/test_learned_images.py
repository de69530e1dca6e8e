"""Images as selectors see them: cut into patches, filled, dealt out in batches."""

import numpy as np
import pytest
import torch

from steadygaze.core.errors import UserError
from steadygaze.core.maths import k_subset
from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.l2x import L2X
from steadygaze.explainers.learned.vibi import Vibi
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, image_nets, image_settings

SHAPE = (1, 8, 8)


def inputs(many=10, units=16):
    probs = torch.rand(many, 2, dtype=torch.float64).softmax(-1)
    return ImageInputs(torch.rand(many, *SHAPE), probs, units)


def test_images_too_small_for_the_convolutions_are_refused():
    with pytest.raises(UserError, match="images of 5 × 9 pixels are too small"):
        image_nets(L2X(k=1), (1, 5, 9), 2, PatchConfig())


def test_fills():
    """Three shades 0, ½ and 1/10: their mean is 0.2, which is 51/255; of 0.21 the nearest whole number is 54."""
    pixels = torch.stack([torch.full(SHAPE, shade) for shade in (0.0, 0.5, 0.1)])
    assert torch.allclose(PatchConfig(fill="mean").blank(pixels), torch.full(SHAPE, 0.2))
    assert (PatchConfig(fill="zero").blank(pixels) == 0).all()
    assert (PatchConfig(fill="gray").blank(pixels) == 0.5).all()
    whole = PatchConfig(fill="mean").blank(pixels + 0.01, whole=True)
    assert torch.allclose(whole, torch.full(SHAPE, 54 / 255))
    with pytest.raises(UserError, match="mean image needs several images"):
        PatchConfig(fill="mean").blank(pixels[:1])


def test_every_image_is_read_once_in_an_epoch_and_in_an_order_of_its_own():
    values = inputs()
    first, second, again = (np.concatenate(values.shuffled(3, seed)) for seed in ((0, 1), (0, 2), (0, 1)))
    assert sorted(first) == list(range(10))
    assert (first == again).all()
    assert (first != second).any()
    assert [len(rows) for rows in values.once(4)] == [4, 4, 2]


def test_views_are_of_the_rows_that_are_named():
    values = inputs()
    seen = values.views(np.array([7, 2]))
    assert (seen.x == values.pixels[[7, 2]]).all()
    assert seen.rows.tolist() == [7, 2]
    assert seen.selectable.all()
    assert seen.selectable.shape == (2, 16)
    assert torch.allclose(seen.probs.double(), values.probs[[7, 2]])


@pytest.mark.parametrize("how", [L2X(k=3), L2X(k=3, conditioned=True, approximator="cnn"), Ail(k=3)])
def test_exactly_k_patches_are_selected(how):
    nets, seen = image_nets(how, SHAPE, 2, PatchConfig(patch=2)), inputs().views(np.arange(10))
    scores = nets["selector"](seen, seen.probs if how.conditioned else None)
    mask = k_subset.top_k_subset(scores, seen.selectable, how.k)
    assert set(mask.flatten().tolist()) == {0.0, 1.0}
    assert (mask.sum(-1) == 3).all()
    assert nets["probe"](mask).shape == (10, 2)
    assert ("opponent" in nets) == how.opposes


def test_settings_for_images_are_those_of_the_papers_except_the_documented_ones():
    how = image_settings(L2X, {"k": 64})
    assert (how.k, how.epochs, how.batch_size, how.approximator) == (64, 12, 128, "cnn")
    assert image_settings(Ail, {}).opponent == 1e-3
    assert image_settings(Vibi, {}).temperature == 0.5
    assert image_settings(Vibi, {"temperature": 0.7}).temperature == 0.7
    with pytest.raises(UserError, match="unknown setting 'kay'"):
        image_settings(L2X, {"kay": 1})
