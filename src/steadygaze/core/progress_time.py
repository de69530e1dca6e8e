"""Columns of a progress bar: elapsed and remaining time, in words, and the task."""

from rich.progress import ProgressColumn, Task
from rich.text import Text


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


class TaskColumn(ProgressColumn):
    """The description, cut at the end of the line; rich narrows this column before those that do not wrap."""

    def render(self, task: Task) -> Text:
        return Text(task.description, no_wrap=True, overflow="ellipsis")


def duration(seconds: float) -> str:
    """
    >>> duration(9.8), duration(75), duration(3675)
    ('0:09', '1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
