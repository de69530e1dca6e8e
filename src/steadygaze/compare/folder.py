"""Where a comparison is kept, so that it can be interrupted and go on.

order.json                             everything the numbers depend on: what goes on must be what was begun
cells/<technique>-<seed>/model/        a trained model; model.unfinished/ while it is being trained
cells/<technique>-<seed>/values.safetensors, report.json     its audit; with report.json, written last, it is done
seeds/<technique>.safetensors          how far the models of a technique are apart
.shelf/                                references and teachers, each trained once for all that need them
comparison.json, comparison.html       what came of it
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from steadygaze.atomic import new_file, write_text
from steadygaze.errors import UserError

Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Folder:
    path: Path

    @property
    def shelf(self) -> Path:
        return self.path / ".shelf"

    def cell(self, technique: str, seed: int) -> Path:
        return self.path / "cells" / f"{technique}-{seed}"

    def seeds(self, technique: str) -> Path:
        return self.path / "seeds" / f"{technique}.safetensors"

    def refuse_foreign(self) -> None:
        """It may be new, empty, or a comparison."""
        if self.path.is_file():
            raise UserError(f"{self.path} is a file; --out takes a folder")
        if self.path.is_dir() and any(self.path.iterdir()) and not self._order.is_file():
            raise UserError(f"{self.path} exists and is no comparison: it is left alone; name another folder")

    def begin(self, order: Mapping[str, Any]) -> None:
        """Writes down what is compared; where something was begun here before, it must have been the same."""
        now = json.loads(json.dumps(order))
        if self._order.is_file():
            self._same(now)
        else:
            write_text(self._order, json.dumps(now, indent=1) + "\n")

    @property
    def _order(self) -> Path:
        return self.path / "order.json"

    def _same(self, now: Mapping[str, Any]) -> None:
        try:
            before = json.loads(self._order.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{self._order} is damaged ({error}); name another folder") from None
        then, new = dict(_flat(before, "")), dict(_flat(now, ""))
        for key in [*new, *then]:
            if then.get(key) != new.get(key):
                raise UserError(
                    f"{self.path} holds a comparison with another {key}: {_said(then, key)}, now {_said(new, key)}.  "
                    "Ask for the same again to go on with it, or name another folder"
                )


def write_arrays(path: Path, arrays: Mapping[str, NDArray[np.float64]]) -> None:
    """Whole or not at all."""
    with new_file(path) as file:
        file.write_bytes(save({name: np.ascontiguousarray(one, np.float64) for name, one in arrays.items()}))


def read_arrays(path: Path) -> Arrays:
    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is damaged ({error}): delete {path.parent} to have it made again") from None


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """{"training": {"epochs": 8}} -> ("training.epochs", 8)"""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, part in value.items():
        yield from _flat(part, f"{name}.{key}" if name else key)


def _said(values: Mapping[str, Any], key: str) -> str:
    return f"{values[key]!r:.120}" if key in values else "none"
