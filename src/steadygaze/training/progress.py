"""Progress of training: one bar over all stages, or nothing."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column
from torch import Tensor

from steadygaze.core.errors import Console, UserError, one_line
from steadygaze.core.progress_time import TimeColumn

SCORES = {"macro-f1": "macro-F1", "fidelity": "fidelity", "divergence": "divergence"}
"""Validation scores of an epoch."""
REDRAW = 0.2
"""Seconds between two updates of the loss: reading it waits for the device."""
BAR = 11
"""Width of the bar, in columns."""
DESCRIPTION = 33
"""Columns of 80 that remain for stage, epoch and loss terms."""
COLLAPSED = "  (collapsed)"
COLLAPSE_MEANING = "collapsed: attention does not depend on the text yet, common in early epochs"


def loss_line(start: str, terms: Iterable[tuple[str, float]], end: str, width: int | None) -> str:
    """A line with as many loss terms as fit; None: all of them.

    >>> loss_line("epoch 1", {"task": 0.5, "top-k": 0.25}.items(), "macro-F1 0.900", 36)
    'epoch 1  task 0.500  macro-F1 0.900'
    """
    losses, rest = [f"{name} {value:.3f}" for name, value in terms], [end] if end else []
    while width is not None and losses and len("  ".join([start, *losses, *rest])) > width:
        losses.pop()
    return "  ".join([start, *losses, *rest])


OnEpoch = Callable[[Mapping[str, Any]], None]
"""Receives the record of each epoch of one model; it can raise `TrainingStopped`."""


class TrainingDiverged(UserError):
    """A loss is NaN or infinite."""

    recorded = False
    """True if an earlier, interrupted call trained the model."""


class TrainingStopped(Exception):
    """Raised by the watcher of a model after an epoch: the model is not trained further.  Others continue."""


@runtime_checkable
class Watcher(Protocol):
    """Receives every step and every epoch."""

    def start(self, stages: int, epochs: int, steps: int) -> None:
        """Start; `epochs` is the maximum over all stages, `steps` is per epoch."""

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None: ...

    def epoch(self, record: Mapping[str, Any]) -> None: ...

    def skip(self, epochs: int) -> None:
        """Skip epochs that ran before an interruption, or that early stopping omits."""

    def say(self, message: str) -> None:
        """Show a message."""

    def detail(self, message: str) -> None:
        """Show a message that only `-v` prints."""

    def warn(self, message: str | Warning) -> None:
        """Show a warning; its class is UserWarning if `message` is a string."""

    def stop(self) -> None: ...


class SilentWatcher:
    """A watcher that shows only warnings, as Python warnings."""

    def start(self, stages: int, epochs: int, steps: int) -> None: ...
    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None: ...
    def epoch(self, record: Mapping[str, Any]) -> None: ...
    def skip(self, epochs: int) -> None: ...
    def say(self, message: str) -> None: ...
    def detail(self, message: str) -> None: ...
    def stop(self) -> None: ...
    def warn(self, message: str | Warning) -> None:
        warnings.warn(message, stacklevel=4)


class QuietWatcher(SilentWatcher):
    """A watcher that shows nothing."""

    def warn(self, message: str | Warning) -> None: ...


class NamedWatcher:
    """One of several models that are trained at the same time: its epochs and warnings name it."""

    def __init__(self, watcher: Watcher, name: str, quiet: bool = False) -> None:
        """`quiet`: show no messages, which are the same for all models."""
        self.watcher, self.name, self.quiet = watcher, name, quiet
        self.start, self.skip, self.stop, self.step = watcher.start, watcher.skip, watcher.stop, watcher.step

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.watcher.epoch({**record, "stage": f"{self.name}  {record['stage']}"})

    def say(self, message: str) -> None:
        if not self.quiet:
            self.watcher.say(message)

    def detail(self, message: str) -> None:
        if not self.quiet:
            self.watcher.detail(message)

    def warn(self, message: str | Warning) -> None:
        kind = type(message) if isinstance(message, Warning) else UserWarning
        self.watcher.warn(kind(f"{self.name}: {message}"))


class ObservedWatcher:
    """A watcher with a function that receives the epochs of one model."""

    def __init__(self, watcher: Watcher, on_epoch: OnEpoch) -> None:
        self.watcher, self.on_epoch = watcher, on_epoch
        self.start, self.skip, self.stop, self.step = watcher.start, watcher.skip, watcher.stop, watcher.step
        self.say, self.detail, self.warn = watcher.say, watcher.detail, watcher.warn

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.watcher.epoch(record)
        self.on_epoch(record)


def is_interactive() -> bool:
    """True if a person sees standard error: in a terminal or in a notebook."""
    return sys.stderr.isatty() or Console(stderr=True).is_jupyter


class ProgressBar:
    """A rich progress bar on standard error, with elapsed and remaining time, and one line per epoch.

    `details`: lines with all loss terms, also if they are wider than the terminal.
    """

    def __init__(self, console: Console | None = None, details: bool = False) -> None:
        self.console, self.details = console or Console(stderr=True), details
        has_widgets = self.console.is_jupyter and find_spec("ipywidgets") is not None  # with which rich draws bars
        draws = self.console.is_terminal or has_widgets
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeColumn(Column(no_wrap=True)),
            console=self.console,
            transient=True,
            disable=not draws,  # elsewhere, a line per epoch is enough
        )
        self._updated = 0.0
        self._explained_collapse = False

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.several, self.steps = stages > 1, steps
        self.task = self.bar.add_task("starting", total=epochs * steps)
        self.bar.start()

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.bar.advance(self.task)
        if time.monotonic() - self._updated > REDRAW:
            self._updated = time.monotonic()
            losses = ((name, value.mean().item()) for name, value in terms.items())
            position = f"{stage}, epoch {epoch + 1}" if self.several else f"epoch {epoch + 1}"
            width = DESCRIPTION + max(0, self.console.width - 80)
            self.bar.update(self.task, description=loss_line(position, losses, "", width))

    def epoch(self, record: Mapping[str, Any]) -> None:
        start = f"{record['stage']}  " if self.several else ""
        score = "  ".join(f"validation {name} {record[key]:.3f}" for key, name in SCORES.items() if key in record)
        collapsed = bool(record.get("attention", {}).get("collapsed"))
        score += COLLAPSED if collapsed else ""
        width = None if self.details else self.console.width
        line = loss_line(f"{start}epoch {record['epoch']:>2}", record["terms"].items(), score, width)
        self.console.print(line, highlight=False, markup=False, soft_wrap=self.details)
        if collapsed and not self._explained_collapse:
            self._explained_collapse = True
            self.say(COLLAPSE_MEANING)

    def skip(self, epochs: int) -> None:
        self.bar.advance(self.task, epochs * self.steps)

    def say(self, message: str | Warning) -> None:
        self.console.print(one_line(message), highlight=False, markup=False)

    warn = say

    def detail(self, message: str) -> None:
        if self.details:
            self.say(message)

    def stop(self) -> None:
        self.bar.stop()
