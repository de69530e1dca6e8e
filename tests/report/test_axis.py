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
    result = axis(row("jensen-shannon", 0.12, 0.03), DISTANCE, (0.05, 0.1))
    assert result.ends == ("0", "0.2 …")
    places = [100 * number / 0.2 for number in (0.12, 0.09, 0.15, 0.05, 0.1)]
    assert [result.value, result.low, result.high, result.yes, result.no] == pytest.approx(places, abs=0.051)
    assert not result.upward
    assert result.bounds == ("yes up to 0.05", "no from 0.1 up")


def test_equal_steps_have_equal_widths():
    results = [axis(row("m", value, 0.0), DISTANCE, (0.2, 0.4)) for value in (0.25, 0.3, 0.35)]
    assert len({result.ends for result in results}) == 1
    assert results[1].value - results[0].value == pytest.approx(results[2].value - results[1].value, abs=0.11)


def test_an_axis_ends_at_the_bounds_of_the_measure_or_marks_an_open_end():
    assert axis(row("m", 0.001, 0.001), DISTANCE, (0.005, 0.02)).ends[0] == "0"
    assert axis(row("m", 0.68, 0.01), DISTANCE, (0.05, 0.1)).ends == ("0", "0.693")
    assert axis(row("m", 2.0), Fact("How many.", 0, math.inf), (3.0, 5.0)).ends == ("0", "7 …")


def test_more_is_better_where_the_yes_lies_above_the_no():
    result = axis(row("m", 0.3, 0.03), GAIN, (0.05, 0.02))
    assert result.upward
    assert result.bounds == ("yes from 0.05 up", "no up to 0.02")
    assert result.no < result.yes < result.low < result.value < result.high


def test_a_number_below_zero_and_one_without_an_interval_have_their_places():
    result = axis(row("m", -0.12), GAIN, (0.1, 0.3))
    assert result.low == result.value == result.high
    assert result.value < result.yes < result.no
    assert result.ends[0] == "… −0.3"


@pytest.mark.parametrize(
    ("number", "fact", "limits"),
    [
        (0.1, None, (0.05, 0.1)),
        (0.1, DISTANCE, None),
        (math.nan, DISTANCE, (0.05, 0.1)),
        (0.0, Fact("Whether.", 0, 1), (0.0, 1.0)),  # yes at one end alone, no at the other: nothing to draw
    ],
)
def test_a_number_without_a_value_is_not_drawn(number, fact, limits):
    assert axis(row("m", number), fact, limits) is None


def test_the_axis_has_a_description_for_screen_readers():
    number = row("m", 0.3, 0.03)
    assert axis_sentence(number, axis(number, GAIN, (0.05, 0.02))) == (
        "0.300 (0.270 to 0.330) on an axis from −0.1 to 0.5: yes from 0.05 up, no up to 0.02."
    )
