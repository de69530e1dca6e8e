"""The results of the whole package on small fixed data equal the committed record."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PARTS = {
    "classifiers": ("weights/technique/", "weights/encoder/", "weights/released/"),
    "fitted explainers": ("weights/learned/", "weights/images/", "fit-explainer"),
    "commands": ("audit/", "certify/", "compare", "explain/", "predict"),
}
"""Prefixes of entries: about 40 seconds of CPU each."""
ALWAYS = "weights/models"
"""The entry that all parts record, because their models are needed."""


def read_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(gzip.decompress((HERE / "record.json.gz").read_bytes()))
    return record


def run_script(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "golden_record.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})


def test_every_entry_belongs_to_one_part():
    names = set(read_record()["found"]) - {ALWAYS}
    assert {name: sum(name.startswith(prefixes) for prefixes in PARTS.values()) for name in names} == dict.fromkeys(
        names, 1
    )


@pytest.mark.slow
def test_a_changed_number_a_missing_entry_and_another_length_are_differences(tmp_path):
    record = read_record()
    record["found"]["predict"]["code"] = 3
    record["found"]["audit/attention"]["json"]["rows"].pop()
    del record["found"]["compare"]
    (tmp_path / "changed.json").write_text(json.dumps(record))
    ended = run_script("compare", tmp_path / "changed.json")
    lines = ended.stdout.splitlines()
    assert (ended.returncode, lines[-1]) == (1, f"3 differences in {len(record['found']) + 1} records")
    assert {line.partition(":")[0] for line in lines[:-1]} == {
        ".audit/attention.json.rows",
        ".compare",
        ".predict.code",
    }


def compare(tmp_path: Path, record: dict[str, Any]) -> tuple[int, list[str]]:
    (tmp_path / "other.json").write_text(json.dumps(record))
    ended = run_script("compare", tmp_path / "other.json")
    return ended.returncode, ended.stdout.splitlines()


def change_floats(value: Any, change: Callable[[float], float]) -> Any:
    if isinstance(value, dict):
        return {key: change_floats(entry, change) for key, entry in value.items()}
    if isinstance(value, list):
        return [change_floats(entry, change) for entry in value]
    return change(value) if isinstance(value, float) else value


def test_the_record_names_its_processor_kernels_and_torch():
    machine = read_record()["machine"]
    assert all(machine[name] for name in ("processor", "vendor", "model", "capability", "torch"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [{"vendor": "another"}, {"capability": "DEFAULT"}, {"torch": "0.1"}, {"limits": {"MKL_CBWR": "AVX2"}}]
)
def test_a_record_of_another_machine_is_compared_within_a_tolerance(other, tmp_path):
    record = read_record()
    record["found"] = change_floats(record["found"], lambda number: number + 1e-5)
    same_machine, *_ = compare(tmp_path, record)
    record["machine"] |= other
    another_machine, lines = compare(tmp_path, record)
    assert (same_machine, another_machine) == (1, 0)
    assert lines[0].startswith("another machine than ")
    assert lines[0].endswith("compared within a tolerance")
    assert lines[-1] == f"0 differences in {len(record['found'])} records"


def lose_a_row(record: dict[str, Any]) -> None:
    record["audit/attention"]["json"]["rows"].pop()


def lose_an_entry(record: dict[str, Any]) -> None:
    del record["compare"]


def rename_a_key(record: dict[str, Any]) -> None:
    record["certify/l2"]["json"]["lines"] = record["certify/l2"]["json"].pop("rows")


def move_a_model(record: dict[str, Any]) -> None:
    record["weights/technique/seat"] = change_floats(record["weights/technique/seat"], lambda number: number + 0.004)


def scale_an_explanation(record: dict[str, Any]) -> None:
    record["explain/gradient"] = change_floats(record["explain/gradient"], lambda number: number * 1.2)


def predict_another_label(record: dict[str, Any]) -> None:
    record["predict"]["json"] = [{**row, "label": "other"} for row in record["predict"]["json"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("audit/attention", lose_a_row),
        ("compare", lose_an_entry),
        ("certify/l2", rename_a_key),
        ("weights/technique/seat", move_a_model),
        ("explain/gradient", scale_an_explanation),
        ("predict", predict_another_label),
    ],
)
def test_a_change_of_results_is_a_difference_on_another_machine_too(entry, change, tmp_path):
    record = read_record()
    record["machine"] |= {"model": "another"}
    change(record["found"])
    code, lines = compare(tmp_path, record)
    assert code == 1
    assert {line.partition(":")[0].split(".")[1] for line in lines[1:-1]} == {entry}


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_the_results_equal_the_record(part):
    """Bit for bit on the machine of the record, and within a tolerance on others: see record_machine.py."""
    ended = run_script("check", "--only", *PARTS[part])
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-2000:]}"
    assert ended.stdout.splitlines()[-1].startswith("0 differences in ")


@pytest.mark.slow
def test_other_kernels_of_this_processor_are_another_machine():
    """`check` runs with the kernels without vector instructions, whose bits differ."""
    only = ("--only", "weights/technique/vanilla", "weights/encoder/bigru")
    ended = run_script("check", *only, env={"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"})
    assert ended.stdout.startswith("another machine than "), ended.stderr[-2000:]
    assert ended.stdout.splitlines()[-1].startswith("0 differences in ")
