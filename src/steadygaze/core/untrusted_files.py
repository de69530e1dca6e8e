"""Read untrusted files: regular files only, of a limited size, without running code.

Every reader of a user's file uses this module.  Errors become a UserError of one sentence.  Nothing is read or
allocated before the kind and the size of the file are known.  SHA-256 digests, in hexadecimal, identify contents.
"""

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError

LARGEST_JSON = 64 << 20
"""Maximum bytes of a JSON file of settings."""
LARGEST_TEXT = 512 << 20
"""Maximum bytes of a text file: a tokenizer, a page, the JSON of a report."""
DEEPEST = 64
"""Maximum nesting of a JSON document."""
INTEGERS = range(-(1 << 63), 1 << 63)
"""Integers of a JSON document; larger ones become floats, as in most JSON readers."""
DIGITS = 300
"""Maximum digits of an integer."""
LONGEST_REASON = 200
"""Maximum characters of a library's message."""
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
    """Return the absolute path without links; raise for a loop of links."""
    try:
        resolved = Path(path).resolve()
        if _is_loop(resolved):  # from Python 3.13 on, resolve() leaves a loop as it is
            raise OSError(errno.ELOOP, "a loop")
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a loop, in Python 3.11 and 3.12
        raise UserError(f"{path} cannot be resolved: its symbolic links form a loop, or its name is invalid") from None
    return resolved


def _is_loop(path: Path) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


@contextmanager
def open_file(path: str | os.PathLike[str], largest: int | None = None) -> Iterator[BufferedReader]:
    """Open a regular file for reading; never block on a pipe or read a device."""
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
    """Check a file and return its size; for libraries that open files by name."""
    with open_file(path, largest) as file:
        return os.fstat(file.fileno()).st_size


def arrow_path(path: str | os.PathLike[str]) -> str:
    """Return the name of a regular file for the Arrow library, which needs UTF-8."""
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
    """Read a UTF-8 file."""
    return decode(read_bytes(path, largest), path)


def decode(content: bytes, name: object) -> str:
    """Decode UTF-8; errors name the file `name`."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} cannot be read: it is not UTF-8 ({error.reason} at byte {error.start})") from None


def read_json(path: str | os.PathLike[str], largest: int = LARGEST_JSON, *, finite: bool = False) -> Any:
    """Return the value of a JSON file; `finite`: raise for NaN and Infinity, which are not JSON."""
    return parse_json(read_text(path, largest), path, finite=finite)


def read_object(path: str | os.PathLike[str], largest: int = LARGEST_JSON) -> dict[str, Any]:
    """Return the object of a JSON file."""
    value = read_json(path, largest)
    if not isinstance(value, dict):
        raise UserError(f"{path} is damaged: it contains {_article(value)}, not an object")
    return value


def read_object_or_empty(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the object of a JSON file, or an empty one if it cannot be read."""
    try:
        return read_object(path)
    except UserError:
        return {}


def parse_json(text: str | bytes, name: object, *, finite: bool = False) -> Any:
    """Parse JSON; errors name the file `name`."""
    try:
        value = json.loads(text, parse_int=_integer, parse_constant=_refuse if finite else None)
    except RecursionError:
        raise UserError(f"{name} is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # also: not UTF-8, or too many digits
        raise UserError(f"{name} is not JSON: {reason(error)}") from None
    _check_depth(value, name)
    return value


def reason(error: BaseException) -> str:
    """Return the reason of an error, without the path and the number that Python adds."""
    if isinstance(error, OSError) and error.errno is not None:
        return REASONS.get(error.errno, error.strerror or type(error).__name__)
    message = next(iter(str(error).splitlines()), "") or type(error).__name__
    return message if len(message) <= LONGEST_REASON else f"{message[:LONGEST_REASON]} …"


@contextmanager
def foreign_error(what: str) -> Iterator[None]:
    """Convert a library's errors about an untrusted file to a UserError: "`what`: reason".

    A panic of a Rust library is a BaseException and must be distinguished from an interrupt.
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
    """Hide the output of a panicking Rust library on standard error; print other output afterward."""
    _flush_errors()
    try:
        stderr = os.dup(2)
    except OSError:  # no standard error
        yield
        return
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 2)
        try:
            yield
        finally:
            _flush_errors()
            os.dup2(stderr, 2)
            os.close(stderr)
            output.seek(0)
            if (content := output.read()) and b" panicked at " not in content:
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
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > DEEPEST:
            raise UserError(f"{name} is not JSON that can be read: it is nested more than {DEEPEST} levels deep")
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]


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


def digest_json(values: Iterable[object], *, sort_keys: bool = False) -> str:
    """Digest of the JSON of each value, concatenated."""
    sha = hashlib.sha256()
    for value in values:
        sha.update(json.dumps(value, sort_keys=sort_keys).encode())
    return sha.hexdigest()


def digest_file(path: str | Path) -> str:
    """Digest of the content of a file."""
    with open_file(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def digest_values(*values: object) -> str:
    """Digest of texts, numbers and arrays, in this order."""
    import numpy as np

    sha = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            sha.update(f"{value.dtype.str}{value.shape}".encode())
            sha.update(np.ascontiguousarray(value).tobytes())
        else:
            sha.update(f"{value!r};".encode())
    return sha.hexdigest()


def limit_memory(most: int) -> None:
    """Limit the address space of this process, in bytes; Windows has no such limit."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
