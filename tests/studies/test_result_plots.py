"""The plots of docs/results: each shows what the records give, and has a text alternative on its page."""

import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from studies.figures import results

ROOT = Path(__file__).parents[2]
FIGURES, PAGES = ROOT / "docs" / "figures" / "results", ROOT / "docs" / "results"
NAMES = sorted(path.stem for path in FIGURES.glob("*.svg"))
WITHOUT_PLOT = {"index", "ledger", "oracles", "stability-tables", "verdicts", "verified-substitutions"}
WITH_PLOT = [page.stem for page in sorted(PAGES.glob("*.md")) if page.stem not in WITHOUT_PLOT]


def test_every_plot_has_a_file() -> None:
    assert sorted(results.PLOTS) == NAMES


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("name", NAMES)
def test_the_plot_shows_the_data_of_the_records(name: str) -> None:
    drawn = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    make, title = results.PLOTS[name]
    result = re.findall(r"<title>(.+?)</title><metadata>(\w{64})</metadata>", drawn)
    message = "run python -m studies.figures results"
    assert result == [(title, results.fingerprint(make()))], message


def test_the_fingerprint_depends_on_the_data() -> None:
    charts = [alt.Chart(pd.DataFrame({"x": [value]})).mark_point().encode(x="x:Q") for value in (1, 2)]
    assert results.fingerprint(charts[0]) != results.fingerprint(charts[1])


def test_the_numbers_of_a_plot_are_those_of_the_page() -> None:
    """0.64 [0.61, 0.67]: flips of consensus under three synonyms without hate, as in docs/results/stability.md."""
    sets = results.PLOTS["stability-forest"][0]().to_dict()["datasets"].values()
    rows = [row for lines in sets for row in lines if row.get("row") == "consensus"]
    result = next(row for row in rows if row["panel"] == "label flips, table")
    assert [f"{result[name]:.2f}" for name in ("value", "low", "high")] == ["0.64", "0.61", "0.67"]


@pytest.mark.parametrize("page", WITH_PLOT)
def test_a_results_page_opens_with_finding_plot_recommendation_and_caveat(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    top = text[: text.index("\n## ")]
    order = [top.index(part) for part in ("**Finding.**", "figures/results/", "**Recommendation.**", "**Caveat.**")]
    assert order == sorted(order)
    for label, name in re.findall(r"!\[([^]]*)\]\(\.\./figures/results/([\w-]+)\.svg\)", text):
        assert len(label) > 60, name
        assert name in NAMES


@pytest.mark.parametrize("page", WITH_PLOT)
def test_the_opening_of_a_results_page_fits_the_first_screen(page: str) -> None:
    """1,400 characters beside a plot, up to the end of the caveat: about 900 pixels in a window 1,440 pixels wide."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    opening = text[text.index("**Finding.**") : text.index("\n\n", text.index("**Caveat.**"))]
    shown = re.sub(r"!\[[^]]*\]\([^)]*\)|\]\([^)]*\)|[*`\[]", "", opening)
    assert len(" ".join(shown.split())) <= 1400


@pytest.mark.parametrize("page", ["ledger", "oracles", "verified-substitutions"])
def test_a_results_page_without_plot_opens_with_finding_table_recommendation_and_caveat(page: str) -> None:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    top = text[: text.index("\n## ")]
    order = [top.index(part) for part in ("**Finding.**", "\n|---", "**Recommendation.**", "**Caveat.**")]
    assert order == sorted(order)
