"""Teacher cache: trained teachers and references, kept for the next run that needs them.

Each file is named by the SHA-256 of everything that determines its weights.  A cached teacher therefore equals the
teacher that training would produce, bit for bit.  A damaged file is ignored.
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
    """Everything that determines the weights except technique and seed, as JSON."""

    def get(self, key: dict[str, Any]) -> Entry | None:
        file = self._file(key)
        try:
            history = read_metadata(file, "history")
            return (read_tensors(file), history) if are_records(history) else None
        except UserError:
            return None

    def put(self, key: dict[str, Any], weights: dict[str, Tensor], history: list[dict[str, Any]]) -> str | None:
        """Write an entry; the reason if that fails.  Runs that end with the same weights write the same file."""
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
