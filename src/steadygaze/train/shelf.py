"""A shelf of finished models that are means to others: teachers and references, kept for the next run that needs them.

Each is a file named by the SHA-256 of all that determines its weights, so that a teacher taken from the shelf is the
teacher that would have been trained, bit for bit.  A file that is torn counts as not there.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from steadygaze.atomic import new_file, sweep_names, unmatched
from steadygaze.errors import UserError
from steadygaze.outputs import check_folder
from steadygaze.tensor_files import read_metadata, read_tensors
from steadygaze.train.state import are_records

ENTRY = r"[0-9a-f]{32}\.safetensors"
Entry = tuple[dict[str, Tensor], list[dict[str, Any]]]
"""Weights, and one record per epoch."""


def check_shelf(folder: Path) -> None:
    """Refuse a folder that is a link, is inside a model, or holds anything but teachers and references."""
    check_folder(folder)
    if folder.exists() and (others := unmatched(folder, ENTRY)):
        raise UserError(f"{folder} holds {others[0]!r}, which is not a teacher or a reference; name another folder")


@dataclass(frozen=True)
class Shelf:
    folder: Path
    identity: dict[str, Any]
    """All that determines the weights of whatever is trained here, but technique and seed.  JSON."""

    def get(self, key: dict[str, Any]) -> Entry | None:
        file = self._file(key)
        try:
            history = read_metadata(file, "history")
            return (read_tensors(file), history) if are_records(history) else None
        except UserError:
            return None

    def put(self, key: dict[str, Any], weights: dict[str, Tensor], history: list[dict[str, Any]]) -> str | None:
        """Whole or not at all, and then why not.  Of several runs that end in the same, each leaves the same."""
        try:
            check_shelf(self.folder)
            sweep_names(self.folder, ENTRY)
            with new_file(self._file(key)) as path:
                save_file(weights, path, metadata={"history": json.dumps(history)})
        except (OSError, SafetensorError, UserError) as error:
            return f"could not keep a finished model in {self.folder} for the next run: {error}"
        return None

    def _file(self, key: dict[str, Any]) -> Path:
        everything = json.dumps({**self.identity, "stage": key}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(everything.encode()).hexdigest()[:32]}.safetensors"
