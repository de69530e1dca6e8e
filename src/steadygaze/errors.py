"""What goes wrong through no fault of ours, said in one sentence: what was found and what would be right."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """The user's input or settings are wrong.  The command line prints the sentence and exits with 2."""


class RequirementNotMet(Exception):
    """A stated requirement does not hold.  The command line prints the sentence and exits with 1."""


def unknown(kind: str, found: object, known: Iterable[str]) -> UserError:
    """An error that names the nearest valid name.

    >>> unknown("technique", "vanila", ["vanilla", "seat"]).args[0]
    "unknown technique 'vanila': did you mean 'vanilla'?  Known: seat, vanilla."
    """
    names = sorted(known)
    near = get_close_matches(str(found), names, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}?  " if near else ".  "
    return UserError(f"unknown {kind} {found!r}{hint}Known: {', '.join(names) or 'none'}.")
