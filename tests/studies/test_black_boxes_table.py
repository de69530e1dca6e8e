"""Tables of black boxes: means with intervals, the paper's number at the right row, and no row without records."""

import gzip
import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from scipy.stats import ttest_ind
from typer.testing import CliRunner

from studies.__main__ import application
from studies.black_boxes.plan import FILLS, IMAGE_ROWS, IMAGES, ROWS, UNTRAINED
from studies.black_boxes.table import CORPORA, IMAGE_NAMES, NAMES, PAIRS, POST_HOC, differences, load, rows, values
from studies.numbers import by_name


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    """Two explainers of IMDB, one with two seeds in the other order; one of images with two fills."""
    shared: dict[str, Any] = {"post-hoc-accuracy/unselected": 0.5}
    records = [
        shared | {"corpus": "imdb", "row": "l2x", "seed": 1, "post-hoc-accuracy": 0.8, "fidelity": 0.9},
        shared | {"corpus": "imdb", "row": "l2x", "seed": 0, "post-hoc-accuracy": 0.6, "fidelity": 0.9},
        shared | {"corpus": "imdb", "row": "lime", "seed": 0, "post-hoc-accuracy": 1.0},
        shared | {"corpus": "mnist_3_8", "fill": "gray", "row": "l2x-cnn", "seed": 0, "post-hoc-accuracy": 0.25},
        shared | {"corpus": "mnist_3_8", "fill": "mean", "row": "l2x-cnn", "seed": 0, "post-hoc-accuracy": 0.75},
    ]
    file = tmp_path / "records.jsonl.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(record) + "\n" for record in records).encode()))
    return [str(file)]


def test_the_table_of_records(places: list[str]) -> None:
    """Two seeds: 0.6 and 0.8, t(0.975, 1) = 12.706, so that half the interval is 12.706 * 0.1414 / √2 = 1.271."""
    heading, *lines = rows(load(places))
    post_hoc = heading.index("post-hoc accuracy")
    assert [(line[0], line[2], line[3], line[4], *line[post_hoc : post_hoc + 4], line[-1]) for line in lines] == [
        ("IMDB", "", "LIME", "1", "1.000", "", "", "", "0.898"),
        ("IMDB", "", "L2X", "2", "0.700", "1.271", "0.600", "0.800", "0.892"),
        ("MNIST 3/8", "mean", "L2X", "1", "0.750", "", "", "", "0.914"),
        ("MNIST 3/8", "gray", "L2X", "1", "0.250", "", "", "", ""),
    ]


def test_every_row_has_all_its_seeds() -> None:
    cells = load()
    for corpus in CORPORA:
        assert {row: len(runs) for row, runs in cells[corpus, ""].items()} == {
            row: 1 if row in UNTRAINED else 5 for row in ROWS
        }
    for corpus in IMAGES:
        for fill in FILLS:
            names = [row for row in IMAGE_ROWS if fill == "mean" or "wide" not in row]
            assert {row: len(runs) for row, runs in cells[corpus, fill].items()} == {
                row: 1 if row in UNTRAINED else 5 for row in names
            }


def test_a_difference_has_the_interval_of_welch_s_test() -> None:
    cells = load()
    first, second = PAIRS[0]
    scores = [values(cells["imdb", ""][row], POST_HOC) for row in (second, first)]
    limits = ttest_ind(*scores, equal_var=False).confidence_interval()
    number = by_name(differences(cells))[f"difference.imdb.{first}.{second}"]
    assert number.value == pytest.approx(mean(scores[0]) - mean(scores[1]))
    assert number.interval == pytest.approx((limits.low, limits.high), rel=1e-6)


def test_every_row_of_the_study_has_a_name() -> None:
    assert set(NAMES) == set(ROWS)
    assert set(IMAGE_NAMES) == set(IMAGE_ROWS)
    assert len(set(NAMES.values())) == len(NAMES)
    assert len(set(IMAGE_NAMES.values())) == len(IMAGE_NAMES)


def test_records_are_printed_without_the_named_fields(
    places: list[str],
) -> None:
    ended = CliRunner().invoke(application, ["records", *places, "--without", "fidelity,seed"])
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert lines[0] == {"post-hoc-accuracy/unselected": 0.5, "corpus": "imdb", "row": "l2x", "post-hoc-accuracy": 0.8}
    assert len(lines) == 5
