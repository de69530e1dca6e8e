"""Right sentences and accuracy by learning rate: the table of docs/how-to/extract-rationales.md."""

from pathlib import Path
from statistics import mean

from steadygaze.core.rounding import percent
from studies.a2r_small.run import RATES
from studies.tables import RECORDS, read_records


def table(records: list[Path] = [RECORDS / "a2r_small.jsonl"]) -> str:  # noqa: B006
    """Mean over the seeds, and the values of single seeds."""
    runs = read_records(records)
    lines = ["| `generator_learning_rate` | right sentence | accuracy |", "|---|---|---|"]
    for rate, name in zip(RATES, ("1e-3", "1e-4 (default)"), strict=True):
        cells = []
        for field in ("right_sentence", "accuracy"):
            values = [record[field] for record in runs if record["rate"] == rate]
            singles = ", ".join(percent(value, 1).removesuffix(" %") for value in values)
            cells.append(f"{percent(mean(values), 1)} ({singles})")
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)
