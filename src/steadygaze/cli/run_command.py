"""Run a command: its exit code, closed streams, warnings as lines, and signals.

Writes to a closed stream are dropped.  A reader may close the pipe, as `| head` does, or the caller may close the
stream, as `>&-` does.  The exit code stays the same: an unmet requirement still exits with 1.
"""

import io
import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO

import typer

from steadygaze.cli.exit_codes import INTERNAL_ERROR, SIGNAL, UNMET, WRONG_INPUT
from steadygaze.core.errors import RequirementNotMet, UserError, one_line

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


def run_command(app: Callable[..., Any], arguments: Sequence[str] | None = None) -> None:
    """Run a command of the application and exit with its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams(), termination_as_interruption() as received:
        try:
            code = app(words, standalone_mode=not words)  # without arguments typer prints the help
            sys.stdout.flush()
        except UserError as error:
            _stop(WRONG_INPUT, f"error: {error}")
        except UsageError as error:
            _stop(WRONG_INPUT, f"error: {_usage(error)}")
        except RequirementNotMet as error:
            _stop(UNMET, *error.args)
        except KeyboardInterrupt:
            _stop(SIGNAL + (received or [signal.SIGINT])[0])
        except OSError as error:  # no permission, full disk, a folder instead of a file
            _stop(WRONG_INPUT, f"error: {error}")
        except Exception as error:
            if _out_of_memory(error):
                _stop(WRONG_INPUT, f"error: {MEMORY}")
            with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
                traceback.print_exc(file=log)
            _stop(INTERNAL_ERROR, f"internal error; please report it with the file {log.name}")
        if received:  # typer returns 130 for each interruption
            code = SIGNAL + received[0]
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
