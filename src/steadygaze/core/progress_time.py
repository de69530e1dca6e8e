"""Columns of a progress bar: elapsed and remaining time, in words, and the task."""

from rich.progress import ProgressColumn, Task
from rich.table import Column
from rich.text import Text

from steadygaze.core.rounding import percent


class TimeColumn(ProgressColumn):
    """`0:12 elapsed, 1:05 left`; without an estimate only the elapsed time.

    The field `left` of the task replaces rich's own estimate, which is that of the last seconds.
    """

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time if task.finished else task.elapsed
        left = None if task.finished else task.fields.get("left", task.time_remaining)
        times = f"{duration(elapsed or 0)} elapsed" + ("" if left is None else f", {duration(left)} left")
        return Text(times)

    def get_table_column(self) -> Column:
        return Column(no_wrap=True)


class TaskColumn(ProgressColumn):
    """The description, cut at the end of the line; rich narrows this column before those that do not wrap."""

    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


class FallingEstimate:
    """The remaining time at the mean speed since the first report; it never rises.

    The time before the first report does not count: it loads the model.

    >>> estimate = FallingEstimate()
    >>> [estimate.left(done, 100, now) for done, now in ((0, 30.0), (20, 40.0), (40, 80.0), (70, 100.0))]
    [None, 40.0, 40.0, 30.0]
    """

    def __init__(self) -> None:
        self.first: tuple[int, float] | None = None
        self.lowest: float | None = None

    def left(self, done: int, total: int, now: float) -> float | None:
        """Seconds; None: unknown."""
        if self.first is None:
            self.first = done, now
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
    remaining = "" if left is None else f", about {duration(left)} left"
    return f"{percent(done / max(total, 1))} done, {duration(elapsed)} elapsed{remaining}"


def duration(seconds: float) -> str:
    """
    >>> duration(9.8), duration(75), duration(3675)
    ('0:09', '1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
