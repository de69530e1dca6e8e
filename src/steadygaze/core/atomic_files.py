"""Atomic writes of files and folders: a temporary sibling first, then a rename.

    .<name>.<id>.tmp    a folder in which <name> is written, locked by its process
    .<name>.<id>.old    the replaced folder, while it is deleted

A killed process leaves them behind.  The next process that writes `<name>` deletes them if it can lock them: a live
process has locked its own.  They stay on a file system without locks.  Between the two renames of a replaced folder,
both exist and `<name>` does not: `recover_folder` then finishes the replacement.  An .old without a .tmp is never
restored: it was replaced, and can be half deleted.

NFS locks only files that are open for writing, so no folders.  There a file .<name>.lock next to <name> is locked, and
deleted with the lock.  Windows has no locks, and leftovers stay.
"""

import errno
import os
import re
import shutil
import uuid
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout, has_fcntl, lock_descriptor

from steadygaze.core.errors import LockWarning, RecoveryWarning, UserError

Kind = Literal["tmp", "old"]
Lock = Literal["locked", "busy", "unsupported"]
"""Locked here; locked by another process, missing or not readable; not supported by the file system."""
RECOVERED = "a process was killed while it replaced {}: the replacement was complete and has been restored"
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk."""


class FolderBusy(UserError):
    """Another process works in the folder."""


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Provide a temporary path; rename it to `path` if the block succeeds, or delete it."""
    path = path.absolute()
    with _temporary(path) as folder:
        file = folder / path.name  # libraries can use other names in this folder first
        yield file
        _set_mode(file, folder)
        _flush(file)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{path} is not a regular file and cannot be replaced")
        os.replace(file, path)
    _flush(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Provide a temporary folder; rename it to `path` if the block succeeds, or delete it."""
    path = path.absolute()
    with _temporary(path) as folder:
        yield folder
        for part in (*folder.rglob("*"), folder):
            _set_mode(part, folder)
            _flush(part)
        if path.is_symlink():
            raise OSError(f"{path} is a symbolic link and cannot be replaced")
        _replace(folder, path)
    _flush(path.parent)


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """Provide a locked folder next to a path; delete it at the end.  The error of a full disk names the path."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        with _locked_sibling(path) as folder:
            try:
                yield folder
            finally:
                if not folder.with_suffix(".old").exists():  # otherwise restoring failed: keep both
                    shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        if error.errno in NO_SPACE and (error.filename is None or f".{path.name}." in str(error.filename)):
            error.filename = str(path)
        raise


@contextmanager
def _locked_sibling(path: Path) -> Iterator[Path]:
    """Make a locked folder; retry if another process deletes it before it is locked."""
    while True:
        folder = _sibling(path, "tmp")
        folder.mkdir()
        with try_lock(folder) as lock:
            if lock != "busy" and folder.exists():
                yield folder
                return


def _sibling(path: Path, kind: Kind) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{kind}")


def _replace(new: Path, path: Path) -> None:
    """Rename a folder over another: rename the old one first, and restore it on failure."""
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
    """Delete a folder atomically: rename it first."""
    aside = _sibling(folder.absolute(), "old")
    with suppress(FileNotFoundError):
        os.replace(folder, aside)
    shutil.rmtree(aside, ignore_errors=True)


def recover_folder(path: Path) -> None:
    """Finish a replacement if its process was killed between the two renames."""
    path = path.absolute()
    if os.path.lexists(path):
        return
    name = re.escape(path.name)
    olds = {entry.stem: entry for entry in _leftovers(path.parent, name, "old")}
    for new in [entry for entry in _leftovers(path.parent, name, "tmp") if entry.stem in olds]:
        with try_lock(new) as lock:
            if lock == "locked" and not os.path.lexists(path):
                os.replace(new, path)
                shutil.rmtree(olds[new.stem], ignore_errors=True)
                warnings.warn(RECOVERED.format(path), RecoveryWarning, stacklevel=3)


def remove_leftovers(path: Path) -> None:
    """Delete the leftovers of killed processes for `path`, after `recover_folder`."""
    path = path.absolute()
    recover_folder(path)
    remove_named_leftovers(path.parent, re.escape(path.name))


def remove_named_leftovers(folder: Path, names: str) -> None:
    """Delete the leftovers of all files of a folder whose names match a regular expression."""
    live = set()
    for entry in _leftovers(folder, names, "tmp"):
        with try_lock(entry) as lock:
            if lock == "locked":
                shutil.rmtree(entry, ignore_errors=True)
            else:
                live.add(entry.stem)
    for entry in _leftovers(folder, names, "old"):
        if entry.stem not in live:
            shutil.rmtree(entry, ignore_errors=True)


def _leftovers(folder: Path, names: str, kind: Kind) -> list[Path]:
    pattern = re.compile(rf"\.({names})\.[0-9a-f]{{8}}\.{kind}")
    try:
        entries = [folder / name for name in sorted(os.listdir(folder)) if pattern.fullmatch(name)]
    except OSError:
        return []
    return [entry for entry in entries if not entry.is_symlink()]


def unknown_entries(folder: Path, names: Collection[str]) -> list[str]:
    """Return the entries of a folder except files of these names and their leftovers."""
    return unmatched(folder, "|".join(map(re.escape, names)))


def unmatched(folder: Path, names: str) -> list[str]:
    """Return the entries of a folder whose names do not match a regular expression, except leftovers and locks."""
    leftovers = rf"\.({names})\.[0-9a-f]{{8}}\.(tmp|old)"
    ours = re.compile(rf"({names})|{leftovers}|\.({names}|{leftovers})\.lock")
    return sorted(name for name in os.listdir(folder) if not ours.fullmatch(name))


@contextmanager
def try_lock(path: Path, *, wait: bool = False) -> Iterator[Lock]:
    """Lock a file or folder inside the block; yield whether it is locked.  `wait`: until another process unlocks it."""
    if not has_fcntl:
        yield "unsupported"
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # missing, or not readable
        yield "busy"
        return
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        try:
            lock: Lock = "locked" if lock_descriptor(descriptor, blocking=wait) else "busy"
        except OSError:
            lock = stack.enter_context(_lock_beside(path, wait))
        yield lock


@contextmanager
def _lock_beside(path: Path, wait: bool) -> Iterator[Lock]:
    """Lock a file next to a path inside the block."""
    path = Path(os.path.realpath(path))  # one file for all links to a folder
    file = path.with_name(f".{path.name}.lock")
    is_new = not file.exists()
    lock = FileLock(file, timeout=-1 if wait else 0.1, poll_interval=0.01, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        yield "busy"
        return
    except OSError:  # a folder that cannot be written, or a file system without locks
        if is_new:
            file.unlink(missing_ok=True)
        yield "unsupported"
        return
    try:
        yield "locked"
    finally:
        with suppress(OSError):
            file.unlink()
        lock.release()


@cache
def _warn_without_lock(folder: Path) -> None:
    """Warn once for each folder."""
    message = f"{folder} cannot be locked on this file system: do not run two commands in it at the same time"
    warnings.warn(LockWarning(message), stacklevel=4)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file or folder inside the block; wait while another process has locked it."""
    with try_lock(path, wait=True) as lock:
        if lock != "locked":
            _warn_without_lock(path)
        yield


@contextmanager
def exclusive(folder: Path, work: str) -> Iterator[None]:
    """Lock a folder inside the block; raise FolderBusy if another process has locked it.

    The operating system releases the lock of a process that ends or is killed.
    """
    with try_lock(folder) as lock:
        if lock == "busy":
            process = f"process {owner}" if (owner := _lock_owner(folder)) else "another process"
            raise FolderBusy(f"{process} is {work} in {folder}: wait until it ends, or use another folder")
        if lock == "unsupported":
            _warn_without_lock(folder)
        yield


@contextmanager
def exclusive_output(folder: Path, work: str) -> Iterator[None]:
    """Make and lock the folder of an output inside the block; remove what was made here and stayed empty."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with exclusive(folder, work):
            yield
    finally:
        for path in new:
            with suppress(OSError):  # fails if it has content
                path.rmdir()


def _lock_owner(path: Path) -> str:
    """The process that has locked a path, from Linux's list of locks; '' if it is not known."""
    with suppress(OSError):
        inode = str(path.stat().st_ino)
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()  # 1: FLOCK ADVISORY WRITE 4711 fe:00:1173816 0 EOF
            if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
                return fields[4]
    return ""


def write_text(path: Path, text: str) -> None:
    """Write UTF-8; lone surrogates become question marks."""
    with new_file(path) as file:
        file.write_text(text, encoding="utf-8", errors="replace")


def _set_mode(path: Path, folder: Path) -> None:
    """Give a file the permissions of the umask, as its new folder has them: safetensors writes for the owner only."""
    if path.is_file():
        path.chmod(folder.stat().st_mode & 0o666)


def _flush(path: Path) -> None:
    """Flush to disk before a rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
