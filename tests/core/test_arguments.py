"""The checks of arguments: what passes, what is refused, and in which words."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import steadygaze as sg
from robustness.harness import assert_clean, run_case
from robustness.small import LABELS, TEXTS, Small, small
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.arguments import (
    choice,
    flag,
    integer,
    number,
    optional,
    path,
    sequence_of,
    text,
    text_columns,
    validated,
)
from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.core.types import Example
from steadygaze.results.audit_config import ProbeConfig


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (integer(1), np.int64(3), 3),
        (integer(0, 3), 3, 3),
        (number(above=0), Fraction(1, 2), 0.5),
        (number(least=0), np.float32(0), 0.0),
        (choice("a", "b"), np.str_("b"), "b"),
        (flag, np.True_, True),
        (text, "a", "a"),
        (text_columns, "review", ("review",)),
        (text_columns, ["premise", "hypothesis"], ("premise", "hypothesis")),
        (path, "a/b", Path("a/b")),
        (path, Path("a"), Path("a")),
        (optional(integer(1)), None, None),
    ],
)
def test_a_right_value_is_given_on_as_a_plain_type(check, value, expected):
    assert check("argument", value) == expected
    assert type(check("argument", value)) is type(expected)


@pytest.mark.parametrize(
    ("check", "value", "sentence"),
    [
        (integer(1), 0, "argument must be a whole number from 1 up, found 0"),
        (integer(0, 3), 4, "argument must be a whole number from 0 to 3, found 4"),
        (integer(1), True, "argument must be a whole number from 1 up, found True"),
        (integer(1), 2.0, "argument must be a whole number from 1 up, found 2.0"),
        pytest.param(
            integer(1), 10**5000, "argument must be a whole number from 1 up, found a value of type int", id="big"
        ),
        (number(above=0), 0, "argument must be a finite number above 0, found 0"),
        (number(least=0), -1, "argument must be a finite number from 0 up, found -1"),
        (number(), float("nan"), "argument must be a finite number, found nan"),
        (choice("zero", "pad"), "foo", "unknown argument 'foo'.  Known: pad, zero."),
        (flag, "yes", "argument must be True or False, found 'yes'"),
        (text, " ", "argument must be a string that is not empty, found ' '"),
        (path, "", "argument must be the path of a file or folder, found ''"),
        (path, b"model", "argument must be the path of a file or folder, found b'model'"),
        (path, "a\0b", r"argument must be a path without null characters, found 'a\x00b'"),
        (path, "\ud800", r"argument must be a path that the file system can encode, found '\ud800'"),
        (sequence_of, "abc", "argument must be a list, found 'abc'"),
        (sequence_of, {"a"}, "argument must be a list, found {'a'}"),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(check, value, sentence):
    with pytest.raises(UserError) as refusal:
        check("argument", value)
    assert str(refusal.value) == sentence


def test_a_checked_function_keeps_its_name_and_python_reports_a_wrong_call():
    @validated(k=integer(1))
    def example(texts: list[str], k: int = 1) -> int:
        """An example."""
        return k

    assert (example.__name__, example.__doc__) == ("example", "An example.")
    assert (example([]), example([], 2), example([], k=np.int32(3))) == (1, 2, 3)
    with pytest.raises(UserError, match="k must be a whole number"):
        example([], k="2")
    with pytest.raises(TypeError, match="missing a required argument: 'texts'"):
        example()


def test_a_removal_that_is_not_known_is_refused():
    with pytest.raises(UserError, match="'removal': found 'foo'; it should be 'delete', 'pad' or 'zero'"):
        build(ProbeConfig, {"removal": "foo"})


def test_some_missing_labels_are_refused_by_position():
    labels = [*LABELS[:2], None, *LABELS[3:]]
    box = {"classes": ["bad", "good"], "sample": 1}
    with pytest.raises(UserError, match=r"labels\[2\] is empty"):
        sg.audit(lambda texts: [[0.5, 0.5]] * len(texts), TEXTS, labels, **box)
    examples = [Example(review, label) for review, label in zip(TEXTS, labels, strict=True)]
    adapter = as_adapter(lambda texts: [[0.5, 0.5]] * len(texts), classes=["bad", "good"])
    with pytest.raises(UserError, match=r"labels\[2\] is missing, but other texts have a label"):
        run_audit(AuditRequest(adapter, examples, ProbeConfig(sample=1)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return small(tmp_path_factory.mktemp("small"))


@pytest.mark.sweep
@pytest.mark.parametrize("option", ["--label", "--text", "--rationales"])
@pytest.mark.parametrize(
    "command",
    [
        ["train", "DATA", "--out", "OUT"],
        ["audit", "MODEL", "--data", "DATA"],
        ["certify", "MODEL", "--data", "DATA", "--radius", "0.01"],
        ["fit-explainer", "MODEL", "--data", "DATA", "--out", "OUT"],
        ["compare", "DATA", "--techniques", "vanilla,seat", "--out", "OUT"],
    ],
    ids=lambda command: command[0],
)
def test_an_empty_column_name_is_an_error(made: Small, tmp_path: Path, command: list[str], option: str) -> None:
    arguments = {"MODEL": made.model, "DATA": made.data, "OUT": tmp_path / "out"}
    result = run_case(
        [arguments.get(word, word) for word in command] + [option, ""], watch=[tmp_path, made.model.parent]
    )
    assert_clean(result, codes=(2,))
    if not (option == "--rationales" and command[0] in ("certify", "fit-explainer")):
        assert "must be a string that is not empty, found ''" in result.err
