"""Files and folders that are written whole or not at all: a temporary sibling first, then a rename.

    .<name>.<id>.tmp    a folder in which <name> is written, locked by its process until that is done
    .<name>.<id>.old    the folder that was replaced, while it is deleted

A process that is killed leaves them behind.  The next one that writes `<name>` deletes them, unless a live process
holds them.  Between the two renames of a replaced folder both exist and `<name>` does not: `recover` then finishes the
replacement.  A lone .old is never restored: it was replaced on purpose, and may be half deleted.
"""

import errno
import os
import re
import shutil
import uuid
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from steadygaze.core.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows: nothing is locked there, and leftovers stay
    LOCKS = False
else:
    LOCKS = True

Kind = Literal["tmp", "old"]
RECOVERED = "{} was being replaced when a process was killed: the replacement was complete and is in its place now"
BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
"""Another process holds the lock; any other error says that the file system has no locks."""


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; it takes its real name when the block ends well, and is removed when it does not."""
    path = path.absolute()
    with _temporary(path) as folder:
        file = folder / path.name  # a library may fill it under another name first: in this folder, that is swept too
        yield file
        _flush(file)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{path} is not a regular file, and is not replaced")
        os.replace(file, path)
    _flush(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """The same for a folder.  One that already stands at `path` is replaced by renames, and is whole until then."""
    path = path.absolute()
    with _temporary(path) as folder:
        yield folder
        for part in (*folder.rglob("*"), folder):
            _flush(part)
        if path.is_symlink():
            raise OSError(f"{path} is a symbolic link, and is not replaced")
        _replace(folder, path)
    _flush(path.parent)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A locked folder beside a path, deleted in the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    with _locked_sibling(path) as folder:
        try:
            yield folder
        finally:
            if not folder.with_suffix(".old").exists():  # else the old folder could not be put back: both are kept
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked_sibling(path: Path) -> Iterator[Path]:
    """A new folder that is locked.  Another process may sweep it before it is locked: then the next one is taken."""
    while True:
        folder = _sibling(path, "tmp")
        folder.mkdir()
        with is_locked(folder) as free:
            if (free or not LOCKS) and folder.exists():
                yield folder
                return


def _sibling(path: Path, kind: Kind) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{kind}")


def _replace(new: Path, path: Path) -> None:
    """A folder cannot be renamed over a full one, so the old one steps aside first, and back if that goes wrong."""
    old = new.with_suffix(".old")
    try:
        if path.exists():
            os.replace(path, old)
        os.replace(new, path)
    finally:
        if old.exists() and not path.exists():
            os.replace(old, path)
    shutil.rmtree(old, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Delete a folder at once, by a rename: a process killed while it deletes leaves no half of it under its name."""
    aside = _sibling(folder.absolute(), "old")
    with suppress(FileNotFoundError):
        os.replace(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def recover_folder(path: Path) -> None:
    """Finish the replacement of a folder by a process that was killed between the two renames."""
    path = path.absolute()
    if os.path.lexists(path):
        return
    name = re.escape(path.name)
    olds = {one.stem: one for one in _leftovers(path.parent, name, "old")}
    for new in [one for one in _leftovers(path.parent, name, "tmp") if one.stem in olds]:
        with is_locked(new) as free:
            if free and not os.path.lexists(path):
                os.replace(new, path)
                shutil.rmtree(olds[new.stem], ignore_errors=True)
                warnings.warn(RECOVERED.format(path), stacklevel=3)


def remove_leftovers(path: Path) -> None:
    """Delete what killed processes left of earlier attempts to write `path`, once `recover` has finished one."""
    path = path.absolute()
    recover_folder(path)
    remove_named_leftovers(path.parent, re.escape(path.name))


def remove_named_leftovers(folder: Path, names: str) -> None:
    """The same for all files of a folder whose names match a regular expression."""
    live = set()
    for one in _leftovers(folder, names, "tmp"):
        with is_locked(one) as free:
            if free:
                _delete(one)
            else:
                live.add(one.stem)
    for one in _leftovers(folder, names, "old"):
        if one.stem not in live:
            _delete(one)


def _leftovers(folder: Path, names: str, kind: Kind) -> list[Path]:
    wanted = re.compile(rf"\.({names})\.[0-9a-f]{{8}}\.{kind}")
    try:
        found = [folder / name for name in sorted(os.listdir(folder)) if wanted.fullmatch(name)]
    except OSError:
        return []
    return [one for one in found if not one.is_symlink()]


def unknown_entries(folder: Path, names: Collection[str]) -> list[str]:
    """What a folder holds beside files of these names and leftovers of them."""
    return unmatched(folder, "|".join(map(re.escape, names)))


def unmatched(folder: Path, names: str) -> list[str]:
    """The same for names that match a regular expression."""
    ours = re.compile(rf"({names})|\.({names})\.[0-9a-f]{{8}}\.(tmp|old)")
    return sorted(one for one in os.listdir(folder) if not ours.fullmatch(one))


def _delete(leftover: Path) -> None:
    if leftover.is_dir():
        shutil.rmtree(leftover, ignore_errors=True)
    else:  # of version 0.1.0, which wrote files without a folder
        with suppress(OSError):
            leftover.unlink()


@contextmanager
def is_locked(path: Path) -> Iterator[bool]:
    """Lock a file or folder; whether no other process holds it.  The lock ends with the block or the process."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # gone, or not ours to read
        yield False
        return
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    if not LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in BUSY
    return True


@contextmanager
def exclusive(folder: Path, work: str) -> Iterator[None]:
    """Keep other processes out of a folder while this one works in it."""
    with is_locked(folder) as free:
        if not free and LOCKS:
            raise UserError(f"another process is {work} in {folder}: wait until it ends, or name another folder")
        yield


def write_text(path: Path, text: str) -> None:
    """UTF-8.  A lone surrogate, which UTF-8 cannot hold, is written as a question mark."""
    with new_file(path) as file:
        file.write_text(text, encoding="utf-8", errors="replace")


def _flush(path: Path) -> None:
    """To the disk, so that a rename never outruns its content."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
