"""What goes wrong through no fault of ours, said in one sentence: what was found and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches

from steadygaze.escape import LONGEST as LONGEST_LINE
from steadygaze.escape import one_line

PREFIX = 30
"""Characters that the command line prints before a message, at most."""


class UserError(ValueError):
    """The user's input or settings are wrong.  The command line prints the sentence and exits with 2.

    The message is one line of printable characters, however long and hostile what it quotes is.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message, LONGEST_LINE - PREFIX))


class RequirementNotMet(Exception):
    """Stated requirements do not hold.  The command line prints a line for each and exits with 1."""

    def __init__(self, *messages: object) -> None:
        super().__init__(*(one_line(message, LONGEST_LINE - PREFIX) for message in messages))


MOST_NAMES = 30
"""Known names listed at most: a classifier may have thousands of labels."""
LONGEST = 80
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
    near = get_close_matches(str(found)[:LONGEST], names, n=1, cutoff=0.5)
    hint = f": did you mean {values[near[0]]!r}?  " if near else ".  "
    more = f" … ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    listed = ", ".join(names[:MOST_NAMES]) or "none"
    return UserError(f"unknown {kind} {found!r:.{LONGEST}}{hint}Known: {listed}{more}.")
