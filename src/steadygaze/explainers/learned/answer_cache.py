"""What a black box said, kept on disk as it comes: a run that fails half-way loses nothing.

    identity.json    whose answers these are and to what; answers of another identity are never mixed in
    000000.npy …     lines (row, numbers …): all lines of an input in one file, which is written whole or not at all

Without a folder the same is kept in memory, for as long as the object lives.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.atomic_files import new_file, remove_named_leftovers, write_text
from steadygaze.core.errors import UserError
from steadygaze.core.settings import flat
from steadygaze.core.untrusted_files import foreign_error, open_file, read_object
from steadygaze.explainers.learned.selector import Rows

Lines = tuple[Rows, NDArray[np.float64]]
"""The input that each line belongs to (L,), and its numbers (L,V)."""
IDENTITY = "identity.json"
NUMBERED = "[0-9]" * 6 + "*.npy"
NAMES = r"identity\.json|[0-9]{6,}\.npy"
OTHERS = {
    "texts": "to other texts",
    "images": "to other images",
    "model": "of another black box, or of other weights of it",
    "classes": "of a black box with other classes",
}
"""What is said of answers that are kept for something else; all other keys are settings."""


class UnusableCache(UserError):
    """What is kept belongs to another fit, or is damaged."""


class AnswerCache:
    def __init__(self, folder: Path | None = None, identity: Mapping[str, Any] | None = None) -> None:
        """`identity`: all that the answers depend on, as JSON: a digest of the inputs, the black box, settings."""
        self.folder = folder
        self.identity: dict[str, Any] = json.loads(json.dumps(identity or {}))
        self._parts: list[NDArray[np.float64]] = []  # (L,1+V) each, in the order they came
        self._next = 0
        if folder is not None and folder.exists():
            self._open(folder)

    def part(self, name: str, **more: Any) -> "AnswerCache":
        """A place of its own for each kind of answer, which may depend on more."""
        return AnswerCache(None if self.folder is None else self.folder / name, {**self.identity, **more})

    @property
    def width(self) -> int | None:
        """Numbers in a line; None where there is no line yet."""
        return self._parts[0].shape[1] - 1 if self._parts else None

    def missing(self, many: int) -> Rows:
        """Those of `many` inputs of which nothing is kept."""
        there = np.zeros(many, np.bool_)
        for part in self._parts:
            rows = part[:, 0].astype(np.int64)
            if (rows != part[:, 0]).any() or (rows < 0).any() or (rows >= many).any():
                raise UserError(f"{self.folder} is damaged: it holds answers about more than {many:,} inputs")
            there[rows] = True
        return np.flatnonzero(~there)

    def add(self, rows: Rows, numbers: NDArray[np.float64]) -> None:
        """All lines of some inputs.  (L,), (L,V)"""
        if not len(rows):
            return
        lines = np.column_stack([rows.astype(np.float64), numbers.astype(np.float64)])
        if self.folder is not None:
            self._write(self.folder, lines)
        self._parts.append(lines)

    def lines(self) -> Lines:
        """Everything kept, by input; the lines of one in the order they were given.  (L,), (L,V)"""
        whole = np.concatenate(self._parts) if self._parts else np.zeros((0, 1))
        rows = whole[:, 0].astype(np.int64)
        order = np.argsort(rows, kind="stable")
        return rows[order], whole[order, 1:]

    def _write(self, folder: Path, lines: NDArray[np.float64]) -> None:
        try:
            if not self._next:
                write_text(folder / IDENTITY, json.dumps(self.identity, indent=1, sort_keys=True))
            with new_file(folder / f"{self._next:06d}.npy") as path, path.open("wb") as file:
                np.save(file, lines, allow_pickle=False)
        except OSError as error:
            raise UserError(f"could not keep what the black box said in {folder}: {error}") from None
        self._next += 1

    def _open(self, folder: Path) -> None:
        """What is there already; a folder of anything else is left alone."""
        if not (folder / IDENTITY).is_file():
            if not folder.is_dir() or any(map(_strange, folder.iterdir())):
                raise UserError(f"{folder} holds something else than a black box's answers; name a new folder, or none")
            return
        self._same(folder)
        remove_named_leftovers(folder, NAMES)
        seen: set[float] = set()
        for file in sorted(folder.glob(NUMBERED), key=lambda file: int(file.stem)):
            lines = _read(file, self.width)
            here = set(lines[:, 0].tolist())
            if twice := here & seen:  # two runs at once may both have asked
                lines = lines[~np.isin(lines[:, 0], list(twice))]
            seen |= here
            self._parts += [lines] if len(lines) else []
            self._next = int(file.stem) + 1

    def _same(self, folder: Path) -> None:
        try:
            then = dict(flat(read_object(folder / IDENTITY)))
        except UserError as error:
            raise UnusableCache(f"{error}; delete {folder} to start over") from None
        now = dict(flat(self.identity))
        for key in sorted({*now, *then}):
            if now.get(key) != then.get(key):
                usual = f"for {key} = {then.get(key)!r:.80}, and it is {now.get(key)!r:.80} now"
                raise UnusableCache(
                    f"{folder} keeps answers {OTHERS.get(key, usual)}.  "
                    "Go on with the same data, black box and settings, or name another folder."
                )


def digest(*parts: object) -> str:
    """SHA-256 of texts, numbers and arrays, in this order."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(f"{part!r};".encode())
    return found.hexdigest()


def _strange(entry: Path) -> bool:
    """Neither a part, which is a folder, nor a file that had not got its name."""
    return entry.is_file() and not entry.name.endswith(".tmp")


def _read(file: Path, width: int | None) -> NDArray[np.float64]:
    try:
        with foreign_error("it cannot be read"), open_file(file) as opened:
            lines: NDArray[np.float64] = np.load(opened, allow_pickle=False)
        if lines.dtype != np.float64 or lines.ndim != 2 or width not in (None, lines.shape[1] - 1):
            raise UserError(f"it holds {lines.dtype} of shape {lines.shape}")
        if not np.isfinite(lines).all():
            raise UserError("some of its numbers are not finite")
    except UserError as error:
        raise UnusableCache(f"{file} is damaged ({error}); without that file only its part is asked again") from None
    return lines
