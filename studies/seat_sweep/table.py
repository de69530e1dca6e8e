"""Models of the sweep, and their table."""

from collections import defaultdict
from pathlib import Path
from statistics import mean

from studies.tables import RECORDS, Records, markdown, read_records

SWEEP = RECORDS / "partial" / "seat-sweep-f8f96777.jsonl.gz"
"""A run that was not finished; one model a line after a header."""
SHIFT = "jensen-shannon/noise"
MEASURES = {"macro-F1": "macro-f1", "normalized entropy": "normalized-entropy", "JSD under noise": SHIFT}


def models_of(paths: list[Path]) -> Records:
    """One record per model, of files with one model a line or of the records of jobs."""
    return [model for record in read_records(paths) for model in record.get("models", [record]) if "row" in model]


def table(records: list[Path] = [SWEEP]) -> str:  # noqa: B006
    """Means over seeds by data set and settings."""
    groups: dict[tuple[str, str, str], Records] = defaultdict(list)
    for model in models_of(records):
        settings = ", ".join(f"{name}={value}" for name, value in model["settings"].items())
        groups[model["data"], model["row"], settings].append(model)
    lines = [
        [*key, str(len(models)), *(f"{mean(model[measure] for model in models):.4g}" for measure in MEASURES.values())]
        for key, models in groups.items()
    ]
    return markdown([["data set", "row", "settings", "seeds", *MEASURES], *lines])
