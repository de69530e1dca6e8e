"""What is said where the mask alone tells the label."""

import pytest
import torch

from steadygaze.explain.learned.ail import Ail
from steadygaze.explain.learned.l2x import L2X
from steadygaze.explain.learned.remark import remark
from steadygaze.explain.learned.vibi import Vibi

SURE = torch.eye(2, dtype=torch.float64)


@pytest.mark.parametrize(("lost", "said"), [(0.069, True), (0.070, False)])
def test_a_tenth_of_the_entropy_is_the_limit(lost, said):
    """Two classes, each as often: ln 2 = 0.6931 nats, of which a tenth is 0.0693."""
    assert (remark(L2X(), lost, SURE) is not None) == said


def test_how_sure_the_black_box_is_does_not_matter():
    """It is the label that is told or not: 0.9 of either class is the class."""
    unsure = torch.tensor([[0.9, 0.1], [0.1, 0.9]], dtype=torch.float64)
    for how in (L2X(), Vibi()):
        assert remark(how, 0.05, unsure) == remark(how, 0.05, SURE) != None  # noqa: E711
        assert remark(how, 0.36, unsure) is None


def test_a_black_box_that_always_says_the_same_has_no_label_to_tell():
    assert remark(L2X(), 0.0, torch.tensor([[1.0, 0.0]] * 3)) is None
    assert remark(L2X(), 0.6932, torch.full((4, 2), 0.5)) is None


@pytest.mark.parametrize("technique", ["plain", "mask-neutral"])
def test_where_the_approximator_learns_from_such_masks_it_is_a_warning_that_says_what_helps(technique):
    found = remark(L2X(technique=technique, query=True), 0.01, SURE)
    assert found is not None
    assert not found.harmless
    assert "0.010 nats left of 0.693" in found.text
    assert found.text.endswith("where the black box is sure; random-pretraining does")


def test_a_selector_that_is_told_nothing_may_find_its_reasons_in_one_place():
    found = remark(L2X(), 0.01, SURE)
    assert found is not None
    assert found.harmless
    assert not remark(L2X(technique="mask-neutral"), 0.01, SURE).harmless


@pytest.mark.parametrize(
    ("technique", "end"),
    [
        ("random-pretraining", "the approximator has not learnt from those masks"),
        ("random-query", "learnt from masks that other labels asked for: a code is rarer, not ruled out"),
    ],
)
def test_where_it_stands_still_it_is_a_note_that_says_no_more_than_is_so(technique, end):
    found = remark(L2X(technique=technique, query=True), 0.01, SURE)
    assert found is not None
    assert found.harmless
    assert f"; with {technique} " in found.text
    assert found.text.endswith(end)


@pytest.mark.parametrize(
    ("how", "end"), [(L2X(), "; random-pretraining does"), (Ail(), "; l2x with random-pretraining does")]
)
def test_nothing_is_recommended_that_cannot_be_had(how, end):
    found = remark(how, 0.01, SURE)
    assert found is not None
    assert found.text.endswith(end)
