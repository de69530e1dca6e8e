"""Read files that somebody else may have written: regular files only, of a limited size, and no code is run.

Every reader of a user's file goes through this module.  What is wrong becomes a UserError of one sentence, and nothing
is read or allocated before the kind and the size of the file are known.
"""

import errno
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError

LARGEST_JSON = 64 << 20
"""Bytes of a JSON file of settings: a million label names fit."""
LARGEST_TEXT = 512 << 20
"""Bytes of a text that is read at once: a tokenizer, a page, the JSON of a report."""
DEEPEST = 64
"""Lists and objects of a JSON document within each other."""
INTEGERS = range(-(1 << 63), 1 << 63)
"""Whole numbers of a JSON document that stay whole; a larger one is read as a float, as most readers of JSON do."""
DIGITS = 300
"""Of a whole number: one with more is not a float either."""
LONGEST_REASON = 200
"""Characters shown of what a library says."""
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
REASONS = {
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ENOTDIR: "a part of the path is not a folder",
}


class MissingFile(UserError):
    """The file does not exist."""


def resolve(path: str | os.PathLike[str]) -> Path:
    """The absolute path without links; a loop of links is a UserError."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: what Python 3.11 makes of a loop
        raise UserError(f"{path} cannot be resolved: its symbolic links form a loop, or its name is invalid") from None


@contextmanager
def open_file(path: str | os.PathLike[str], largest: int | None = None) -> Iterator[BufferedReader]:
    """A regular file, open for reading.  A pipe is never waited for, and a device is never read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise MissingFile(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {reason(error)}") from None
    try:
        _check(os.fstat(descriptor), path, largest)
    except UserError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        yield file


def check_file(path: str | os.PathLike[str], largest: int | None = None) -> int:
    """The size of a file that is regular and not too large; for libraries that open a file by its name."""
    with open_file(path, largest) as file:
        return os.fstat(file.fileno()).st_size


def arrow_path(path: str | os.PathLike[str]) -> str:
    """The name of a regular file as the Arrow library takes it: in UTF-8."""
    check_file(path)
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"the name of the file {os.fspath(path)!a} is not UTF-8: rename it") from None
    return os.fspath(path)


def read_bytes(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> bytes:
    with open_file(path, largest) as file:
        try:
            content = file.read(largest + 1)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {reason(error)}") from None
    if len(content) > largest:  # it grew
        raise _too_large(path, len(content), largest)
    return content


def read_text(path: str | os.PathLike[str], largest: int = LARGEST_TEXT) -> str:
    """UTF-8."""
    return decode(read_bytes(path, largest), path)


def decode(content: bytes, name: object) -> str:
    """The text of a file in UTF-8; `name` is the file that an error names."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} cannot be read: it is not UTF-8 ({error.reason} at byte {error.start})") from None


def read_json(path: str | os.PathLike[str], largest: int = LARGEST_JSON, *, finite: bool = False) -> Any:
    """The value that a JSON file holds; `finite`: without NaN and Infinity, which JSON does not have."""
    return parse_json(read_text(path, largest), path, finite=finite)


def read_object(path: str | os.PathLike[str], largest: int = LARGEST_JSON) -> dict[str, Any]:
    """The object that a JSON file holds."""
    value = read_json(path, largest)
    if not isinstance(value, dict):
        raise UserError(f"{path} is damaged: it holds {_article(value)}, not an object")
    return value


def read_object_or_empty(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object that a JSON file holds; an empty one where it cannot be read."""
    try:
        return read_object(path)
    except UserError:
        return {}


def parse_json(text: str | bytes, name: object, *, finite: bool = False) -> Any:
    """The value of a JSON text; `name` is the file that an error names."""
    try:
        value = json.loads(text, parse_int=_integer, parse_constant=_refuse if finite else None)
    except RecursionError:
        raise UserError(f"{name} is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also: bytes that are not UTF-8, and a number of more digits than Python reads
        raise UserError(f"{name} is not JSON: {reason(error)}") from None
    _check_depth(value, name)
    return value


def reason(error: BaseException) -> str:
    """Why a file could not be read, without the path and the number that Python adds."""
    if isinstance(error, OSError) and error.errno is not None:
        return REASONS.get(error.errno, error.strerror or type(error).__name__)
    said = next(iter(str(error).splitlines()), "") or type(error).__name__
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]} …"


@contextmanager
def foreign_error(what: str) -> Iterator[None]:
    """What a library raises over a foreign file, as a UserError: "`what`: reason".

    A panic of a library written in Rust is a BaseException, and must not pass for an interrupt.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"{what}: {reason(error)}") from None


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Drop what a library in Rust prints on standard error when it panics; anything else is printed afterwards."""
    _flush_errors()
    try:
        kept = os.dup(2)
    except OSError:  # no standard error
        yield
        return
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 2)
        try:
            yield
        finally:
            _flush_errors()
            os.dup2(kept, 2)
            os.close(kept)
            printed.seek(0)
            if (content := printed.read()) and b" panicked at " not in content:
                with suppress(OSError):
                    os.write(2, content)


def _flush_errors() -> None:
    if sys.stderr is not None:  # None: the caller closed it
        with suppress(OSError):
            sys.stderr.flush()


def _check(status: os.stat_result, path: object, largest: int | None) -> None:
    for is_kind, kind in KINDS:
        if is_kind(status.st_mode):
            raise UserError(f"{path} is {kind}, not a file")
    if largest is not None and status.st_size > largest:
        raise _too_large(path, status.st_size, largest)


def _too_large(path: object, size: int, largest: int) -> UserError:
    return UserError(f"{path} is too large: it has {size:,} bytes, and at most {largest:,} are read")


def _check_depth(value: Any, name: object) -> None:
    level, depth = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        depth += 1
        if depth > DEEPEST:
            raise UserError(f"{name} is not JSON that can be read: it is nested more than {DEEPEST} levels deep")
        level = [part for one in level for part in (one.values() if isinstance(one, dict) else one)]


def _integer(digits: str) -> int | float:
    if len(digits) > DIGITS:
        raise ValueError(f"found a whole number of {len(digits.lstrip('-')):,} digits; at most {DIGITS} are read")
    value = int(digits)
    return value if value in INTEGERS else float(value)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _article(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
