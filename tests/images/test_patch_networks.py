"""Networks that select patches of images and guess from them."""

import pytest
import torch
from torch.testing import assert_close

from steadygaze.core.maths import k_subset
from steadygaze.explainers.learned.l2x import InputBatch
from steadygaze.images.patch_networks import (
    APPROXIMATORS,
    Approximator,
    Selector,
    bai_image_network,
    fill_patches,
    spread,
)

SHAPE = (3, 8, 6)
UNITS = 12
"""Patches of 2 × 2."""


def views(many=5, seed=0, shape=SHAPE, units=UNITS):
    drawn = torch.Generator().manual_seed(seed)
    x = torch.rand(many, *shape, generator=drawn, dtype=torch.float64)
    probs = torch.rand(many, 2, generator=drawn, dtype=torch.float64).softmax(-1)
    return InputBatch(x, torch.ones(many, units, dtype=torch.bool), probs, torch.arange(many))


def some(seen, rows):
    return InputBatch(seen.x[rows], seen.selectable[rows], seen.probs[rows], seen.rows[rows])


def selector(query=0, patch=2):
    return Selector(SHAPE, patch, query, hidden=7).double().eval()


def test_table_seven_has_the_layers_of_the_paper():
    """28 × 28, one color, two classes.  32·9+32 = 320; 64·32·9+64 = 18,496; 28−4 = 24, halved 12: 64·12·12 = 9,216
    inputs of 128 units: 1,179,776; 128·2+2 = 258.
    """
    network = bai_image_network((1, 28, 28), 2, (0.25, 0.5))
    counts = [sum(p.numel() for p in layer.parameters()) for layer in network]
    assert [count for count in counts if count] == [320, 18_496, 1_179_776, 258]
    assert [layer.p for layer in network if isinstance(layer, torch.nn.Dropout)] == [0.25, 0.5]


def test_a_patch_is_spread_over_its_pixels():
    """Two rows of three patches, 2 × 2 pixels each, row by row."""
    result = spread(torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]), (1, 4, 6), 2)
    top, bottom = [1.0, 1, 2, 2, 3, 3], [4.0, 4, 5, 5, 6, 6]
    assert result.tolist() == [[[top, top, bottom, bottom]]]


def test_what_is_selected_keeps_its_pixels_and_the_rest_is_the_fill_to_the_last_bit():
    seen = views()
    fill = torch.rand(SHAPE, dtype=torch.float64)
    mask = torch.zeros(5, UNITS, dtype=torch.float64)
    mask[:, 4] = 1  # the second patch of the second row: rows 2–3, columns 2–3
    shown = fill_patches(seen.x, mask, fill, 2)
    where = torch.zeros(8, 6, dtype=torch.bool)
    where[2:4, 2:4] = True
    assert (shown[..., where] == seen.x[..., where]).all()
    assert (shown[..., ~where] == fill[..., ~where]).all()


@pytest.mark.parametrize("query", [0, 2])
@pytest.mark.parametrize("patch", [1, 2])
def test_a_selector_gives_each_patch_a_score_whatever_batch_it_stands_in(query, patch):
    units = 48 // patch**2
    seen, choose = views(units=units), selector(query, patch)
    condition = seen.probs if query else None
    whole = choose(seen, condition)
    assert whole.shape == (5, units)
    parts = [choose(some(seen, rows), None if condition is None else condition[rows]) for rows in ([0, 1], [2], [3, 4])]
    assert_close(torch.cat(parts), whole)


def test_a_selector_conditioned_on_the_prediction_depends_on_it():
    seen, choose = views(), selector(query=2)
    assert not torch.allclose(choose(seen, seen.probs), choose(seen, seen.probs.flip(-1)))


def test_a_selector_knows_where_a_patch_stands():
    """An image of one color looks the same everywhere but at its edge; its inner patches get different scores."""
    even = InputBatch(torch.full((1, *SHAPE), 0.5, dtype=torch.float64), *vars_of(views(1)))
    scores = selector()(even).view(4, 3)[1:3, 1]
    assert scores[0] != scores[1]


def vars_of(seen):
    return seen.selectable, seen.probs, seen.rows


@pytest.mark.parametrize("name", APPROXIMATORS)
def test_an_approximator_reads_the_selected_patches_and_nothing_else(name):
    guess = Approximator(APPROXIMATORS[name](SHAPE, 2), 2, torch.rand(SHAPE)).double().eval()
    seen = views()
    mask = k_subset.top_k_subset(torch.rand(5, UNITS, dtype=torch.float64), seen.selectable, 3)
    logits = guess(seen, mask)
    assert logits.shape == (5, 2)
    assert_close(torch.cat([guess(some(seen, [i]), mask[[i]]) for i in range(5)]), logits)
    outside = spread(1 - mask, SHAPE, 2)
    other = InputBatch(seen.x + outside * torch.rand_like(seen.x), *vars_of(seen))
    assert_close(guess(other, mask), logits)
    inside = InputBatch(seen.x + spread(mask, SHAPE, 2), *vars_of(seen))
    assert not torch.allclose(guess(inside, mask), logits)


@pytest.mark.parametrize("name", APPROXIMATORS)
def test_the_slope_of_the_guess_reaches_every_part_of_the_selector(name):
    seen, choose = views(), selector(query=2)
    guess = Approximator(APPROXIMATORS[name](SHAPE, 2), 2, torch.zeros(SHAPE)).double()
    mask = k_subset.relaxed_k_subset(
        choose(seen, seen.probs), seen.selectable, 0.5, torch.rand(5, UNITS, 3, dtype=torch.float64)
    )
    (-(seen.probs * guess(seen, mask).log_softmax(-1)).sum()).backward()
    for part, parameter in choose.named_parameters():
        assert parameter.grad is not None, part
        assert parameter.grad.abs().sum() > 0 or part == "score.bias", part


def test_the_fill_is_kept_with_the_weights():
    fill = torch.rand(SHAPE)
    guess = Approximator(APPROXIMATORS["simple"](SHAPE, 2), 2, fill)
    other = Approximator(APPROXIMATORS["simple"](SHAPE, 2), 2, torch.zeros(SHAPE))
    other.load_state_dict(guess.state_dict())
    assert (other.fill == fill).all()
