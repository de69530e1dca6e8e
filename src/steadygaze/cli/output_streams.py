"""Standard output and standard error of a command.  Writes to a closed stream are dropped.

A reader may close the pipe, as `| head` does, or the caller may close the stream, as `>&-` does.  The exit
code stays the same: an unmet requirement still exits with 1.
"""

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO

from steadygaze.core.errors import one_line


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
