"""The claims of four papers (claims.toml): counts by verdict, the numbers that decide them, and all claims as data.

`index.md.jinja` is the overview of all studies.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.ledger import data as stability
from studies.numbers import Number, Numbers, Origin, by_name
from studies.rendering import render
from studies.study import STUDIES, Data

CLAIMS = Path(__file__).parent / "claims.toml"
NOT_ACTIVE = "not active at these settings"
VERDICTS = ("holds", "holds in part", "does not hold", NOT_ACTIVE, "cannot be decided here")
NAMES = re.compile(r"number\('([^']+)'\)")
"""Names of numbers of this study in a template."""
OWN = Origin("", "python -m studies page ledger")


@dataclass(frozen=True)
class Claim:
    """A row of the ledger."""

    paper: str
    claim: str
    verdict: str
    evidence: str
    """A template over numbers."""
    command: str
    page: str = ""
    """The page of docs/results that has the evidence."""
    key: str = ""
    """Its name on the page of the ledger, if the page shows it."""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise SystemExit(f"{self.claim}: {self.verdict!r} is not one of {', '.join(VERDICTS)}")


def claims() -> list[Claim]:
    papers: list[dict[str, Any]] = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["papers"]
    return [Claim(paper=paper["name"], **row) for paper in papers for row in paper["claims"]]


def numbers() -> list[Number]:
    rows = claims()
    names = {name for row in rows for name in NAMES.findall(row.evidence)}
    return [*_counts(rows), *stability.numbers(names)]


def _counts(rows: list[Claim]) -> Iterator[Number]:
    """count.VERDICT, count.PAPER.VERDICT, and the verdicts of the claims that the page shows."""
    yield OWN.number("count", len(rows))
    for verdict in VERDICTS:
        yield OWN.number(f"count.{verdict}", sum(row.verdict == verdict for row in rows))
    by_paper = Counter((row.paper, row.verdict) for row in rows)
    for paper in dict.fromkeys(row.paper for row in rows):
        for verdict in VERDICTS:
            yield OWN.number(f"{slug(paper)}.{verdict}", by_paper[paper, verdict])
    for row in rows:
        if row.key:
            yield OWN.number(f"verdict.{row.key}", row.verdict)


def slug(paper: str) -> str:
    """
    >>> slug("Attention AT and iAT (Kitada & Iyatomi 2021)"), slug("SEAT (Hu et al. 2023)")
    ('kitada', 'hu')
    """
    return paper.partition("(")[2].split()[0].lower()


def data() -> Data:
    own = by_name(numbers())

    def read(study: str) -> Numbers:
        return own if study == "ledger" else STUDIES[study].numbers

    heading = ["paper", "claim", "verdict", "deciding numbers", "page", "command"]
    rows = []
    for row in claims():
        evidence = render(row.evidence, "ledger", read).replace("`", "")
        rows.append([row.paper, row.claim, row.verdict, evidence, row.page.removesuffix(".md"), row.command])
    return {"ledger.csv": [heading, *rows]}
