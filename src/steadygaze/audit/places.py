"""Where models and data lie, as evidence writes it down: seen from its own place, without the folders of a machine.

A path that is kept begins with a dot, ./model or ../data/test.csv, which no hub id and no name of a corpus does.
"""

import os
import posixpath
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.corpus import CORPORA
from steadygaze.corpus.bias import divided
from steadygaze.errors import UserError
from steadygaze.foreign_files import resolve

PASS = {
    "model": "MODEL",
    "data": "--data DATA",
    "train": "--train DATA",
    "synonyms": "--synonyms FILE",
    "seeds": "--seeds MODEL",
}
"""Setting that may be a path, or several -> how the command line takes it."""
DATA = ("data", "train")
"""Of these a name that a corpus has is that corpus, and no file."""


def kept(word: str, base: Path) -> str:
    """From `base` if it is there, or if both are in the folder that we work in; its name alone otherwise."""
    path, base, here = (resolve(os.path.expanduser(one)) for one in (word, base, Path.cwd()))
    if not path.is_relative_to(base) and not (path.is_relative_to(here) and base.is_relative_to(here)):
        return f"./{path.name}"
    return _dotted(Path(os.path.relpath(path, base)).as_posix())


def settings(asked: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """What an audit was asked, its paths kept."""
    paths = [name for name in PASS if asked.get(name)]
    return {**asked, **{name: _each(asked[name], partial(_keep, name, base)) for name in paths}}


def _keep(name: str, base: Path, word: str) -> str:
    before, path = _parted(word)
    corpus = name in DATA and path.partition(":")[0] in CORPORA
    return before + kept(path, base) if not corpus and Path(os.path.expanduser(path)).exists() else word


def _parted(word: str) -> tuple[str, str]:
    """What is to be done to a corpus, with its colon, and where that lies."""
    before, path = divided(word)
    return (f"{before}:" if before else ""), path


def found(asked: Mapping[str, Any], evidence: Path) -> dict[str, Any]:
    """The same settings, their paths where the files lie now: seen from the evidence, or from where we work."""
    paths = [name for name in PASS if asked.get(name)]
    return {**asked, **{name: _each(asked[name], partial(_look, name, evidence)) for name in paths}}


def canonical(recorded: Mapping[str, Any], evidence: Path) -> dict[str, Any]:
    """The paths among recorded settings as an audit writes them: a bundle that has them otherwise was changed."""
    paths = [name for name in PASS if recorded.get(name)]
    return {name: _each(recorded[name], partial(_write, name, evidence)) for name in paths}


def _write(name: str, evidence: Path, word: str) -> str:
    before, path = _parted(word)
    if not path.startswith("."):
        return _keep(name, evidence.absolute().parent, word)
    return before + _dotted(posixpath.normpath(path))


def _dotted(path: str) -> str:
    return path if path.startswith("..") else f"./{path}"


def _look(name: str, evidence: Path, word: str) -> str:
    before, path = _parted(word)
    if not path.startswith("."):
        return word  # a hub id, or the name of a corpus
    places = [os.path.normpath(base / path) for base in (evidence.absolute().parent, Path.cwd())]
    for place in places:
        if os.path.exists(place):
            return before + place
    tried = " nor ".join(dict.fromkeys(places))
    raise UserError(
        f"{evidence}, {name}: there is nothing at {tried}; say where it lies now, with {PASS[name]} beside --verify"
    )


def _each(value: Any, change: Callable[[str], str]) -> Any:
    return change(value) if isinstance(value, str) else tuple(map(change, value))
