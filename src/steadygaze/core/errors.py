"""Errors of the user's input, warnings, and safe printing of untrusted text.

A header, a label or a file name can contain escape sequences, line breaks, characters that reverse the reading
direction, or a million characters.  Three forms are safe:

    one_line    a message: one line, at most 500 characters, every other character escaped as in a Python literal
    printable   a text: control and bidirectional characters replaced, line breaks kept
    safe_json   JSON in UTF-8: control and bidirectional characters escaped

`Console` prints to a terminal without markup and foreign escape sequences.
"""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from typing import Any

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

LONGEST = 500
"""Maximum characters of a message."""
TAIL = 180
"""Characters kept from the end of a longer message, which explains the fix."""
CUT = " […] "

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = (*range(32), *range(127, 160), 0x2028, 0x2029, *_BIDI)
_REPLACEMENTS = {**dict.fromkeys(_CONTROLS, "\ufffd"), 9: "\t", 10: "\n", 13: " "}
_IN_JSON = re.compile("[" + "".join(chr(code) for code in _CONTROLS if code >= 127) + "]")


def one_line(text: object, longest: int = LONGEST) -> str:
    r"""Return a message as one safe line.

    >>> print(one_line("a\nb \x1b[31m \u202e café"))
    a\nb \x1b[31m \u202e café
    >>> one_line("x" * 40 + ": give another name", 30)
    'xxxxxxxxxxxxx […] another name'
    """
    message = str(text)
    if len(message) > longest:  # shorten before escaping
        message = _shortened(message, longest)
    if not message.isprintable():
        message = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    return message if len(message) <= longest else _shortened(message, longest)


def printable(text: str) -> str:
    """Replace characters that move the cursor, reverse the reading direction or cannot be encoded."""
    return text.translate(_REPLACEMENTS).encode(errors="replace").decode()


def safe_json(line: bytes) -> bytes:
    r"""Escape the control characters from U+007F on, which JSON does not escape itself.

    >>> safe_json('"\x9b31m\u202e é"'.encode()).decode()
    '"\\u009b31m\\u202e é"'
    """
    if line.isascii() and b"\x7f" not in line:
        return line
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", line.decode(errors="replace")).encode()


def _shortened(text: str, longest: int) -> str:
    tail = min(TAIL, (longest - len(CUT)) // 2)
    return f"{text[: longest - len(CUT) - tail]}{CUT}{text[-tail:]}"


PREFIX = 30
"""Maximum characters that the command line prints before a message."""


class UserError(ValueError):
    """The user's input or settings are wrong.  The command line prints the message and exits with 2.

    The message is one line of printable characters.

    Examples
    --------
    >>> import steadygaze as sg
    >>> try:
    ...     sg.load_corpus("planted-revews")
    ... except sg.UserError as error:
    ...     print(str(error).split("  ")[0])
    unknown corpus 'planted-revews': did you mean 'planted-reviews'?
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message, LONGEST - PREFIX))


class RequirementNotMet(Exception):
    """Requirements are not met, or a bundle differs from its rerun.  The command line prints the lines, exit code 1."""

    def __init__(self, *messages: object) -> None:
        super().__init__(*(one_line(message, LONGEST - PREFIX) for message in messages))


class HealthWarning(UserWarning):
    """A known-bad state of a model or a fitted explainer, such as collapsed attention or a constant label."""


class LabelWarning(UserWarning):
    """Labels that are probably one class, classes with few texts, or white space around labels."""


class SynonymWarning(UserWarning):
    """Synonyms with different class frequencies, or synonym groups that are not exported."""


class SeedWarning(UserWarning):
    """Models of other seeds that are not saved, or a first seed whose training diverged."""


class CoverageWarning(UserWarning):
    """Texts that a model reads in part: truncated texts, unknown tokens, tokens without a vector."""


class SampleWarning(UserWarning):
    """An audit of fewer texts than were passed."""


class LeakageWarning(UserWarning):
    """Selections that leak the label, or for which leakage cannot be tested."""


class LockWarning(UserWarning):
    """A folder that cannot be locked against other processes."""


class RecoveryWarning(UserWarning):
    """A folder whose replacement was interrupted and is now complete."""


MAX_NAMES = 30
"""Maximum number of known names in a message."""
LONGEST_VALUE = 80
"""Maximum characters of a quoted value."""
LOOKED_AT, COMPARED = 20_000, 100
"""Most known names that are considered as the nearest, and most of them that are compared in full."""


def unknown(kind: str, value: object, known: Iterable[object]) -> UserError:
    """Return an error with the nearest valid name.

    >>> unknown("technique", "vanila", ["vanilla", "seat"]).args[0]
    "unknown technique 'vanila': did you mean 'vanilla'?  Known: seat, vanilla."
    >>> unknown("label", "1", [0, 1]).args[0]
    "unknown label '1': did you mean 1?  Known: 0, 1."
    """
    values = {str(name): name for name in known}
    names = sorted(values)
    near = get_close_matches(str(value)[:LONGEST_VALUE], _likely(str(value)[:LONGEST_VALUE], names), n=1, cutoff=0.5)
    hint = f": did you mean {values[near[0]]!r}?  " if near else ".  "
    more = f" … ({len(names)} in all)" if len(names) > MAX_NAMES else ""
    listed = ", ".join(names[:MAX_NAMES]) or "none"
    return UserError(f"unknown {kind} {value!r:.{LONGEST_VALUE}}{hint}Known: {listed}{more}.")


def _likely(value: str, names: list[str]) -> list[str]:
    """The names with most characters in common: a full comparison of two long names takes a millisecond."""
    short = [name for name in names[:LOOKED_AT] if len(name) <= 3 * len(value)]  # the others share less than half
    if len(short) <= COMPARED:
        return short
    matcher = SequenceMatcher(b=value)

    def shared(name: str) -> float:
        matcher.set_seq1(name)
        return matcher.quick_ratio()

    return nlargest(COMPARED, short, shared)


class Console(console.Console):
    """A Rich console without markup in strings; control characters are replaced."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)
