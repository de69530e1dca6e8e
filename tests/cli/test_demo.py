"""The demonstration: its policy accepts a yes only, and the measures that it prints exist."""

from steadygaze.cli import demo
from steadygaze.properties import row_names


def test_the_policy_accepts_no_undecided_verdict() -> None:
    assert [requirement.answers for requirement in demo.POLICY.verdicts] == [("yes",)] * 3


def test_the_printed_measures_are_rows_of_an_audit() -> None:
    assert set(demo.MEANINGS) <= set(row_names())
