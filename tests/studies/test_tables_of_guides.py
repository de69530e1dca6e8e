"""Tables of docs/how-to are those of the records."""

from collections import Counter
from pathlib import Path

from studies.a2r_small.table import table as a2r_table
from studies.interval_coverage.table import SHOWN
from studies.interval_coverage.table import table as coverage_table
from studies.tables import RECORDS, read_records

GUIDES = Path(__file__).parents[2] / "docs" / "how-to"


def test_a2r_on_few_reviews_has_the_numbers_of_the_records() -> None:
    assert a2r_table() in (GUIDES / "extract-rationales.md").read_text(encoding="utf-8")


def test_the_coverage_of_the_intervals_of_compare_is_that_of_the_records() -> None:
    """Two effects of seeds and two numbers of texts for each number of seeds; all intervals cover 90 % or more."""
    runs = read_records([RECORDS / "interval_coverage.jsonl"])
    assert Counter(run["seeds"] for run in runs) == {3: 4, 5: 4}
    assert coverage_table() in (GUIDES / "compare-techniques.md").read_text(encoding="utf-8")
    for run in runs:
        assert min(run["coverage"][kind] for kind in SHOWN) >= 0.9
