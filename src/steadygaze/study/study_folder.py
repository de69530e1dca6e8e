"""The folder of a comparison, from which it can be resumed.

settings.json                          everything that the scores depend on
cells/<technique>-<seed>/model/        a trained model; model.unfinished/ during training
cells/<technique>-<seed>/values.safetensors, report.json     its audit
cells/<technique>-seeds/values.safetensors                   divergence between the seeds of a technique
cells/<name>/record.json               key, status and digests of a cell; written last
.teacher-cache/                        references and teachers, each trained once
comparison.json, comparison.html       the result
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save

from steadygaze.core.atomic_files import (
    locked,
    new_file,
    remove_leftovers,
    remove_named_leftovers,
    unknown_entries,
    write_text,
)
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_file
from steadygaze.core.settings import difference
from steadygaze.core.tensor_files import read_tensors
from steadygaze.core.untrusted_files import read_object
from steadygaze.results.row import ValueKey

RESULT_FILES = r"[^/]+\.(safetensors|json)"
"""Files of cells."""
DATA_FILE = "data.jsonl"
"""The texts of a call in Python."""
RESULTS = {"comparison": ("comparison.json", "comparison.html"), "search": ("tuning.json", "tuning.html")}
"""Kind of a study -> its result files."""
SelectParts = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Mapping[str, Any], Mapping[str, Any]]]
Arrays = dict[ValueKey, NDArray[np.float64]]


@dataclass(frozen=True)
class StudyFolder:
    path: Path

    @property
    def teacher_cache(self) -> Path:
        return self.path / ".teacher-cache"

    def cell(self, technique: str, seed: int) -> Path:
        return self.path / "cells" / f"{technique}-{seed}"

    def seeds(self, technique: str) -> Path:
        return self.path / "cells" / f"{technique}-seeds"

    def refuse_foreign(self, kind: str = "comparison") -> None:
        """Refuse a folder that is neither new, empty nor a study of this kind."""
        if self.path.is_file():
            raise UserError(f"{self.path} is a file; --out takes a folder")
        if (
            self.path.is_dir()
            and not self._settings.is_file()
            and unknown_entries(self.path, [self._settings.name, DATA_FILE])
        ):
            raise UserError(f"{self.path} exists and is not a {kind}: name another folder")
        for result in RESULTS[kind]:
            check_file(self.path / result, replace=True)

    def begin(
        self, settings: Mapping[str, Any], kind: str = "comparison", must_equal: SelectParts = lambda *both: both
    ) -> None:
        """Write the settings; refuse those that do not match the folder.

        `must_equal`: returns the parts of the stored and of the new settings that must be equal; by default all.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):  # another driver can begin at the same time
            remove_leftovers(self._settings)
            for folder in (self.path / "cells").glob("*"):
                remove_named_leftovers(folder, RESULT_FILES)
            if self._settings.is_file():
                self._refuse_other(settings, kind, must_equal)
            else:
                write_text(self._settings, json.dumps(settings, indent=1) + "\n")

    @property
    def _settings(self) -> Path:
        return self.path / "settings.json"

    def _refuse_other(self, settings: Mapping[str, Any], kind: str, must_equal: SelectParts) -> None:
        """Refuse other settings; replace those that may differ."""
        try:
            stored = read_object(self._settings)
        except UserError as error:
            raise UserError(f"{error}; name another folder") from None
        if not difference(stored, settings):
            return
        try:
            parts = must_equal(stored, settings)
        except (KeyError, TypeError, AttributeError):  # damaged
            parts = stored, settings
        if changed := difference(*parts):
            raise UserError(
                f"{self.path} contains a {kind} with another {changed[0]}: {changed[1]}.  "
                "Use the same settings to continue it, or name another folder"
            )
        write_text(self._settings, json.dumps(settings, indent=1) + "\n")


def write_arrays(path: Path, arrays: Mapping[ValueKey, NDArray[np.float64]]) -> None:
    """Write arrays atomically."""
    with new_file(path) as file:
        file.write_bytes(save({str(key): np.ascontiguousarray(values, np.float64) for key, values in arrays.items()}))


def read_arrays(path: Path, texts: int | None = None) -> Arrays:
    """Read one value per text; NaN means not known."""
    try:
        tensors = read_tensors(path, finite=False)
    except UserError as error:
        raise UserError(f"{error}: delete {path.parent} and run the command again") from None
    for name, value in tensors.items():
        if value.dtype != torch.float64 or value.ndim != 1 or texts not in (None, len(value)):
            raise UserError(
                f"{path} is damaged: {name!r:.60} does not have one number in double precision for each text: "
                f"delete {path.parent} and run the command again"
            )
    return {ValueKey.parse(name): value.numpy() for name, value in tensors.items()}
