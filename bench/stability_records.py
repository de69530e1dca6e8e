"""Records of bench/stability.py in the form that the repository keeps: needed fields, six significant digits.

    python bench/stability_records.py records.jsonl | gzip -9n > studies/records/stability-COMMIT.jsonl.gz

The first line has what all records share: commit, version, torch, device, seconds of all cells together.  The records
of the selection are a file of their own, of an earlier commit.
"""

import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stability_plan import SELECTION_PROBES

Record = dict[str, Any]
ORIGIN = ("commit", "version", "torch", "device")
OMITTED_FIELDS = {*ORIGIN, "seconds", "accuracy"}
SELECTION_FIELDS = {"id", "setting", "row", "seed", "phase", "config", "macro-f1"} | {
    f"jensen-shannon/{probe}" for probe in SELECTION_PROBES
}
DIGITS = 6
FOLDER = Path(__file__).parents[1] / "studies" / "records"
STUDY = FOLDER / "stability-db9835f.jsonl.gz"
SELECTION = FOLDER / "stability-selection-79c48bc.jsonl.gz"
"""Made once; later runs of the study reuse the selected settings."""


def compact(record: Record) -> Record:
    fields = SELECTION_FIELDS if record["phase"] == "select" else record.keys() - OMITTED_FIELDS
    kept = {name: _rounded(record[name]) for name in record if name in fields}
    if (record["row"], record["seed"]) != ("vanilla", 0):
        kept.pop("skipped", None)
    return {name: value for name, value in kept.items() if value not in (None, "", {})}


def header(records: Iterable[Record]) -> Record:
    """The fields that all records share; an error if the records are from different code."""
    records = list(records)
    shared = {name: sorted({str(record.get(name, "unknown")) for record in records}) for name in ORIGIN}
    if mixed := {name: values for name, values in shared.items() if len(values) > 1}:
        raise SystemExit(f"the records are of different runs: {mixed}")
    origin = {name: values[0] for name, values in shared.items()}
    return {**origin, "jobs": len(records), "seconds": round(sum(record.get("seconds", 0) for record in records))}


def read(file: Path) -> tuple[Record, list[Record]]:
    """The header and the records of a compact file."""
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()
    first, *rest = [json.loads(line) for line in text.splitlines()]
    return first, rest


def study_records() -> list[Record]:
    """The records of the study."""
    return read(STUDY)[1]


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main() -> None:
    lines = [json.loads(line) for file in sys.argv[1:] for line in Path(file).read_text().splitlines()]
    records = sorted({record["id"]: record for record in lines}.values(), key=lambda record: record["id"])
    for record in records:
        if "error" in record:
            print(f"failed: {record['id']}: {record['error'].strip().splitlines()[-1]}", file=sys.stderr)
    good = [record for record in records if "error" not in record]
    for record in (header(good), *map(compact, good)):
        print(json.dumps(record, separators=(",", ":")))


if __name__ == "__main__":
    main()
