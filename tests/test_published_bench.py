"""The pages of published tables: made from the records, whose means are those of their models."""

import gzip
import json
import math
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest

from steadygaze.results.reproduction import Reproduction
from steadygaze.study.published_tables import AXES, find_table
from steadygaze.study.table_blocks import blocks

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"
RECORDS = sorted((ROOT / "studies" / "records").glob("*-table*.gz")) + sorted(
    (ROOT / "studies" / "records").glob("*-figure*.gz")
)


@pytest.fixture
def page(bench: None) -> Any:
    return import_module("published_page")


@pytest.mark.parametrize("name", ["seat", "kitada"])
def test_the_page_is_current(name: str, page: Any) -> None:
    command = f"python bench/published_page.py {name} > docs/results/{name}.md"
    assert (ROOT / "docs" / "results" / f"{name}.md").read_text(encoding="utf-8") == page.page(name), command


@pytest.mark.parametrize("file", RECORDS, ids=lambda file: file.name.split(".")[0])
def test_a_number_of_a_table_is_the_mean_over_its_models(file: Path) -> None:
    reproduction, cells = Reproduction.from_records(file)
    table = find_table(reproduction.table)
    assert file.name.startswith(table.key.replace("/", "-"))
    values = {value.labels: value for value in reproduction.values if value.value is not None}
    checked = 0
    for block in blocks(table):
        for entry in block.entries:
            value = values.get(tuple(entry.label(axis) for axis in AXES))
            if value is None:
                continue
            technique = block.techniques[entry.label("techniques")].name
            scores = [
                cell.scores[value.measure]
                for cell in cells
                if (cell.block, cell.technique) == (block.folder, technique)
            ]
            assert len(scores) == value.seeds
            expected = mean(scores) * table.counterpart(entry, "measures").scale
            assert value.value == pytest.approx(expected, rel=1e-4, abs=1e-7)
            assert value.paper == entry.value
            checked += 1
    assert checked == len(values) > 0


def test_a_curve_has_the_lowest_and_the_highest_seed(page: Any) -> None:
    """Word AT on SST-2 at ε = 30: 33.3, 33.3 and 76.2."""
    scores = page.curve_scores("sst2", lambda cell: cell.scores["macro-f1"])["Word AT"]
    assert [round(100 * score, 1) for score in scores["30"]] == [33.3, 33.3, 76.2]
    assert page.curve_table({"Word AT": scores, "Vanilla": scores}).endswith("| 47.6 [33.3, 76.2] |")


def test_a_later_run_replaces_the_models_of_an_earlier_one(page: Any) -> None:
    """bAbI 1 has five seeds in the run that learns it, and three in the run that does not."""
    reproduction, cells = page.records("kitada-table2")
    models = [(cell.block, cell.technique, cell.seed) for cell in cells]
    assert len(set(models)) == len(models)
    assert {cell.seed for cell in cells if cell.block == "babi_1_bilstm"} == set(range(5))
    (score,) = [v for v in reproduction.values if v.labels[0] == "bAbI 1" and v.labels[2:] == ("Vanilla", "", "Acc")]
    assert (score.value or 0) > 99
    assert [text for text in reproduction.departures if text.startswith("babi_1: ")] == [
        "babi_1: 1,000 test texts, 5 seeds, at most 40 epochs, patience 10."
    ]


def test_the_jackknife_leaves_out_the_pairs_of_a_model(page: Any) -> None:
    """Pairs of three models: 1 (first and second), 2 (first and third), 3."""
    pseudo = page.jackknife([1.5, 2.0, 2.5], np.log)
    without = [3.0, 2.0, 1.0]
    assert list(pseudo) == pytest.approx([3 * math.log(2.0) - 2 * math.log(ratio) for ratio in without])


def test_the_text_about_the_unfinished_sweep_has_its_numbers(page: Any) -> None:
    """Means over three seeds, divided by the mean of the three vanilla models."""
    with gzip.open(page.SWEEP, "rt", encoding="utf-8") as file:
        _, *models = [json.loads(line) for line in file]
    noise: dict[str, float] = defaultdict(float)
    for model in models:
        name = model["row"] if model["row"] == "vanilla" else str(model["settings"])
        noise[name] += model["jensen-shannon/noise"] if model["data"] == "emotion-2" else 0
    ratios = [total / noise["vanilla"] for name, total in noise.items() if "'paper'" in name]
    entropies = {
        round(model["normalized-entropy"], 3)
        for model in models
        if model["settings"].get("variant") == "released" and model["settings"]["overlap"] == 1000
    }
    sentence = (
        f"In it, {len(ratios)} settings of `paper` shift {min(ratios):.2f} to {max(ratios):.2f} times as far as "
        "vanilla under noise, and `released` with λ2 = 1000 has an entropy of {:.3f}.".format(*entropies)
    )
    assert (len(ratios), len(entropies)) == (72, 1)
    assert sentence in (ROOT / "docs" / "results" / "seat.md").read_text(encoding="utf-8")


def test_the_index_has_the_range_of_word_at(page: Any) -> None:
    ranges = page.word_at_reductions()
    index = (ROOT / "docs" / "results" / "index.md").read_text(encoding="utf-8")
    assert f"`word-at` shifts {ranges['word_at']} less under noise" in index
    assert f"hate apart: {ranges['word_at_hate']}" in index


def test_all_records_have_at_most_ten_megabytes() -> None:
    assert sum(file.stat().st_size for file in (ROOT / "studies" / "records").iterdir()) < 10_000_000
