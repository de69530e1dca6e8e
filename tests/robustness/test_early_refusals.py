"""What cannot be written is refused before the work: nothing is left behind, and the next run succeeds."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from robustness.harness import Result, assert_clean, run_case
from robustness.small import TEXTS, Small


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


UNWRITABLE: dict[str, tuple[Callable[[int], Any], str]] = {
    "deep": (lambda row: nested(55), "has the type list<"),
    "no-fields": (lambda row: {}, "has the type struct<>"),
    "several-types": (lambda row: row if row % 2 else "x", "has cells of several types"),
}
"""Cells of a column that a parquet file cannot store, and the reason."""


@pytest.fixture
def never_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a text is predicted or a model is trained."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("steadygaze.adapters.streaming.predict", work)
    monkeypatch.setattr("steadygaze.adapters.streaming.explain", work)
    monkeypatch.setattr("steadygaze.estimator.resumable_training.train", work)


def write(file: Path, cell: Callable[[int], Any]) -> Path:
    rows = [{"text": text, "label": "good", "extra": cell(row)} for row, text in enumerate(TEXTS)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def bulk(command: str, made: Small, file: Path, out: Path) -> Result:
    return run_case([command, made.model, "--file", file, "--out", out, "--device", "cpu"], watch=out.parent)


@pytest.mark.sweep(keep=("no-fields-explain",))
@pytest.mark.parametrize("command", ["predict", "explain"])
@pytest.mark.parametrize("column", UNWRITABLE)
@pytest.mark.usefixtures("never_predicts")
def test_a_column_that_parquet_cannot_store_is_refused_first(
    command: str, column: str, made: Small, tmp_path: Path
) -> None:
    cell, reason = UNWRITABLE[column]
    result = bulk(command, made, write(tmp_path / "films.jsonl", cell), tmp_path / "new.parquet")
    assert_clean(result, codes=[2])
    assert f"column 'extra' {reason}" in result.err
    assert "write .jsonl" in result.err


def test_the_next_run_writes_what_the_first_could_not(made: Small, tmp_path: Path) -> None:
    file = write(tmp_path / "films.jsonl", UNWRITABLE["deep"][0])
    assert bulk("predict", made, file, tmp_path / "new.parquet").code == 2
    result = bulk("predict", made, file, tmp_path / "new.jsonl")
    assert_clean(result, codes=[0], written={"new.jsonl"})
    lines = (tmp_path / "new.jsonl").read_text().splitlines()
    assert [json.loads(line)["extra"] for line in lines] == [nested(55)] * len(TEXTS)
    write(file, lambda row: row)
    result = bulk("predict", made, file, tmp_path / "new.parquet")
    assert_clean(result, codes=[0], written={"new.parquet"})


@pytest.mark.usefixtures("never_predicts")
def test_so_is_the_file_of_a_test_part(tmp_path: Path) -> None:
    file = write(tmp_path / "films.jsonl", UNWRITABLE["several-types"][0])
    words = ["--test-share", "0.3", "--test-out", tmp_path / "test.parquet", "--out", tmp_path / "model"]
    result = run_case(["train", file, *words, "--encoder", "average", "--device", "cpu"], watch=tmp_path)
    assert_clean(result, codes=[2])
    assert "column 'extra' has cells of several types" in result.err


BEYOND = {
    "timestamp": pa.timestamp("ms"), "nanoseconds": pa.timestamp("ns"), "date": pa.date64(),
    "duration": pa.duration("ms"), "zoned": pa.timestamp("us", "Europe/Berlin"), "list": pa.list_(pa.timestamp("ms")),
    "struct": pa.struct([("a", pa.timestamp("ms"))]),
}  # fmt: skip
"""Types whose values may lie outside of the range of Python's own."""


def times(kind: pa.DataType) -> pa.Array:
    """The largest number, nothing, and zero."""
    values = [2**62, None, 0]
    if pa.types.is_list(kind):
        return pa.array([None if value is None else [value] for value in values], kind)
    if pa.types.is_struct(kind):
        return pa.array([None if value is None else {"a": value} for value in values], kind)
    return pa.array(values, pa.int64()).cast(kind, safe=False)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_times_that_python_cannot_hold_pass_through(suffix: str, made: Small, tmp_path: Path) -> None:
    columns = {name: times(kind) for name, kind in BEYOND.items()}
    parquet.write_table(pa.table({"text": TEXTS[:3], **columns}), tmp_path / "films.parquet")
    out = tmp_path / f"new{suffix}"
    result = bulk("predict", made, tmp_path / "films.parquet", out)
    assert_clean(result, codes=[0], written={out.name})
    if suffix == ".parquet":
        assert (
            parquet.read_table(out)
            .select(list(BEYOND))
            .equals(parquet.read_table(tmp_path / "films.parquet").select(list(BEYOND)))
        )
    else:
        assert str(2**62) in out.read_text()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--device", "gpu"], "unknown device 'gpu'"),
        (["--device", "cpu", "--seed", str(2**40)], "the largest is"),
        (["--device", "cpu", "--config", "{}/options.toml"], "unknown option 'epochs'"),
    ],
)
@pytest.mark.usefixtures("never_predicts")
def test_a_demonstration_checks_its_options_before_it_writes(options: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "options.toml").write_text("epochs = 3\n")
    words = [word.replace("{}", str(tmp_path)) for word in options]
    result = run_case(["demo", "--out", tmp_path / "demo", *words], watch=tmp_path)
    assert_clean(result, codes=[2])
    assert sentence in result.err


@pytest.mark.usefixtures("never_predicts")
def test_a_refused_command_saves_no_options(tmp_path: Path) -> None:
    for _ in range(2):
        words = ["--out", tmp_path / "demo", "--device", "gpu", "--save-config", tmp_path / "options.toml"]
        result = run_case(["demo", *words], watch=tmp_path)
        assert_clean(result, codes=[2])
        assert "unknown device 'gpu'" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_unknown_column_among_many_is_refused_in_seconds(suffix: str, made: Small, tmp_path: Path) -> None:
    table = pa.table({f"column {i:05} of the table of customers and their orders": ["1"] for i in range(20_000)})
    path = tmp_path / f"wide{suffix}"
    (csv.write_csv if suffix == ".csv" else parquet.write_table)(table, path)
    start = time.process_time()
    name = "column 77777 of the tabel of customers"
    result = run_case(["evaluate", made.model, "--data", path, "--text", name, "--device", "cpu"], watch=tmp_path)
    assert_clean(result, codes=[2])
    assert f"unknown column '{name}': did you mean 'column " in result.err
    assert time.process_time() - start < 10
