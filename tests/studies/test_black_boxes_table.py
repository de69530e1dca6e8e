"""Tables of black boxes: means with intervals, the paper's number at the right row, and no row without records."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from studies.__main__ import application
from studies.black_boxes.plan import IMAGE_ROWS, ROWS
from studies.black_boxes.table import IMAGE_NAMES, NAMES, load, tables


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


def test_the_tables_of_records(places: list[str]) -> None:
    """Two seeds: 0.6 and 0.8, t(0.975, 1) = 12.706, so that half the interval is 12.706 * 0.1414 / √2 = 1.271."""
    result = tables(load(places))
    assert list(result) == ["imdb", "mnist_3_8"]
    assert result["imdb"].splitlines() == [
        "| explainer | seeds | post-hoc accuracy | from the rest | own fidelity | mask, nats | paper |",
        "|---|---|---|---|---|---|---|",
        "| LIME | 1 | 1.000 | 0.500 | | | 0.898 |",
        "| L2X | 2 | **0.700 ± 1.271** | 0.500 ± 0.000 | 0.900 ± 0.000 | | 0.892 |",
    ]
    assert result["mnist_3_8"].splitlines()[2:] == ["| L2X | 0.750 | 0.500 | | | 0.250 | 0.914 |"]


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
