"""Records of bench/rationales.py by regime, aspect, setting and row; those of the repository are the default."""

from collections import defaultdict
from pathlib import Path

from rationales import CHOSEN, TUNED, tuned
from tables import Records, read_records

FILES = sorted((Path(__file__).parent / "records").glob("planted_reviews-*.jsonl.gz"))


class PlantedRecords:
    """Runs of each cell, ordered by seed."""

    def __init__(self, records: Records) -> None:
        self._rates = tuned(records, min(TUNED, 1 + max((record["seed"] for record in records), default=0)))
        self._cells: dict[tuple[str, str, str, str], Records] = defaultdict(list)
        for record in sorted(records, key=lambda record: record["seed"]):
            self._cells[record["regime"], record["aspect"], record["setting"], record["row"]].append(record)

    def of(self, aspect: str, setting: str, row: str, regime: str = CHOSEN, seeds: int | None = None) -> Records:
        """The runs of a row; `seeds`: only those of the first seeds."""
        runs = self._cells.get((regime, aspect, setting, row), [])
        return [run for run in runs if seeds is None or run["seed"] < seeds]

    def rate(self, aspect: str, setting: str, regime: str = CHOSEN) -> float:
        """RNP's learning rate with the best validation accuracy."""
        return float(self._rates[regime, aspect, setting].removeprefix("rnp-"))

    def rnp(self, aspect: str, setting: str, regime: str = CHOSEN, seeds: int | None = None) -> Records:
        """The runs of RNP at that rate; none if a rate was not tried with every seed."""
        return self.of(aspect, setting, self._rates.get((regime, aspect, setting), ""), regime, seeds)


def load(places: list[str] | None = None) -> PlantedRecords:
    """Of folders or files of records; none: those of the repository."""
    return PlantedRecords(read_records(places or map(str, FILES)))
