"""Which texts are read together."""

import pytest
import torch

from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.class_probability import MIN_LENGTH_RATIO, forward_passes, length_groups


@pytest.mark.parametrize(("most", "ends"), [(1000, [3, 5, 6, 8]), (24, [2, 4, 5, 6, 8]), (1, [*range(1, 9)])])
def test_where_passes_are_cut(most, ends):
    """¾ of 12 are 9, so that 9 still goes with it, and 8 does not; 24 tokens hold two texts of 12, or of 9 and 8."""
    result = list(forward_passes([12, 12, 9, 8, 6, 4, 2, 2], most))
    assert [end for _, end in result] == ends
    assert [start for start, _ in result] == [0, *ends[:-1]]


def test_no_pass_has_more_texts_than_are_read_at_once():
    assert list(forward_passes([1] * 7, 100, 3)) == [(0, 3), (3, 6), (6, 7)]
    assert list(forward_passes([1] * 7, 100)) == [(0, 7)]


def test_every_text_is_in_one_pass_with_texts_of_similar_length():
    lengths = torch.randint(0, 40, (200,))
    named = list(length_groups(lengths, 100))
    assert torch.cat([some for some, _ in named]).sort().values.equal(torch.arange(200))
    for some, width in named:
        assert lengths[some].clamp_min(1).max() == width
        assert lengths[some].clamp_min(1).min() >= MIN_LENGTH_RATIO * width
        assert len(some) == 1 or len(some) * width <= 100
    assert list(length_groups(lengths[:0], 100)) == []


@pytest.mark.parametrize(
    ("name", "setting", "values"),
    [
        ("lime", "samples", (3, 3_000_000)),
        ("lime", "width", (0.0,)),
        ("lime", "ridge", (-1.0,)),
        ("kernel-shap", "samples", (10, 3_000_000)),
        ("integrated-gradients", "steps", (0, 1_000_000)),
        *((name, "seed", (-1,)) for name in ("kernel-shap", "lime", "random")),
    ],
)
def test_settings_out_of_range_are_refused(name, setting, values):
    for value in values:
        with pytest.raises(UserError, match=f"'{setting}'"):
            build(EXPLAINERS[name], {setting: value})
