"""A bar for what is being done now; where nobody sees a bar, a line now and then."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from steadygaze.escape import one_line

if TYPE_CHECKING:
    from steadygaze.terminal import Console

Watch = Callable[[str, int, int], None]
PAUSE = 30.0
"""Seconds between two lines of a log."""


@contextmanager
def watching(say: "Console", each: bool = False) -> Iterator[Watch]:
    """`each`: a log has a line whenever something is done, however quickly."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bars = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*bars, console=say, transient=True, disable=not say.is_terminal or say.quiet) as bar:
        task, last = bar.add_task("reading", total=None), {"done": -1.0, "at": monotonic()}

        def watch(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)
            due = done != last["done"] if each else monotonic() - last["at"] > PAUSE
            if bar.disable and due:
                line(say, f"{done:,} of {total:,} done; {what}")
                last.update(done=done, at=monotonic())

        yield watch


def line(say: "Console", said: str) -> None:
    """One line, however wide."""
    say.print(one_line(said), highlight=False, markup=False, soft_wrap=True)
