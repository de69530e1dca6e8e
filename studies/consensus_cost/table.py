"""Median training times, and their ratios to vanilla's of the same seed."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from studies.numbers import Number, Origin
from studies.tables import RECORDS, markdown, read_records

FILE = RECORDS / "consensus_cost.jsonl"


class Cost(NamedTuple):
    """Training time of a row: median of the seconds, and median, lowest and highest of the ratios to vanilla's."""

    device: str
    corpus: str
    row: str
    seeds: int
    seconds: float
    ratio: float
    low: float
    high: float


def costs(records: Sequence[dict[str, Any]]) -> list[Cost]:
    durations: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        durations[record["device"], record["corpus"], record["row"]][record["seed"]] = record["seconds"]
    lines = []
    for (device, corpus, row), times in durations.items():
        vanilla = durations[device, corpus, "vanilla"]
        ratios = [seconds / vanilla[seed] for seed, seconds in times.items() if seed in vanilla] or [float("nan")]
        spread = median(ratios), min(ratios), max(ratios)
        lines.append(Cost(device, corpus, row, len(times), median(times.values()), *spread))
    return lines


RUN = "python -m studies run consensus_cost --tables TABLES --data-dir DATA --glove FILE --out DIR --corpora sst2"
GPU = f"{RUN} --device cuda"
ORIGINS = {
    "cuda": Origin("0adf259f", GPU),
    "cpu": Origin("b6a1b8fe", f"{RUN} --limit 692 --seeds 1"),
    "cuda, commit db9835f": Origin("db9835f", f"{GPU} --rows 'vanilla,word-at,long student'"),
}
"""Runs whose numbers pages name."""


def numbers() -> list[Number]:
    """Seconds, and median, lowest and highest ratio to vanilla; of other runs with a prefix."""
    numbers = []
    for cost in costs(read_records([FILE])):
        if origin := ORIGINS.get(cost.device):
            prefix = {"cuda": "earlier.", "cpu": "cpu."}.get(cost.device, "")
            for name in ("seconds", "ratio", "low", "high"):
                numbers.append(
                    origin.number(f"{prefix}{name}.{cost.row.replace(' ', '-')}", getattr(cost, name), n=cost.seeds)
                )
    return numbers


def table(records: list[Path] = [FILE]) -> str:  # noqa: B006
    lines = [["device", "data", "row", "seeds", "seconds", "over vanilla"]]
    for cost in costs(read_records(records)):
        ratio = f"{cost.ratio:.2f} ({cost.low:.2f} to {cost.high:.2f})".replace("nan (nan to nan)", "–")
        lines.append([cost.device, cost.corpus, cost.row, str(cost.seeds), f"{cost.seconds:.1f}", ratio])
    return markdown(lines)
