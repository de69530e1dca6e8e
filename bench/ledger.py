"""docs/results/ledger.md, from bench/ledger.toml, the records of the stability study and the pages of results.

python bench/ledger.py > docs/results/ledger.md
"""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from stability_plan import MAIN_SETTINGS
from stability_records import study_records
from stability_table import Rows, compare_with_start, compare_with_vanilla, format_estimate, rows_of
from studies.stability.statistics import difference, paired, paired_difference, ratio
from studies.tables import minus_signs

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "results"
NOT_ACTIVE = "not active at these settings"
VERDICTS = ("holds", "holds in part", "does not hold", NOT_ACTIVE, "cannot be decided here")
NUMBER = re.compile(r"\{(\w+) ([\w-]+) ([\w/-]+)\}")
RECOMMENDATION = """\
**Recommendation.** Use random pretraining against label leakage of L2X, an explainer that selects words: its network is
first trained on random words. Use A2R, which adds a second predictor, against interlocking: selector and predictor
settle on a poor selection. Vanilla attention of a transformer [agrees more with human rationales](rationales.md) of
movie reviews than A2R, and about as much as its released variant. Do not rely on SEAT or Attention AT for stability or
better scores. Use `steadygaze compare` to test a technique on your own data.

**Caveat.** A verdict is about our code, data and settings, which depart from those of the papers. "Does not hold" does
not show that a paper is wrong. SEAT as printed, with [constants that the paper does not print](seat.md#constants),
changes nothing: its claims are "not active at these settings", which decides nothing about the idea.
"""
INTRODUCTION = """\
## How to read the verdicts

- **holds**: we see the claimed effect.
- **holds in part**: we see it for some of the claimed data, variants or measures only; the row states for which.
- **does not hold**: not seen with these settings, although the measurement would show an effect of the published size.
- **not active at these settings**: as printed (`paper`), the technique changed nothing. Numbers of `joint`, which is
  not the paper's formula, are for comparison.
- **cannot be decided here**: there is no measurement, or it is too uncertain.

Numbers in brackets are 95 % intervals over seeds, unless the row states otherwise. Numbers after ± are half widths of
95 % intervals (label leakage) or standard deviations over seeds (A2R). None is corrected for multiple comparisons;
[SEAT](seat.md), [Attention AT](kitada.md) and [Stability](stability.md) mark what stays significant after Holm's
correction. A ratio below 1 is more stable than vanilla,
which is training with cross-entropy alone. The command of a row made its numbers, or would make them. The
[glossary](../concepts/glossary.md#names-in-the-results) explains the names.
"""
SOURCES = """\
## Sources

Where a row links a page, its numbers are from that page, which lists the commands with all options. Rows of
`bench/stability.py` have the numbers of the [stability study](stability.md): three data sets with a BiLSTM, hate speech
apart, records `studies/records/stability-*.jsonl.gz`.

`steadygaze reproduce list` lists the tables of the papers. `steadygaze reproduce a2r/…` runs a similar
experiment with the package's default reviews and settings, and gives other numbers than the rows of A2R. So do
`seat/…` and `kitada/…` for the rows of the stability study.

`python bench/ledger.py` makes this page from `bench/ledger.toml`; a test compares the two.
"""


def main() -> None:
    print(page(), end="")


def page() -> str:
    papers = tomllib.loads((ROOT / "bench" / "ledger.toml").read_text(encoding="utf-8"))["papers"]
    rows = rows_of(study_records())
    claims = [claim for paper in papers for claim in paper["claims"]]
    parts = [
        "# Claims ledger\n",
        f"**Finding.** {summary(claims)} {shares(papers)}\n",
        f'<div class="dense" markdown>\n\n{_counts(papers)}\n\n</div>\n',
        RECOMMENDATION,
        INTRODUCTION,
    ]
    for paper in papers:
        lines = [_line(claim, rows) for claim in paper["claims"]]
        head = "| claim | verdict | deciding numbers | command |\n|---|---|---|---|"
        parts.append("\n".join([f"## {paper['name']}\n", head, *lines]) + "\n")
    return minus_signs("\n".join([*parts, SOURCES]))


def summary(claims: list[dict[str, Any]]) -> str:
    counts = Counter(claim["verdict"] for claim in claims)
    return (
        f"Of {len(claims)} claims of four papers that we tried to repeat, {counts['holds']} hold, "
        f"{counts['holds in part']} hold in part, {counts['does not hold']} do not hold, {counts[NOT_ACTIVE]} are "
        "about a technique that is not active at these settings, "
        f"and {counts['cannot be decided here']} cannot be decided here."
    )


def shares(papers: list[dict[str, Any]]) -> str:
    """Claims that hold at least in part, by paper."""
    parts = []
    for paper in papers:
        confirmed = sum(claim["verdict"] in VERDICTS[:2] for claim in paper["claims"])
        parts.append(f"{confirmed} of {len(paper['claims'])} ({paper['topic']})")
    return "By paper, these hold at least in part: " + ", ".join(parts) + "."


def _counts(papers: list[dict[str, Any]]) -> str:
    """Claims by paper and verdict."""
    lines = ["| paper | about | " + " | ".join(VERDICTS) + " |", "|---|---|" + "---|" * len(VERDICTS)]
    for paper in papers:
        counts = Counter(claim["verdict"] for claim in paper["claims"])
        cells = [f"[{paper['name']}](#{_slug(paper['name'])})", paper["about"], *(str(counts[v]) for v in VERDICTS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _slug(name: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")


def _line(claim: dict[str, Any], rows: Rows) -> str:
    if claim["verdict"] not in VERDICTS:
        raise SystemExit(f"{claim['claim']}: {claim['verdict']!r} is not one of {', '.join(VERDICTS)}")
    for quote in claim.get("quotes", ()):
        if quote not in (PAGES / claim["page"]).read_text(encoding="utf-8").replace("]*", "]"):  # significance
            raise SystemExit(f"{claim['claim']}: docs/results/{claim['page']} no longer has {quote!r}")
    evidence = NUMBER.sub(lambda match: _number(rows, *match.groups()), claim["evidence"])
    link = f" [{claim['page'].removesuffix('.md')}]({claim['page']})" if "page" in claim else ""
    cells = [claim["claim"], f"**{claim['verdict']}**", evidence + link, f"`{claim['command']}`"]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _number(rows: Rows, statistic: str, row: str, measure: str) -> str:
    form, settings = "+.3f" if "difference" in statistic else ".2f", MAIN_SETTINGS
    if statistic in ("paired", "paired_difference"):
        function = {"paired": paired, "paired_difference": paired_difference}[statistic]
        estimate = compare_with_start(function, rows, row, measure, settings)
    else:
        estimate = compare_with_vanilla(
            {"ratio": ratio, "difference": difference}[statistic], rows, row, measure, settings
        )
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return re.sub(r"[+-](0\.0+)\b", r"\1", format_estimate(estimate, form))  # zero has no sign


if __name__ == "__main__":
    main()
