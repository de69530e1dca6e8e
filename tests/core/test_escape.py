"""Text of a user's files on a terminal: no control character, one line, 500 characters."""

import io
import json
import warnings

import pytest
from rich.table import Table
from rich.text import Text

from steadygaze.cli.run_command import standard_streams
from steadygaze.core.errors import LONGEST, Console, RequirementNotMet, UserError, one_line, printable, safe_json

CONTROLS = [chr(code) for code in (*range(32), *range(127, 160))]
BIDI = [chr(code) for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)]


@pytest.mark.parametrize("character", [*CONTROLS, *BIDI, "\udc80"], ids=ascii)
def test_a_control_character_is_escaped_in_a_message_and_replaced_in_a_drawn_text(character):
    message = one_line(f"a{character}b")
    assert message.isprintable()
    assert message == "a" + character.encode("unicode_escape").decode() + "b"
    drawn = printable(f"a{character}b")
    assert drawn.isprintable() or drawn in ("a\tb", "a\nb")
    assert safe_json(json.dumps(f"a{character}b").encode()).decode() == json.dumps(f"a{character}b")
    if character != "\udc80":
        raw = json.dumps(f"a{character}b", ensure_ascii=False).encode()
        assert safe_json(raw).decode().isprintable()
        assert json.loads(safe_json(raw)) == f"a{character}b"


def test_words_of_any_language_are_left_as_they_are():
    text = "café, naïve, 日本語, שלום, 😀 − “quotes”"
    assert one_line(text) == printable(text) == text
    assert safe_json(json.dumps(text, ensure_ascii=False).encode()).decode() == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("character", ["x", "\x1b", "\n", "\u202e", "😀"], ids=ascii)
def test_a_long_message_keeps_its_beginning_and_its_end(character):
    message = one_line("no column " + character * 1_000_000 + "; name another with --text")
    assert len(message) <= LONGEST
    assert message.isprintable()
    assert message.startswith("no column ")
    assert message.endswith("; name another with --text")
    assert one_line(message) == message


@pytest.mark.parametrize("error", [UserError, RequirementNotMet])
def test_the_message_of_an_error_is_one_short_line(error):
    message = str(error("file \x1b]0;title\x07 of\nlines " + "x" * 10_000))
    assert message.isprintable()
    assert len(message) < LONGEST


def drawn(what: object) -> str:
    console = Console(file=io.StringIO(), width=60)
    console.print(what)
    return console.file.getvalue()


def test_a_console_draws_no_control_character_and_no_markup():
    hostile = "[red]x[/red] :smile: \x1b[2J\x9b31m\x07\u202e"
    table = Table(hostile, title=hostile)
    table.add_row(hostile)
    for what in (hostile, Text(hostile), table):
        shown = drawn(what)
        assert not set(shown) & {"\x1b", "\x9b", "\x07", "\u202e"}
        assert "[red]x[/red] :smile:" in shown


def test_a_console_keeps_its_own_colors():
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text("a\x1b[2Jb", style="red"))
    assert console.file.getvalue() == "\x1b[31ma\ufffd[2Jb\x1b[0m\n"


def test_a_warning_of_the_command_line_is_one_line():
    before = warnings.formatwarning
    with standard_streams():
        assert warnings.formatwarning("a \x1b[31m\nb", UserWarning, "f.py", 1) == "! a \\x1b[31m\\nb\n"
    assert warnings.formatwarning is before
