"""A private temporary folder of a server, locked while the server lives; those of dead servers are removed.

A killed server cannot delete the texts that users have uploaded.  The system releases a lock with its process, so that
a folder whose lock is free belongs to a dead one.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from filelock import lock_descriptor

PREFIX = "steadygaze-"
LOCK = ".lock"


class JobFolder:
    """A new folder with mode 0700."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        # The lock is held before it has its name: no other server may find it free.
        self._lock = os.open(self.path / f"{LOCK}.new", os.O_CREAT | os.O_RDWR, 0o600)
        if _is_locked(self._lock):
            os.rename(self.path / f"{LOCK}.new", self.path / LOCK)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # removed before
            os.close(self._lock)
            self._lock = -1


def remove_dead_folders() -> None:
    """Remove the folders of this user whose server was killed."""
    if not hasattr(os, "getuid"):  # a system without locks
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # not readable, or being removed by its server
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _is_locked(lock):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _is_locked(file: int) -> bool:
    """Lock a file without waiting; False: another process holds it, or the system has no locks."""
    try:
        return lock_descriptor(file, blocking=False)
    except OSError:
        return False
