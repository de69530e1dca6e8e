"""Files and folders that are written whole or not at all: a temporary sibling first, then a rename."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; it takes its real name when the block ends well, and is removed when it does not."""
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    sibling = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield sibling
        _flush(sibling)
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise OSError(f"{path} is not a regular file, and is not replaced")
        os.replace(sibling, path)
    finally:
        sibling.unlink(missing_ok=True)
    _flush(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """The same for a folder.  One that already stands at `path` is replaced by renames, and is whole until then."""
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    sibling = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        sibling.mkdir()
        yield sibling
        for part in (*sibling.rglob("*"), sibling):
            _flush(part)
        if path.is_symlink():
            raise OSError(f"{path} is a symbolic link, and is not replaced")
        _replace(sibling, path)
    finally:
        shutil.rmtree(sibling, ignore_errors=True)
    _flush(path.parent)


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


def recover(path: Path) -> None:
    """A process killed between the two renames leaves the old folder under its other name: give it back its own."""
    left = list(path.absolute().parent.glob(f".{path.absolute().name}.????????.old"))
    if len(left) == 1 and not path.exists():
        os.replace(left[0], path)


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
