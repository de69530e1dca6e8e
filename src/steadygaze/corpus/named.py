"""Named: a published set, read from the data folder or else from the hub.

On disk a set is `<name>/<split>.parquet` in the folder --data-dir or $STEADYGAZE_DATA.  Rows keep their order (the
trainer shuffles).  Rows without text or label are left out and counted.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import parquet

from steadygaze.corpus.corpus import Corpus
from steadygaze.corpus.hub import SAME, Hub, fetch
from steadygaze.corpus.rows import Layout
from steadygaze.corpus.table import require
from steadygaze.errors import UserError
from steadygaze.foreign_files import arrow_path, third_party
from steadygaze.types import Example


@dataclass(frozen=True)
class Named:
    """One published set."""

    about: str
    disk: Layout
    hub: Hub
    hub_layout: Layout | None = None
    """Where it is not the layout on disk."""
    files: Mapping[str, str] = field(default_factory=lambda: SAME)
    """Our split -> the name of its file."""
    validation_from: Callable[[Sequence[Example]], int] | None = None
    """Where in train a validation split begins, for a set that has none and whose rows are not independent."""

    def load(self, name: str, options: Mapping[str, Any], data_dir: Path | None, seed: int) -> Corpus:
        """From the data folder if it is there, else from the hub; a published set has no options and no seed."""
        if options:
            raise UserError(f"{name} takes no options; found {', '.join(options)}.")
        folder = _folder(name, data_dir)
        if folder is None:
            layout, tables, source = self.hub_layout or self.disk, fetch(self.hub, name), "hub"
        else:
            layout, tables, source = self.disk, self._read(folder), "disk"
        dropped: Counter[str] = Counter()
        splits = {}
        for split, table in tables.items():
            require(layout.columns, list(table), f"{name}, {split} split")
            splits[split] = layout.read(table, dropped)
        return Corpus(name, self._with_validation(splits), dict(dropped), source)

    def _with_validation(self, splits: dict[str, list[Example]]) -> dict[str, list[Example]]:
        if self.validation_from is None or "train" not in splits or "validation" in splits:
            return splits
        train = splits["train"]
        begin = self.validation_from(train)
        if begin == len(train):
            return splits
        return {"train": train[:begin], "validation": train[begin:]} | {s: splits[s] for s in splits if s != "train"}

    def _read(self, folder: Path) -> dict[str, dict[str, list[Any]]]:
        files = {split: folder / f"{stem}.parquet" for split, stem in self.files.items()}
        there = {split: arrow_path(file) for split, file in files.items() if file.exists()}
        with third_party(f"{folder} cannot be read as parquet"):
            tables = {split: parquet.read_table(file).to_pydict() for split, file in there.items()}
        if not tables:
            raise UserError(f"{folder} holds none of {', '.join(file.name for file in files.values())}.")
        return tables


def _folder(name: str, data_dir: Path | None) -> Path | None:
    """The set's folder in the data folder, if there is one."""
    base = data_dir if data_dir is not None else os.environ.get("STEADYGAZE_DATA")
    if not base:
        return None
    if not Path(base).is_dir():
        raise UserError(f"there is no data folder {base}.")
    folder = Path(base) / name
    return folder if folder.is_dir() else None
