"""Records of the study by regime, aspect, setting and row; by default those of the repository."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from studies.rationales.plan import MAIN_REGIME, TUNING_SEEDS, selected_rows
from studies.tables import RECORDS, Records, read_records

FILES = sorted(RECORDS.glob("planted_reviews-*.jsonl.gz"))


class PlantedRecords:
    """Runs of each cell, ordered by seed."""

    def __init__(self, records: Records) -> None:
        self._selected = selected_rows(
            records, min(TUNING_SEEDS, 1 + max((record["seed"] for record in records), default=0))
        )
        self._cells: dict[tuple[str, str, str, str], Records] = defaultdict(list)
        for record in sorted(records, key=lambda record: record["seed"]):
            self._cells[record["regime"], record["aspect"], record["setting"], record["row"]].append(record)

    def of(self, aspect: str, setting: str, row: str, regime: str = MAIN_REGIME, seeds: int | None = None) -> Records:
        """The runs of a row; `seeds`: only those of the first seeds."""
        runs = self._cells.get((regime, aspect, setting, row), [])
        return [run for run in runs if seeds is None or run["seed"] < seeds]

    def rate(self, aspect: str, setting: str, regime: str = MAIN_REGIME) -> float:
        """RNP's learning rate with the best validation accuracy."""
        return float(self._selected[regime, aspect, setting].removeprefix("rnp-"))

    def rnp(self, aspect: str, setting: str, regime: str = MAIN_REGIME, seeds: int | None = None) -> Records:
        """The runs of RNP at that rate; none if a rate lacks a seed."""
        return self.of(aspect, setting, self._selected.get((regime, aspect, setting), ""), regime, seeds)


def load(paths: Iterable[Path | str] = ()) -> PlantedRecords:
    """Read folders or files of records; by default those of the repository."""
    return PlantedRecords(read_records(paths or FILES))
