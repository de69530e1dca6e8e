"""A selection that encodes the label by value: no gap, no warning, and words that the black box ignores."""

import pytest

from studies.tables import RECORDS, read_records
from studies.value_encoding.run import measure


def test_no_run_of_an_encoding_by_value_has_a_gap_or_a_warning() -> None:
    runs = read_records([RECORDS / "value_encoding.jsonl"])
    assert len(runs) == 5
    assert {
        (run["fidelity"], run["independent-reader-accuracy"], run["leakage-gap"], run["warned"]) for run in runs
    } == {(1.0, 1.0, 0.0, 0)}
    assert {(run["positive, given good"], run["positive, given good selected"]) for run in runs} == {(0.75, 1.0)}
    assert min(run["ignored"] for run in runs) > 0.1


@pytest.mark.slow
def test_an_encoding_by_value_has_no_leakage_gap() -> None:
    run = measure(0)
    assert (run["warned"], run["positive, given good"], run["positive, given good selected"]) == (0, 0.75, 1.0)
    assert run["fidelity"] > 0.99
    assert abs(run["leakage-gap"]) < 0.01
    assert run["ignored"] > 0.1
