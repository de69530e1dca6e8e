"""The claims ledger: the page is current, its numbers are those of the records, and a changed page is noticed."""

import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from steadygaze.study.published_tables import find_table, published_tables
from steadygaze.study.table_blocks import blocks

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
CLAIMS = [
    claim
    for paper in tomllib.loads((BENCH / "ledger.toml").read_text(encoding="utf-8"))["papers"]
    for claim in paper["claims"]
]


@pytest.fixture
def ledger(bench: None) -> Any:
    return import_module("ledger")


def test_the_page_is_current(ledger: Any) -> None:
    page = (ROOT / "docs" / "results" / "ledger.md").read_text(encoding="utf-8")
    assert page == ledger.page(), "python bench/ledger.py > docs/results/ledger.md"
    counts = page.splitlines()[2].split("repeat, ")[1].partition(".")[0]
    index = (ROOT / "docs" / "results" / "index.md").read_text(encoding="utf-8")
    assert f"of {len(CLAIMS)} claims of four papers, {counts}" in index
    assert "{" not in re.sub(r"`[^`]*`", "", page), "a number was not filled in"


def test_thirty_claims_of_four_papers_with_known_verdicts(ledger: Any) -> None:
    assert len(CLAIMS) >= 30
    assert {claim["verdict"] for claim in CLAIMS} == set(ledger.VERDICTS)
    assert len({claim["claim"] for claim in CLAIMS}) == len(CLAIMS)


def test_no_claim_of_seat_holds_by_a_variant_with_another_formula(ledger: Any) -> None:
    """`paper` changes nothing; numbers of `joint` are for comparison."""
    compared = [claim for claim in CLAIMS if " seat-joint-" in claim["evidence"]]
    assert len(compared) > 5
    assert {claim["verdict"] for claim in compared} == {ledger.NOT_ACTIVE}


def test_every_command_names_a_table_or_a_file() -> None:
    for claim in CLAIMS:
        words = claim["command"].split()
        if words[:2] == ["steadygaze", "reproduce"]:
            table, only = find_table(words[2]), words[words.index("--only") + 1] if "--only" in words else ""
            assert blocks(table, [name for name in only.split(",") if name]), claim["command"]
        else:
            assert any((ROOT / word).is_file() for word in words), claim["command"]
    assert {claim["command"].split()[2].split("/")[0] for claim in CLAIMS if "reproduce" in claim["command"]} <= {
        name.split("/")[0] for name in published_tables()
    }


def test_a_command_made_the_numbers_of_its_row(bench: None) -> None:
    """Not the published table of the same name, whose data and settings differ."""
    jobs = [job.id for job in import_module("studies.rationales.plan").plan(5)]
    for claim in CLAIMS:
        command = claim["command"]
        if "page" not in claim and "{" in claim["evidence"]:
            assert "bench/stability.py" in command, claim["claim"]
        if claim.get("page") == "rationales.md":
            assert "bench/rationales.py" in command or "bench/movies.py" in command, claim["claim"]
        if "bench/rationales.py" in command:
            only = command.split("--only ")[1].strip("'")
            assert any(re.search(only, job) for job in jobs), command


def test_a_number_of_the_records(ledger: Any) -> None:
    """stability.md: consensus shifts 65 % less than vanilla under three synonyms (61–69 %), hate apart."""
    rows = ledger.rows_of(ledger.study_records())
    assert ledger._number(rows, "ratio", "consensus", "jensen-shannon/3-synonyms") == "0.35 [0.31, 0.39]"


def test_a_passage_that_changed_is_noticed(ledger: Any) -> None:
    claim = {
        "claim": "A",
        "verdict": "holds",
        "evidence": "B",
        "command": "C",
        "page": "index.md",
        "quotes": ["not there"],
    }
    with pytest.raises(SystemExit, match="no longer has 'not there'"):
        ledger._line(claim, {})
    with pytest.raises(SystemExit, match="is not one of"):
        ledger._line({**claim, "verdict": "maybe"}, {})
