"""What goes wrong through no fault of ours, said in one sentence: what was found and what would be right.

Text from a user's files, made safe to print.

A header, a label or a file name may hold escape sequences, line breaks, characters that reverse the reading direction,
or a million characters.  Three forms are safe:

    one_line    a message: one line, at most 500 characters, every other character escaped as in a Python literal
    printable   a text that is drawn: control and bidirectional characters replaced, line breaks kept
    safe_json   JSON in UTF-8: control and bidirectional characters that JSON itself leaves as they are, escaped
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 500
"""Characters of a message, at most."""
TAIL = 180
"""Characters kept of the end of a longer message: it says how to fix what is wrong."""
CUT = " […] "

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029, *_BIDI)
_DRAWN = {**dict.fromkeys(_CONTROLS, "\ufffd"), 9: "\t", 10: "\n", 13: " "}
_IN_JSON = re.compile("[" + "".join(chr(code) for code in _CONTROLS if code >= 127) + "]")


def one_line(text: object, longest: int = LONGEST) -> str:
    r"""A message for a person.

    >>> print(one_line("a\nb \x1b[31m \u202e café"))
    a\nb \x1b[31m \u202e café
    >>> one_line("x" * 40 + ": give another name", 30)
    'xxxxxxxxxxxxx […] another name'
    """
    written = str(text)
    if len(written) > longest:  # before the escapes: a million characters are not to be escaped one by one
        written = _shortened(written, longest)
    if not written.isprintable():
        written = "".join(one if one.isprintable() else _escaped(one) for one in written)
    return written if len(written) <= longest else _shortened(written, longest)


def printable(text: str) -> str:
    """A text without what could move the cursor, reverse the order of what is shown, or stop the encoder."""
    return text.translate(_DRAWN).encode(errors="replace").decode()


def safe_json(line: bytes) -> bytes:
    r"""JSON in UTF-8, every control character escaped; JSON leaves those from U+007F on as they are.

    >>> safe_json('"\x9b31m\u202e é"'.encode()).decode()
    '"\\u009b31m\\u202e é"'
    """
    if line.isascii() and b"\x7f" not in line:
        return line
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line.decode(errors="replace")).encode()


def _shortened(text: str, longest: int) -> str:
    tail = min(TAIL, (longest - len(CUT)) // 2)
    return f"{text[: longest - len(CUT) - tail]}{CUT}{text[-tail:]}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


PREFIX = 30
"""Characters that the command line prints before a message, at most."""


class UserError(ValueError):
    """The user's input or settings are wrong.  The command line prints the sentence and exits with 2.

    The message is one line of printable characters, however long and hostile what it quotes is.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message, LONGEST - PREFIX))


class RequirementNotMet(Exception):
    """Stated requirements do not hold.  The command line prints a line for each and exits with 1."""

    def __init__(self, *messages: object) -> None:
        super().__init__(*(one_line(message, LONGEST - PREFIX) for message in messages))


MOST_NAMES = 30
"""Known names listed at most: a classifier may have thousands of labels."""
LONGEST_VALUE = 80
"""Characters shown of what was found: it may be anything."""


def unknown(kind: str, found: object, known: Iterable[object]) -> UserError:
    """An error that names the nearest valid name.

    >>> unknown("technique", "vanila", ["vanilla", "seat"]).args[0]
    "unknown technique 'vanila': did you mean 'vanilla'?  Known: seat, vanilla."
    >>> unknown("label", "1", [0, 1]).args[0]
    "unknown label '1': did you mean 1?  Known: 0, 1."
    """
    values = {str(name): name for name in known}
    names = sorted(values)
    near = get_close_matches(str(found)[:LONGEST_VALUE], names, n=1, cutoff=0.5)
    hint = f": did you mean {values[near[0]]!r}?  " if near else ".  "
    more = f" … ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    listed = ", ".join(names[:MOST_NAMES]) or "none"
    return UserError(f"unknown {kind} {found!r:.{LONGEST_VALUE}}{hint}Known: {listed}{more}.")
