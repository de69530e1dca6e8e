"""Columns of a progress bar: elapsed and remaining time, in words, and the task."""

from rich.progress import ProgressColumn, Task
from rich.table import Column
from rich.text import Text


class TimeColumn(ProgressColumn):
    """`0:12 elapsed, 1:05 left`; without an estimate only the elapsed time."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time if task.finished else task.elapsed
        left = None if task.finished else task.time_remaining
        times = f"{duration(elapsed or 0)} elapsed" + ("" if left is None else f", {duration(left)} left")
        return Text(times)

    def get_table_column(self) -> Column:
        return Column(no_wrap=True)


class TaskColumn(ProgressColumn):
    """The description, cut at the end of the line; rich narrows this column before those that do not wrap."""

    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


def share_text(done: int, total: int, elapsed: float) -> str:
    """
    >>> share_text(30, 120, 75)
    '25 % done, 1:15 elapsed, about 3:45 left'
    """
    left = f", about {duration(elapsed * (total - done) / done)} left" if done else ""
    return f"{done / max(total, 1):.0%} done, {duration(elapsed)} elapsed{left}".replace("%", " %", 1)


def duration(seconds: float) -> str:
    """
    >>> duration(9.8), duration(75), duration(3675)
    ('0:09', '1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
