"""bench/black_boxes.py: what a killed or failed run left is done again, what is there is not."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

FILE = Path(__file__).parent.parent / "bench" / "black_boxes.py"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, whose jobs only record that they ran."""
    spec = importlib.util.spec_from_file_location("black_boxes", FILE)
    assert spec is not None
    assert spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(FILE.parent)
    monkeypatch.setitem(sys.modules, "black_boxes", result)
    spec.loader.exec_module(result)
    monkeypatch.setitem(
        sys.modules, "black_box_jobs", SimpleNamespace(run_job=lambda job, **_: {"fidelity": 1.0}, prepare=None)
    )
    return result


def run(bench: ModuleType, out: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> dict[str, dict[str, object]]:
    """One worker on the three `planted.random`, `planted.gradient` and `planted.lime`; the records then."""
    expected = [
        "--out",
        str(out),
        "--data",
        str(out),
        "--seeds",
        "1",
        "--only",
        r"^planted\.(random|gradient|lime)\.",
        *more,
    ]
    monkeypatch.setattr(sys, "argv", ["black_boxes.py", *expected])
    bench.main()
    return {file.stem: json.loads(file.read_text()) for file in sorted((out / "records").glob("*.json"))}


def left(out: Path) -> None:
    """By a run that was killed at one job, after one that failed and one that went well."""
    (out / "cells" / "planted.random.0").mkdir(parents=True)
    (out / "records").mkdir()
    (out / "records" / "planted.gradient.0.json").write_text('{"error": "out of memory"}')
    (out / "records" / "planted.lime.0.json").write_text('{"fidelity": 0.5}')


def test_what_was_killed_or_failed_is_done_again(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(tmp_path)
    result = run(bench, tmp_path, monkeypatch)
    assert {name: record["fidelity"] for name, record in result.items()} == {
        "planted.random.0": 1.0,
        "planted.gradient.0": 1.0,
        "planted.lime.0": 0.5,
    }


def test_the_first_seed_of_cxplain_computes_the_effects_of_removal_for_the_others(bench: ModuleType) -> None:
    jobs = bench.plan(seeds=2)
    needed = {job.id: bench.needs(job, jobs) for job in jobs}
    assert needed["mnist_3_8.gray.cxplain.1"] == ("mnist_3_8.gray.cxplain.0",)
    assert needed["imdb.cxplain.1"] == ("imdb.cxplain.0",)
    assert {name.rsplit(".", 2)[-2] for name, names in needed.items() if names} == {"cxplain"}
    without_first = [job for job in jobs if job.seed == 1]
    assert not any(bench.needs(job, without_first) for job in without_first)


def test_measures_are_averaged_also_if_they_are_classes(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "black_box_jobs")
    from black_box_jobs import _means

    assert _means({"predicted": torch.tensor([0, 1, 1, 0])}, [])["predicted"] == 0.5
