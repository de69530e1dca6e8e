"""The records of bench/small_data.py and the tables of docs/results/small-data.md agree."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE, RECORDS = ROOT / "docs" / "results" / "small-data.md", ROOT / "bench" / "records" / "small_data.jsonl"
CORPORA = {"SST-2": "sst2", "Rotten Tomatoes": "rotten_tomatoes", "Yelp polarity": "yelp_polarity"}
REGRESSIONS = {
    "TF-IDF": "tfidf-lr",
    "TF-IDF, balanced": "tfidf-lr-balanced",
    "C = 10": "tfidf-lr-10",
    "C = 10, balanced": "tfidf-lr-10-balanced",
}
REPEATED = {"TF-IDF": "tfidf-lr", "default, no extra": "default", "default, extra `glove`": "glove"}

REPEATED_CASES = [(corpus, texts) for corpus in CORPORA for texts in ("200", "500", "1,000")][:-1]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "bench"))
    yield importlib.import_module("small_data")
    sys.path.remove(str(ROOT / "bench"))
    del sys.modules["small_data"]


def rows(header: str) -> list[dict[str, str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index(header)
    names = [cell.strip() for cell in header.strip("|").split("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start + 2 :]]
    end = next(i for i, row in enumerate(cells) if len(row) != len(names))
    return [dict(zip(names, row, strict=True)) for row in cells[:end]]


def score(bench: Any, corpus: str, texts: str, row: str) -> str:
    """Mean ± half of the interval over the five seeds of the records."""
    return str(bench.mean_and_interval(scores_by_seed(corpus, texts, row)))


def scores_by_seed(corpus: str, texts: str, row: str) -> list[float]:
    records = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    key = CORPORA[corpus], int(texts.replace(",", "")), row
    scores = {r["seed"]: r["macro-f1"] for r in records if (r["corpus"], r["size"], r["row"]) == key}
    assert sorted(scores) == [0, 1, 2, 3, 4], key
    return [scores[seed] for seed in range(5)]


def test_the_regressions_of_the_first_table_are_those_of_the_records(bench: Any) -> None:
    header = next(
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| corpus | texts | TF")
    )
    table = rows(header)
    assert len(table) == 9
    for line in table:
        for column, row in REGRESSIONS.items():
            assert line[column] == score(bench, line["corpus"], line["texts"], row), (
                line["corpus"],
                line["texts"],
                row,
            )


def test_the_repeated_fits_are_those_of_the_records(bench: Any) -> None:
    table = rows("| corpus | texts | TF-IDF | default, no extra | default, extra `glove` |")
    assert [(line["corpus"], line["texts"]) for line in table] == REPEATED_CASES
    for line in table:
        for column, row in REPEATED.items():
            assert line[column] == score(bench, line["corpus"], line["texts"], row), (
                line["corpus"],
                line["texts"],
                row,
            )


def test_the_paired_differences_from_the_regression_are_those_of_the_records(bench: Any) -> None:
    table = rows("| corpus | texts | no extra | extra `glove` |")
    assert [(line["corpus"], line["texts"]) for line in table] == REPEATED_CASES
    for line in table:
        regression = scores_by_seed(line["corpus"], line["texts"], "tfidf-lr-10-balanced")
        for column, row in {"no extra": "default", "extra `glove`": "glove"}.items():
            ours = scores_by_seed(line["corpus"], line["texts"], row)
            paired = bench.mean_and_interval([a - b for a, b in zip(ours, regression, strict=True)], "+")
            assert line[column] == paired.replace("-", "−"), (line["corpus"], row)
