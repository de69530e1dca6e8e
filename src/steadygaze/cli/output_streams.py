"""Exit codes, standard output and standard error of a command: printing, progress bars, closed streams.

Writes to a closed stream are dropped.  A reader may close the pipe, as `| head` does, or the caller may close the
stream, as `>&-` does.  The exit code stays the same: an unmet requirement still exits with 1.
"""

import io
import json
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import typer

from steadygaze.core.errors import RequirementNotMet, UserError, one_line, safe_json
from steadygaze.core.types import OnProgress

if TYPE_CHECKING:
    from steadygaze.core.errors import Console
    from steadygaze.data.corpus import Corpus

T = TypeVar("T")
MOST_LINES = 50
"""Unmet requirements that are printed."""
MEMORY = "not enough memory: choose a smaller --batch-size or a smaller model, or read fewer texts"
UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""From click, or from the copy of click in typer."""


class Pipe(io.RawIOBase):
    """A raw stream that drops all writes after a failed one; only a closed pipe fails silently."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.broken = raw, False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.raw.fileno())

    def isatty(self) -> bool:
        return bool(self.raw.isatty())

    def write(self, content: Any) -> int | None:
        if not self.broken:
            try:
                return self.raw.write(content)  # type: ignore[no-any-return]
            except BrokenPipeError:
                self.broken = True
            except OSError:
                self.broken = True
                raise
        return len(content)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Let streams be closed, replace characters that a terminal cannot encode, and print a warning as one line."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"! {one_line(message, 490)}\n"
    with ExitStack() as stack:
        stack.callback(setattr, warnings, "formatwarning", before)
        stack.enter_context(redirect_stdout(stack.enter_context(_closable(sys.stdout))))
        stack.enter_context(redirect_stderr(stack.enter_context(_closable(sys.stderr))))
        yield


def output_closed() -> bool:
    """Return whether the reader of standard output has closed it, so that a command can stop."""
    return bool(getattr(getattr(getattr(sys.stdout, "buffer", None), "raw", None), "broken", False))


@contextmanager
def _closable(stream: TextIO | None) -> Iterator[TextIO]:
    if stream is None:  # the caller closed it
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            yield nowhere
        return
    if not isinstance(stream, io.TextIOWrapper):
        yield stream
        return
    stream.flush()
    stream.reconfigure(errors="replace")
    raw = getattr(stream.buffer, "raw", stream.buffer)  # `python -u` has no buffer between
    if not isinstance(raw, io.FileIO):  # in memory
        yield stream
        return
    line_buffering = stream.line_buffering or stream.write_through
    closable = io.TextIOWrapper(io.BufferedWriter(Pipe(raw)), stream.encoding, "replace", line_buffering=line_buffering)
    try:
        yield closable
    finally:
        with suppress(OSError):  # the command has already reported an earlier error
            closable.flush()


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
def print_warnings(console: "Console", on_progress: OnProgress) -> Iterator[OnProgress]:
    """Print each warning as one line that names the cell."""
    cell = ""

    def watch_cell(activity: str, done: int, total: int) -> None:
        nonlocal cell
        on_progress(activity, done, total)
        cell = activity.partition(":")[0]

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print_line(console, f"{cell}: {message}".removeprefix(": "))
        yield watch_cell


@contextmanager
def interruptible(console: "Console", kept: Callable[[], str]) -> Iterator[None]:
    """On an interruption, print what is kept and how to continue; `kept` returns that sentence, or nothing."""
    try:
        yield
    except KeyboardInterrupt:
        if sentence := kept():
            print_line(console, f"interrupted; {sentence}")
        raise


def print_line(console: "Console", message: str) -> None:
    """Print one line without wrapping."""
    console.print(one_line(message), highlight=False, markup=False, soft_wrap=True)


def show_labels(corpus: "Corpus", keep: bool, console: "Console") -> None:
    """Print the classes of the training texts and what is unusual about them; refuse near-duplicates unless kept."""
    from steadygaze.core.errors import UserError
    from steadygaze.data.label_checks import count_labels, count_sentence, near_duplicate_sentence, rare_sentence

    counts = count_labels(example.label for example in corpus.training)
    print_line(console, count_sentence(counts))
    if rare := rare_sentence(counts):
        print_line(console, rare)
    everywhere = count_labels(example.label for split in corpus.splits.values() for example in split)
    if not (near := near_duplicate_sentence(everywhere)):
        return
    if not keep:
        raise UserError(f"{near}.  Correct them in the data, or add --keep-labels to train on them as they are")
    print_line(console, f"{near}.  Each is a class of its own")


def show(message: object) -> None:
    """Print one line of a result."""
    print(one_line(message))


def print_json(value: Any) -> None:
    print_json_lines([json.dumps(value, ensure_ascii=False, indent=1).encode(errors="replace")])


def print_json_lines(lines: Iterable[bytes]) -> None:
    """Print JSON in UTF-8, independent of the encoding of standard output."""
    sys.stdout.flush()  # keep the order of earlier output
    for line in until_closed(lines):
        sys.stdout.buffer.write(safe_json(line) + b"\n")
    sys.stdout.flush()


def until_closed(items: Iterable[T]) -> Iterator[T]:
    """Yield items until the reader of standard output closes the pipe."""
    for item in items:
        if output_closed():
            return
        yield item


def run_command(app: Callable[..., Any], arguments: Sequence[str] | None = None) -> None:
    """Run a command of the application and exit with its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams(), termination_as_interruption() as received:
        try:
            code = app(words, standalone_mode=not words)  # without arguments typer prints the help
            sys.stdout.flush()
        except UserError as error:
            _stop(2, f"error: {error}")
        except UsageError as error:
            _stop(2, f"error: {_usage(error)}")
        except RequirementNotMet as error:
            _stop(1, *error.args)
        except KeyboardInterrupt:
            _stop(128 + (received or [signal.SIGINT])[0])
        except OSError as error:  # no permission, full disk, a folder instead of a file
            _stop(2, f"error: {error}")
        except Exception as error:
            if _out_of_memory(error):
                _stop(2, f"error: {MEMORY}")
            with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
                traceback.print_exc(file=log)
            _stop(70, f"internal error; please report it with the file {log.name}")
        if received:  # typer returns 130 for each interruption
            code = 128 + received[0]
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def termination_as_interruption() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP interrupt a command as Ctrl-C does; yield the received signals.

    Signals that the caller ignores, as `nohup` does, stay ignored.
    """
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]  # Windows has no SIGHUP
    changed = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, interrupt)
    try:
        yield received
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _out_of_memory(error: Exception) -> bool:
    """Torch raises a RuntimeError for CPU memory and an OutOfMemoryError for GPU memory."""
    from_torch = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or from_torch


def _usage(error: Any) -> str:
    """Describe the wrong arguments and name the command that shows the help."""
    inner = error.ctx is not None and error.ctx.parent is not None
    command = f"steadygaze {error.ctx.info_name} --help" if inner else "steadygaze --help"
    message = " ".join(error.format_message().split())
    return f"{message.rstrip('.')}; see: {command}"


def _stop(code: int, *messages: str) -> None:
    with suppress(OSError):  # a message that cannot be printed does not change the exit code
        for message in messages[:MOST_LINES]:
            print(one_line(message), file=sys.stderr)
        if len(messages) > MOST_LINES:
            print(f"… and {len(messages) - MOST_LINES:,} more", file=sys.stderr)
    sys.exit(code)
