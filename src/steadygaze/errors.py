"""What goes wrong through no fault of ours, said in one sentence: what was found and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """The user's input or settings are wrong.  The command line prints the sentence and exits with 2."""


class RequirementNotMet(Exception):
    """A stated requirement does not hold.  The command line prints the sentence and exits with 1."""


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
