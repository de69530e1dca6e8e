"""One measured number and its signature."""

import dataclasses
import json
import math
from dataclasses import replace

import pytest

from steadygaze.results.note import text_note
from steadygaze.results.row import Row, to_jsonl

ROW = Row("accuracy", 0.8125, 16, (0.7, 0.9), {"split": "test", "corpus": "sst2", "seed": 0}, (text_note("a note"),))


def test_the_signature_does_not_depend_on_the_order_of_the_settings():
    assert ROW.signature == "accuracy|corpus:sst2|seed:0|split:test|n:16"
    assert dataclasses.replace(ROW, settings=dict(reversed(ROW.settings.items()))).signature == ROW.signature


def test_the_signature_is_of_the_conditions_and_not_of_the_value():
    assert dataclasses.replace(ROW, value=0.1, interval=None, notes=()).signature == ROW.signature
    assert dataclasses.replace(ROW, n=17).signature != ROW.signature


def test_a_row_reads_as_one_line():
    assert str(ROW) == "accuracy = 0.812 [0.700, 0.900], n = 16"
    assert str(Row("time", 2.0, 1)) == "time = 2.000, n = 1"
    assert str(Row("recall", 1.0, 4, settings={"class": "good"})) == "recall, class good = 1.000, n = 4"


def test_a_row_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ROW.value = 1.0


def test_rows_are_written_one_to_a_line_and_hold_everything():
    lines = to_jsonl([ROW, Row("naïve", math.nan, 0)]).splitlines()
    first, second = map(json.loads, lines)
    assert first == {
        "measure": "accuracy",
        "value": 0.8125,
        "n": 16,
        "interval": [0.7, 0.9],
        "settings": {"split": "test", "corpus": "sst2", "seed": 0},
        "notes": [{"code": "text", "fields": {"text": "a note"}}],
        "caveat": None,
        "absent": None,
        "note": "a note",
        "signature": ROW.signature,
    }
    assert second["value"] is None
    assert "naïve" in lines[1]


def test_no_rows_are_no_lines():
    assert to_jsonl([]) == ""


def test_what_is_not_finite_stays_out_of_the_json():
    row = Row("ratio", math.inf, 1, (math.nan, math.inf), {"epsilon": math.inf})
    assert "NaN" not in to_jsonl([row])
    assert "Infinity" not in to_jsonl([row])


def test_rows_are_equal_by_their_fields_with_and_without_a_value():
    """Since Python 3.13, a dataclass compares each field with ==, and NaN is not equal to itself."""
    missing = Row("accuracy", float("nan"), 0, (float("nan"), 1.0), {"seed": 0}, "not applicable")
    assert missing == replace(missing, value=-float("nan"), interval=(-float("nan"), 1.0))
    assert missing != replace(missing, value=0.5)
    assert missing != replace(missing, interval=(0.0, 1.0))
    assert missing != replace(missing, settings={"seed": 1})
    assert missing != "accuracy"
