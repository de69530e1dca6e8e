"""Numbers of the stability study that pages quote which are not made from templates."""

from pathlib import Path

import pytest

from studies.rendering import change, changes, decimals, span
from studies.study import STUDIES

ROOT = Path(__file__).parents[2]
PLACES = ("sst2", "rt", "emotion")
BEST = "word-at-groups"
SHORT_ROWS = {BEST: "2", "consensus-groups": "8", "word-at": "2", "synonym-augmentation": "2"}
"""Rows of the table of README, and their cost."""
KINDS = ("label-flip", "top-k-lost", "jensen-shannon")
PROBES = ("3-synonyms", "3-held-out", "1-wordnet")


def values(row: str, measure: str) -> list[float]:
    return [float(STUDIES["stability"].numbers[f"{place}.{row}.{measure}"]) for place in PLACES]


def less(row: str, measure: str) -> str:
    return f"{span([1 - ratio for ratio in values(row, measure)], 0, scale=100)} %"


def predicted(row: str, measure: str) -> str:
    low, high = STUDIES["stability"].numbers[f"prediction.{row}.{measure}"].interval or (0, 0)
    return f"{change(low)} to {change(high)} %"


def flips(*rows: str) -> list[str]:
    """Labels that FGM flips on three data sets, and on hate speech."""
    numbers = STUDIES["stability"].numbers
    shares = [[float(numbers[f"flip-share.{p}.{row}.fgm-label"]) for p in (*PLACES, "hate")] for row in rows]
    return [text for row in shares for text in (f"{span(row[:3], 1, scale=100)} %", f"{100 * row[3]:.1f} %")]


def between_seeds(row: str) -> str:
    ratios = [float(STUDIES["stability"].numbers[f"between-seeds.{place}.{row}"]) for place in PLACES]
    return f"{span([1 - ratio for ratio in ratios], 0, scale=100)} %"


def loss(name: str) -> str:
    return decimals(-float(STUDIES["stability"].numbers[name]))


def share(start: str) -> str:
    shares = [float(number) for name, number in STUDIES["stability"].numbers.items() if name.startswith(start)]
    return f"{span(shares, 0, scale=100)} %"


def as_flat(row: str) -> str:
    return f"{100 * (1 - float(STUDIES['stability'].numbers[f'as-flat.{row}.3-synonyms'])):.0f} %"


def over_data() -> str:
    low, high = STUDIES["stability"].numbers["over-data-sets.consensus.macro-f1"].interval or (0, 0)
    return f"{decimals(low, 3, '+')} to {decimals(high, 3, '+')}"


HEADLINE = (
    less(BEST, "label-flip.3-synonyms"),
    less(BEST, "top-k-lost.3-synonyms"),
    share(f"outside-share.{BEST}.label-flip"),
    predicted(BEST, "label-flip.3-synonyms"),
    predicted(BEST, "top-k-lost.3-synonyms"),
)
QUOTES = {
    "README.md": (
        *HEADLINE,
        less(BEST, "label-flip.3-held-out"),
        less(BEST, "label-flip.1-wordnet"),
        over_data(),
        *flips("consensus"),
    ),
    "docs/limitations.md": flips("consensus"),
    "docs/tutorial.md": (f"{STUDIES['stability'].numbers['models.all'].value} models",),
    "docs/how-to/train-stable-classifier.md": (
        predicted(BEST, "label-flip.3-synonyms"),
        less("consensus", "jensen-shannon.3-held-out"),
        between_seeds("consensus"),
        less("consensus-word-at", "jensen-shannon.3-synonyms"),
        less("consensus-word-at", "jensen-shannon.3-held-out"),
        loss("hate.consensus-word-at.macro-f1"),
    ),
}


@pytest.mark.parametrize("page", QUOTES)
def test_a_page_has_the_numbers_of_the_study(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [number for number in QUOTES[page] if number not in text] == []


@pytest.mark.parametrize("row", SHORT_ROWS)
def test_the_table_of_readme_has_the_numbers_of_the_study(row: str) -> None:
    numbers = STUDIES["stability"].numbers

    def cell(kind: str, *places: str) -> str:
        return "; ".join(changes([float(numbers[f"{p}.{row}.{kind}.{probe}"]) for p in places]) for probe in PROBES)

    hate = [*(cell(kind, "hate") for kind in KINDS), decimals(numbers[f"hate.{row}.macro-f1"], 3, "+")]
    flat = "; ".join(change(numbers[f"as-flat.{row}.{probe}"]) for probe in PROBES)
    cells = [SHORT_ROWS[row], *(cell(kind, *PLACES) for kind in KINDS), flat, "<br>".join(hate)]
    assert f"| {' | '.join(cells)} |" in (ROOT / "README.md").read_text(encoding="utf-8")
