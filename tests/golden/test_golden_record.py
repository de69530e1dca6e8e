"""The results of the whole package on small fixed data equal the committed record, bit for bit."""

import gzip
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

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


def run_script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "golden_record.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_entry_belongs_to_one_part():
    names = set(read_record()["found"]) - {ALWAYS}
    assert {name: sum(name.startswith(prefixes) for prefixes in PARTS.values()) for name in names} == dict.fromkeys(
        names, 1
    )


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


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_the_results_equal_the_record(part):
    machine = read_record()["machine"]
    if (machine["processor"], machine["torch"]) != (platform.machine(), torch.__version__):
        pytest.skip(f"the record is of another machine, {machine}: bits may differ")
    ended = run_script("check", "--only", *PARTS[part])
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-2000:]}"
    assert ended.stdout.splitlines()[-1].startswith("0 differences in ")
