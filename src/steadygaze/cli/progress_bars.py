"""Progress of a command: bars and lines, its warnings, and a message after an interruption."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from steadygaze.cli.printing import print_line
from steadygaze.core.types import OnProgress

if TYPE_CHECKING:
    from steadygaze.core.errors import Console

PAUSE = 30.0
"""Seconds between two progress lines in a log."""


SHOWN_REMAINDER = 60.0
"""Remaining seconds from which a log shows them."""


@contextmanager
def progress_bar(console: "Console", each: bool = False, percent: bool = False) -> Iterator[OnProgress]:
    """Show a progress bar, or print progress lines in a log.

    `each`: one line per finished item.  `percent`: the share that is done, not the count.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    from steadygaze.core.progress_time import TaskColumn, TimeColumn, duration

    bars = (
        SpinnerColumn(),
        BarColumn(12),
        TextColumn("{task.percentage:>3.0f} %") if percent else MofNCompleteColumn(),
        TimeColumn(Column(no_wrap=True)),
        TaskColumn(),
    )
    with Progress(*bars, console=console, transient=True, disable=not console.is_terminal or console.quiet) as bar:
        task, last = bar.add_task("reading", total=None), {"done": -1.0, "at": monotonic()}
        start, estimate = last["at"], FallingEstimate()

        def on_progress(activity: str, done: int, total: int) -> None:
            now = monotonic()
            share_left = estimate.left(done, total, now) if percent else None
            fields: dict[str, Any] = {"left": share_left} if percent else {}
            bar.update(task, description=activity, completed=done, total=total, **fields)
            due = done != last["done"] if each else now - last["at"] > PAUSE
            if bar.disable and due:
                elapsed = now - start
                left = elapsed * (total - done) / done if done else 0.0
                count = f"{done:,} of {total:,} done" + (
                    f", about {duration(left)} left" if left >= SHOWN_REMAINDER else ""
                )
                count = share_text(done, total, elapsed, share_left) if percent else count
                print_line(console, f"{count}; {activity}")
                last.update(done=done, at=now)

        yield on_progress


class FallingEstimate:
    """The remaining time at the mean speed since the first report; it never rises until a new task begins.

    The time before the first report does not count: it loads the model.  A task that follows another begins again at 0.

    >>> estimate = FallingEstimate()
    >>> [estimate.left(done, 100, now) for done, now in ((0, 30.0), (20, 40.0), (40, 80.0), (70, 100.0))]
    [None, 40.0, 40.0, 30.0]
    >>> [estimate.left(done, 8, now) for done, now in ((0, 110.0), (2, 120.0))]
    [None, 30.0]
    """

    def __init__(self) -> None:
        self.first: tuple[int, float] | None = None
        self.last = 0
        self.lowest: float | None = None

    def left(self, done: int, total: int, now: float) -> float | None:
        """Seconds; None: unknown."""
        if self.first is None or done < self.last:
            self.first, self.lowest = (done, now), None
        self.last = done
        finished, elapsed = done - self.first[0], now - self.first[1]
        if finished > 0:
            estimate = elapsed * (total - done) / finished
            self.lowest = estimate if self.lowest is None else min(self.lowest, estimate)
        return self.lowest


def share_text(done: int, total: int, elapsed: float, left: float | None) -> str:
    """
    >>> share_text(30, 120, 75, 225)
    '25 % done, 1:15 elapsed, about 3:45 left'
    """
    from steadygaze.core.progress_time import duration
    from steadygaze.core.rounding import percent

    remaining = "" if left is None else f", about {duration(left)} left"
    return f"{percent(done / max(total, 1))} done, {duration(elapsed)} elapsed{remaining}"


@contextmanager
def print_warnings(console: "Console") -> Iterator[None]:
    """Print each warning as one line that names the cell of the study."""
    from steadygaze.study.engine import CURRENT_CELL

    def show(message: Warning | str, *_: object, **__: object) -> None:
        print_line(console, ": ".join(filter(None, (CURRENT_CELL.get(), str(message)))))

    CURRENT_CELL.set("")
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


@contextmanager
def interruptible(console: "Console", kept: Callable[[], str]) -> Iterator[None]:
    """On an interruption, print what is kept and how to continue; `kept` returns that sentence, or nothing."""
    try:
        yield
    except KeyboardInterrupt:
        if sentence := kept():
            print_line(console, f"interrupted; {sentence}")
        raise
