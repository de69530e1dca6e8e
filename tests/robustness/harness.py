"""Run a command on hostile input in this process, and check that it fails cleanly.

A clean run ends with exit code 0, 1, 2 or 130, prints lines of at most 500 printable characters on standard error (one
line where it fails), and leaves every file as it was.
"""

import hashlib
import io
import os
import signal
import stat
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from commands import overridden
from steadygaze import cli

CODES = (0, 1, 2, 130)
LONGEST = 500
LARGEST = 64 << 20
"""Bytes of a file whose content is compared; of a larger one, the size."""
LIMIT = 120
"""Seconds until a case counts as a hang."""

Entry = tuple[int, int, str]
"""File type and permissions, size, and the SHA-256 of the content or the target of the link."""


class Hang(BaseException):
    """Not an Exception: no handler of the package may catch it."""


@dataclass(frozen=True)
class Result:
    arguments: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    changes: tuple[str, ...] = ()
    """Files of the watched folders that were created, changed or removed."""

    @property
    def out(self) -> str:
        return self.stdout.decode(errors="surrogateescape")

    @property
    def err(self) -> str:
        return self.stderr.decode(errors="surrogateescape")


def run_case(
    arguments: Sequence[object],
    stdin: str | bytes | None = None,
    *,
    watch: Path | Sequence[Path] = (),
    encoding: str = "utf-8",
    limit: float = LIMIT,
) -> Result:
    """Run `steadygaze ARGUMENTS`.

    Parameters
    ----------
    arguments
        The command line, without the program's name.
    stdin
        What standard input holds; nothing by default.
    watch
        Folders of which every file is compared before and after.
    encoding
        Of standard output and standard error, as a terminal has it.
    limit
        Seconds until the case fails as a hang.
    """
    folders = [watch] if isinstance(watch, Path) else list(watch)
    before = snapshot(folders)
    inputs = tuple(str(argument) for argument in arguments)
    text = stdin.encode() if isinstance(stdin, str) else stdin or b""
    with _streams(text, encoding) as (out, err), time_limit(limit):
        try:
            cli.main(overridden(inputs))
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    return Result(inputs, code, out.getvalue(), err.getvalue(), changes(before, snapshot(folders)))


def assert_clean(
    result: Result, codes: Collection[int] = CODES, written: Collection[str] | None = (), *, one_line: bool = True
) -> None:
    """Fail unless the run ended with one of `codes`, a short line, and no changed file but `written`.

    Where `written` is None, any file may have changed; without `one_line`, progress may come before an error.
    """
    assert result.code in codes, f"{result.arguments}: exit code {result.code}: {result.err[-2000:]}"
    assert_printable(result.err)
    lines = [line for line in result.err.splitlines() if not line.startswith("! ")]  # without warnings
    if result.code == 2 and not result.err.lstrip().startswith("Usage:"):
        assert len(lines) == 1 or not one_line, (
            f"{result.arguments}: {len(lines)} lines on standard error: {result.err}"
        )
        assert lines[-1].startswith("error: "), result.err
    assert written is None or set(result.changes) <= set(written), f"{result.arguments}: changed {result.changes}"


def assert_printable(text: str) -> None:
    """Fail where a line is too long, or holds a control character or an undecodable byte."""
    for line in text.split("\n"):
        assert len(line) <= LONGEST, f"a line of {len(line)} characters: {line[:200]!r} …"
        assert line.isprintable(), f"not printable: {line!r}"


def snapshot(folders: Sequence[Path]) -> dict[str, Entry]:
    """Every file below these folders.  Links are not followed, and only regular files are opened."""
    certificates: dict[str, Entry] = {}
    for folder in folders:
        for root, names, files in os.walk(folder):
            for name in (*names, *files):
                path = os.path.join(root, name)
                certificates[os.path.relpath(path, folder)] = _entry(path)
    return certificates


def changes(before: dict[str, Entry], after: dict[str, Entry]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def _entry(path: str) -> Entry:
    status = os.lstat(path)
    content = ""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST:
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return status.st_mode, status.st_size if stat.S_ISREG(status.st_mode) else 0, content


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Hang where the block takes longer."""

    def stop(*_: object) -> None:
        raise Hang(f"no end after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _streams(stdin: bytes, encoding: str) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Replace the three standard streams; standard error escapes what it cannot encode, as Python's does."""
    out, err = io.BytesIO(), io.BytesIO()
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding=encoding, write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding=encoding, errors="backslashreplace", write_through=True)
    streams = sys.stdin, sys.stdout, sys.stderr
    try:
        yield out, err
    finally:
        for stream in streams[1:]:
            stream.flush()
        sys.stdin, sys.stdout, sys.stderr = kept
        for stream in streams:
            stream.detach()
