"""Rules for output paths, for every command and method that writes.

A file output is new, or it replaces a regular file with a mark of steadygaze.  Tables have no mark.  With `replace` it
may replace any regular file.  A folder output is new, empty or a folder of the same kind, which the code
that writes it checks.

`replace` never allows a symbolic link, a device, an input of the same command, or a path inside a model folder or an
audit bundle.  Symbolic links among the parents of a path are followed.

Two outputs of one command are separate: they differ, and none is inside another.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from itertools import permutations
from pathlib import Path

from steadygaze.core import arguments
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import open_file, resolve

GENERATOR = {"generator": "steadygaze"}
"""The first key of a JSON file: it marks the file as one that steadygaze wrote."""
MARKS = (
    re.compile(
        rb'<!doctype html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*'
        rb'<meta name="generator" content="steadygaze">'
    ),
    re.compile(rb'\{\s*"generator": "steadygaze"'),
    re.compile(rb"# Options of steadygaze "),
    re.compile(rb"\x89PNG.{20,60}tEXtSoftware\0steadygaze", re.DOTALL),
)
"""First bytes of files that steadygaze wrote: pages, JSON, options and pictures."""
HEAD = 4096
"""Bytes of a file that are read to find a mark."""
LONGEST_NAME = 255 - len("..unfinished.01234567.tmp")
"""Maximum bytes of a name: file systems allow 255, and temporary names are longer."""
PROTECTED = (("model", "config.json", "*.safetensors"), ("model", "config.json", "*.bin"))
BUNDLE = ("audit bundle", "manifest.json", "rows.jsonl")
"""Protected folders: the kind, and the files that identify it."""


def check_file(path: Path, inputs: Iterable[Path] = (), replace: bool = False) -> bool:
    """Raise if a path must not be written; return True if a file exists there."""
    mode = _check_common(path, inputs)
    if mode is None:
        return False
    if stat.S_ISDIR(mode):
        raise UserError(f"{path} is a folder; name a file")
    if not replace and not _is_own_output(path):
        raise UserError(f"{path} exists: --replace overwrites it, or name another file")
    return True


def check_folder(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise if no folder may be written at a path."""
    inputs = list(inputs)
    mode = _check_common(path, inputs)
    if mode is not None and not stat.S_ISDIR(mode):
        raise UserError(f"{path} is a file; name a folder")
    for source in inputs:
        if mode is not None and resolve(path) in resolve(source).parents:
            raise UserError(f"{path} contains {source}, an input of this command; name another folder for the output")


def check_new_folder(path: Path) -> None:
    """Raise if a folder must not be replaced as a whole, such as the working directory."""
    check_folder(path)
    here = Path.cwd()
    if path.resolve() in (here, *here.parents):
        raise UserError(
            f"{path} is the folder that the command runs in, and cannot be replaced; name a folder inside it"
        )


def check_separate(outputs: Mapping[str, Path]) -> None:
    """Raise if two outputs of a command are the same path, or one is inside the other."""
    for (name, path), (other, folder) in permutations(outputs.items(), 2):
        inner, outer = resolve(path), resolve(folder)
        if inner == outer or outer in inner.parents:
            where = "the same path as" if inner == outer else "inside"
            raise UserError(f"{name} {path} is {where} {other} {folder}; name separate paths")


def write_output(path: str | Path, text: str, replace: bool = False) -> None:
    """Write a text file if the rules allow it."""
    checked = arguments.path("path", path)
    check_file(checked, replace=replace)
    write_text(checked, text)


def _is_own_output(path: Path) -> bool:
    """Return True if a regular file has a mark of steadygaze, or if it is empty."""
    with open_file(path) as file:
        head = file.read(HEAD)
    return not head or any(mark.match(head) for mark in MARKS)


def _check_common(path: Path, inputs: Iterable[Path]) -> int | None:
    """Check the rules for files and folders; return the mode of the existing entry, or None."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be an output: {error}") from None
    if mode is not None and stat.S_ISLNK(mode):
        raise UserError(f"{path} is a symbolic link, and outputs do not follow links; name the path that it points to")
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path} is not a regular file; name another file for the output")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise UserError(f"the name of the output {path.name} is too long: at most {LONGEST_NAME} bytes are allowed")
    _check_parents(path)
    for source in inputs if mode is not None else ():
        _check_input(path, source)
    return mode


def _check_input(path: Path, source: Path) -> None:
    """Raise if an output is an input, or a file in a folder of inputs."""
    try:
        same = path.samefile(source)
        inside = source.is_dir() and resolve(source) in resolve(path).parents
    except (OSError, ValueError, RuntimeError):  # the input is not there: another check refuses it
        return
    if same or (inside and path.is_file() and not _is_own_output(path)):
        raise UserError(f"{path} is an input of this command; name another path for the output")


def _check_parents(path: Path) -> None:
    """Raise if the nearest existing folder is not writable, or if a parent is a model or a bundle."""
    whole = path.absolute()
    nearest = next((parent for parent in whole.parents if os.path.lexists(parent)), whole)
    if not nearest.is_dir():
        raise UserError(f"{path} cannot be written: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"{path} cannot be written: there is no permission to write in {nearest}")
    for parent in resolve(whole.parent).joinpath("file").parents:
        for kind, name, other in (*PROTECTED, BUNDLE):
            if (parent / name).is_file() and any(parent.glob(other)):
                raise UserError(f"{path} is inside the {kind} {parent}; name a path outside it")
