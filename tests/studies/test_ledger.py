"""The claims ledger: every verdict is known, every command exists, and evidence comes from the records."""

import re
import shlex
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steadygaze.study.published_tables import find_table
from steadygaze.study.table_blocks import blocks
from studies.__main__ import application
from studies.ledger.data import numbers
from studies.ledger.table import NOT_ACTIVE, VERDICTS, Claim, claims, data
from studies.rationales.plan import plan

ROOT = Path(__file__).parents[2]
CLAIMS = claims()


def test_claims_differ_and_have_all_verdicts() -> None:
    assert len({claim.claim for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.verdict for claim in CLAIMS} == set(VERDICTS)
    with pytest.raises(SystemExit, match="'maybe' is not one of holds, holds in part"):
        Claim("paper", "claim", "maybe", "evidence", "command")


def test_no_claim_of_seat_holds_by_a_variant_with_another_formula() -> None:
    """`paper` changes nothing; numbers of `joint` are for comparison."""
    compared = [claim for claim in CLAIMS if ".seat-joint-" in claim.evidence]
    assert len(compared) > 5
    assert {claim.verdict for claim in compared} == {NOT_ACTIVE}


@cache
def options_of(study: str) -> set[str]:
    """The options of a study on the command line."""
    shown = CliRunner().invoke(application, ["run", study, "--help"])
    assert shown.exit_code == 0, shown.output
    return set(re.findall(r"--[a-z][a-z-]*", shown.output))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.claim)
def test_a_command_names_a_table_a_study_or_a_file(claim: Claim) -> None:
    words = shlex.split(claim.command)
    options = dict(pairwise(words))
    if words[:2] == ["steadygaze", "reproduce"]:
        assert blocks(find_table(words[2]), [name for name in options.get("--only", "").split(",") if name])
    elif words[:4] == ["python", "-m", "studies", "run"]:
        assert {word for word in words if word.startswith("--")} <= options_of(words[4])
        if words[4] == "rationales":
            assert any(re.search(options["--only"], job.id) for job in plan(5))
    else:
        assert any((ROOT / word).is_file() for word in words)
    assert not claim.page or (ROOT / "docs" / "results" / claim.page).is_file()


def test_the_table_has_every_claim_with_its_numbers() -> None:
    heading, *rows = data()["ledger.csv"]
    assert heading == ["paper", "claim", "verdict", "deciding numbers", "page", "command"]
    assert [row[1:3] for row in rows] == [[claim.claim, claim.verdict] for claim in CLAIMS]
    assert not any("{" in cell for row in rows for cell in row)


def test_a_number_is_named_after_its_statistic_row_and_measure() -> None:
    """stability.md: consensus shifts 65 % less than vanilla under three synonyms (61–69 %), hate apart."""
    (shift,) = numbers(["ratio.consensus.jensen-shannon/3-synonyms"])
    assert [round(x, 2) for x in (float(shift), *(shift.interval or ()))] == [0.35, 0.31, 0.39]
    (start,) = numbers(["paired.seat-paper-ce.jensen-shannon/noise"])
    assert round(float(start), 3) == 1
    with pytest.raises(SystemExit, match="the records have no macro-f2 of consensus"):
        list(numbers(["difference.consensus.macro-f2"]))
