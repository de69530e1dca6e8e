"""The axis of a deciding number: drawn to scale, with its bounds and its ends in numbers."""

import math

import pytest

from report.audited import row
from steadygaze.report.page import axis, axis_sentence
from steadygaze.results.row import Fact

DISTANCE = Fact("How far.", 0, math.log(2), "lower")
GAIN = Fact("How much more.", -1, 1, "higher")


def test_every_mark_lies_where_its_number_is():
    """From 0 to 0.15, and a quarter of that on either side: −0.0375, which is no distance, to 0.1875.  Round: 0.2."""
    found = axis(row("jensen-shannon", 0.12, 0.03), DISTANCE, (0.05, 0.1))
    assert found.ends == ("0", "0.2 …")
    places = [100 * number / 0.2 for number in (0.12, 0.09, 0.15, 0.05, 0.1)]
    assert [found.value, found.low, found.high, found.yes, found.no] == pytest.approx(places, abs=0.051)
    assert not found.upward
    assert found.bounds == ("yes up to 0.05", "no from 0.1 up")


def test_equal_steps_have_equal_widths():
    found = [axis(row("m", value, 0.0), DISTANCE, (0.2, 0.4)) for value in (0.25, 0.3, 0.35)]
    assert len({one.ends for one in found}) == 1
    assert found[1].value - found[0].value == pytest.approx(found[2].value - found[1].value, abs=0.11)


def test_an_axis_ends_where_the_measure_does_and_says_where_it_does_not():
    assert axis(row("m", 0.001, 0.001), DISTANCE, (0.005, 0.02)).ends[0] == "0"
    assert axis(row("m", 0.68, 0.01), DISTANCE, (0.05, 0.1)).ends == ("0", "0.693")
    assert axis(row("m", 2.0), Fact("How many.", 0, math.inf), (3.0, 5.0)).ends == ("0", "7 …")


def test_more_is_better_where_the_yes_lies_above_the_no():
    found = axis(row("m", 0.3, 0.03), GAIN, (0.05, 0.02))
    assert found.upward
    assert found.bounds == ("yes from 0.05 up", "no up to 0.02")
    assert found.no < found.yes < found.low < found.value < found.high


def test_a_number_below_zero_and_one_without_an_interval_have_their_places():
    found = axis(row("m", -0.12), GAIN, (0.1, 0.3))
    assert found.low == found.value == found.high
    assert found.value < found.yes < found.no
    assert found.ends[0] == "… −0.3"


@pytest.mark.parametrize(
    ("number", "fact", "limits"),
    [
        (0.1, None, (0.05, 0.1)),
        (0.1, DISTANCE, None),
        (math.nan, DISTANCE, (0.05, 0.1)),
        (0.0, Fact("Whether.", 0, 1), (0.0, 1.0)),  # yes at one end alone, no at the other: nothing to draw
    ],
)
def test_what_says_nothing_is_not_drawn(number, fact, limits):
    assert axis(row("m", number), fact, limits) is None


def test_the_axis_is_told_to_those_who_cannot_see_it():
    one = row("m", 0.3, 0.03)
    assert axis_sentence(one, axis(one, GAIN, (0.05, 0.02))) == (
        "0.300 (0.270 to 0.330) on an axis from −0.1 to 0.5: yes from 0.05 up, no up to 0.02."
    )
