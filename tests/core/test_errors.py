"""A user's mistake is one sentence that names what would be right."""

from difflib import SequenceMatcher

import pytest

from steadygaze.core.errors import COMPARED, MAX_NAMES, RequirementNotMet, UserError, unknown


def test_a_user_error_is_a_value_error_and_an_unmet_requirement_is_not():
    assert issubclass(UserError, ValueError)
    assert not issubclass(RequirementNotMet, ValueError)


@pytest.mark.parametrize(
    ("value", "known", "sentence"),
    [
        ("bilstmm", ["rnn", "bilstm"], "unknown encoder 'bilstmm': did you mean 'bilstm'?  Known: bilstm, rnn."),
        ("zebra", ["rnn", "bilstm"], "unknown encoder 'zebra'.  Known: bilstm, rnn."),
        ("1", [0, 1], "unknown encoder '1': did you mean 1?  Known: 0, 1."),
        (None, ["rnn"], "unknown encoder None.  Known: rnn."),
        ("x", [], "unknown encoder 'x'.  Known: none."),
    ],
)
def test_unknown_names_the_nearest(value, known, sentence):
    assert unknown("encoder", value, known).args == (sentence,)


def test_a_thousand_names_are_not_all_listed():
    message = str(unknown("label", "label 12x", (f"label {i}" for i in range(1000))))
    assert "did you mean 'label 12" in message
    assert message.count(",") == MAX_NAMES - 1
    assert message.endswith("… (1000 in all).")


@pytest.mark.slow
def test_few_of_many_long_names_are_compared_in_full(monkeypatch):
    compared = []
    monkeypatch.setattr(SequenceMatcher, "ratio", lambda matcher: compared.append(matcher.a) or 0.0)
    names = [f"column {i:05} of the table of customers and their orders" for i in range(20_000)]
    unknown("column", "column 77777 of the table of orders and their customers", [*names, "x" * 10_000])
    assert 0 < len(compared) <= COMPARED
    monkeypatch.undo()
    near = unknown("column", "column 00042 of the tabel of customers and their orders", names)
    assert "did you mean 'column 00042 of the table of customers and their orders'" in str(near)


def test_what_was_found_may_be_anything_and_is_cut():
    message = str(unknown("explainer", list(range(100_000)), ["lime"]))
    assert message.startswith("unknown explainer [0, 1, 2, ")
    assert len(message) < 150
