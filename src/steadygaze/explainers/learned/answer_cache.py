"""Cache of a black box's answers, written during a run: a failed run can resume.

    identity.json    the black box, inputs and settings of the answers; other answers are refused
    000000.npy …     lines (row, numbers …): all lines of an input in one file, written atomically

Without a folder the cache is in memory.
"""

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
from steadygaze.explainers.learned.l2x import Rows

Lines = tuple[Rows, NDArray[np.float64]]
"""The input that each line belongs to (L,), and its numbers (L,V)."""
IDENTITY = "identity.json"
NUMBERED = "[0-9]" * 6 + "*.npy"
NAMES = r"identity\.json|[0-9]{6,}\.npy"
IDENTITY_PROBLEMS = {
    "texts": "to other texts",
    "images": "to other images",
    "model": "of another black box, or of other weights of it",
    "classes": "of a black box with other classes",
}
"""Messages for answers with another identity; all other keys are settings."""


class UnusableCache(UserError):
    """The cache belongs to another fit, or is damaged."""


class AnswerCache:
    def __init__(self, folder: Path | None = None, identity: Mapping[str, Any] | None = None) -> None:
        """`identity`: everything that determines the answers, as JSON: digest of the inputs, black box, settings."""
        self.folder = folder
        self.identity: dict[str, Any] = json.loads(json.dumps(identity or {}))
        self._parts: list[NDArray[np.float64]] = []  # (L,1+V) each, in order of arrival
        self._next = 0
        if folder is not None and folder.exists():
            self._open(folder)

    def part(self, name: str, **identity: Any) -> "AnswerCache":
        """A separate cache for one kind of answers, with further keys in its identity."""
        return AnswerCache(None if self.folder is None else self.folder / name, {**self.identity, **identity})

    @property
    def width(self) -> int | None:
        """Numbers per line; None: no line yet."""
        return self._parts[0].shape[1] - 1 if self._parts else None

    def missing(self, count: int) -> Rows:
        """Rows of `count` inputs without cached answers."""
        cached = np.zeros(count, np.bool_)
        for part in self._parts:
            rows = part[:, 0].astype(np.int64)
            if (rows != part[:, 0]).any() or (rows < 0).any() or (rows >= count).any():
                raise UserError(
                    f"{self.folder} is damaged: it has answers for more than {count:,} inputs; delete it to start over"
                )
            cached[rows] = True
        return np.flatnonzero(~cached)

    def add(self, rows: Rows, numbers: NDArray[np.float64]) -> None:
        """All lines of some inputs.  (L,), (L,V)"""
        if not len(rows):
            return
        lines = np.column_stack([rows.astype(np.float64), numbers.astype(np.float64)])
        if self.folder is not None:
            self._write(self.folder, lines)
        self._parts.append(lines)

    def lines(self) -> Lines:
        """All lines, sorted by input; lines of one input keep their order.  (L,), (L,V)"""
        lines = np.concatenate(self._parts) if self._parts else np.zeros((0, 1))
        rows = lines[:, 0].astype(np.int64)
        order = np.argsort(rows, kind="stable")
        return rows[order], lines[order, 1:]

    def _write(self, folder: Path, lines: NDArray[np.float64]) -> None:
        try:
            if not self._next:
                write_text(folder / IDENTITY, json.dumps(self.identity, indent=1, sort_keys=True))
            with new_file(folder / f"{self._next:06d}.npy") as path, path.open("wb") as file:
                np.save(file, lines, allow_pickle=False)
        except OSError as error:
            raise UserError(f"could not write the black box's answers to {folder}: {error}") from None
        self._next += 1

    def _open(self, folder: Path) -> None:
        """Read existing answers; refuse a folder with other files."""
        if not (folder / IDENTITY).is_file():
            if not folder.is_dir() or any(map(_is_foreign, folder.iterdir())):
                raise UserError(
                    f"{folder} contains other files than a black box's answers; choose a new folder, or none"
                )
            return
        self._check_identity(folder)
        remove_named_leftovers(folder, NAMES)
        cached_rows: set[float] = set()
        for file in sorted(folder.glob(NUMBERED), key=lambda file: int(file.stem)):
            lines = _read(file, self.width)
            rows = set(lines[:, 0].tolist())
            if duplicates := rows & cached_rows:  # two concurrent runs may both have queried
                lines = lines[~np.isin(lines[:, 0], list(duplicates))]
            cached_rows |= rows
            self._parts += [lines] if len(lines) else []
            self._next = int(file.stem) + 1

    def _check_identity(self, folder: Path) -> None:
        try:
            then = dict(flat(read_object(folder / IDENTITY)))
        except UserError as error:
            raise UnusableCache(f"{error}; delete {folder} to start over") from None
        now = dict(flat(self.identity))
        for key in sorted({*now, *then}):
            if now.get(key) != then.get(key):
                default = f"for {key} = {then.get(key)!r:.80}, and it is {now.get(key)!r:.80} now"
                raise UnusableCache(
                    f"{folder} has answers {IDENTITY_PROBLEMS.get(key, default)}.  "
                    "Resume with the same data, black box and settings, or choose another folder."
                )


def _is_foreign(entry: Path) -> bool:
    """True for a file that is not a temporary file; parts are folders."""
    return entry.is_file() and not entry.name.endswith(".tmp")


def _read(file: Path, width: int | None) -> NDArray[np.float64]:
    try:
        with foreign_error("it is unreadable"), open_file(file) as opened:
            lines: NDArray[np.float64] = np.load(opened, allow_pickle=False)
        if lines.dtype != np.float64 or lines.ndim != 2 or width not in (None, lines.shape[1] - 1):
            raise UserError(f"it contains {lines.dtype} of shape {lines.shape}")
        if not np.isfinite(lines).all():
            raise UserError("it contains NaN or infinity")
    except UserError as error:
        raise UnusableCache(f"{file} is damaged ({error}); delete the file to query its inputs again") from None
    return lines
