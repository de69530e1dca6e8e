"""Records of the study: those that are checked in, and those of a new run."""

from functools import cache
from pathlib import Path
from typing import Any

from studies.tables import RECORDS, read_records

Record = dict[str, Any]
STUDY = RECORDS / "stability-db9835f.jsonl.gz"
SELECTION = RECORDS / "stability-selection-79c48bc.jsonl.gz"
"""Made once; later runs of the study reuse the selected settings."""
COMMIT, SELECTION_COMMIT = (file.name.removesuffix(".jsonl.gz").rpartition("-")[2] for file in (STUDY, SELECTION))


def read(path: Path) -> list[Record]:
    """The measures and comparisons of a file or folder; not its header, and not the jobs of training."""
    records = (record for record in read_records([path]) if "phase" in record and record.get("kind") != "train")
    return [record | {"phase": "seeds"} if record.get("kind") == "seeds" else record for record in records]


@cache
def study_records() -> list[Record]:
    return read(STUDY)
