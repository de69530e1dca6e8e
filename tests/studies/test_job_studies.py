"""Every study that runs jobs: its function and its jobs can be sent to worker processes."""

import pickle
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from studies import jobs
from studies.stability.records import SELECTION

ROOT = Path(__file__).parents[2]
STUDIES: dict[str, dict[str, Any]] = {
    "audit_cost": {},
    "babi_settings": {},
    "black_boxes": {"data": Path("data")},
    "ceiling": {},
    "certified_share": {"data": Path("data")},
    "default_explainer": {},
    "default_tokens": {},
    "fresh": {},
    "hypothesis_only": {},
    "interval_coverage": {},
    "independent_reader": {"only": "planted.truth"},
    "long_texts": {},
    "movies": {},
    "oracles": {},
    "rationales": {},
    "seat_sweep": {"glove": Path("glove"), "synonyms": Path("synonyms")},
    "small_data": {},
    "synonyms": {"tables": Path("tables")},
    "stability": {"glove": Path("glove"), "synonyms": Path("synonyms"), "selection": SELECTION},
    "stability_coverage": {},
    "tune_epsilon": {},
    "verdict_coverage": {},
    "verdicts": {"tables": Path("tables"), "glove": Path("glove")},
    "xor_rationalizer": {},
}
"""Study -> its required options, besides `out`."""


def test_all_studies_are_listed() -> None:
    files = (ROOT / "studies").glob("*/run.py")
    assert {file.parent.name for file in files if "jobs.run(" in file.read_text(encoding="utf-8")} == set(STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_workers_import_the_function_and_the_jobs_of_a_package(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[Any] = []
    monkeypatch.setattr(jobs, "run", lambda *arguments, **more: passed.append((arguments, more)))
    study = import_module(f"studies.{name}.run")
    for function in ("prepare", "black_box"):
        monkeypatch.setattr(study, function, lambda *_: None, raising=False)
    study.run(study.Options(out=tmp_path, workers=2, **STUDIES[name]))
    [((options, plan, do), more)] = passed
    assert options.workers == 2
    assert_importable(plan(), do)
    assert all(isinstance(need, str) for job in plan() for need in more.get("needs", lambda job: ())(job))


def assert_importable(planned: list[Any], do: Any) -> None:
    assert _function(pickle.loads(pickle.dumps(do))) is _function(do)
    assert len({job.id for job in planned}) == len(planned) > 0
    assert pickle.loads(pickle.dumps(planned)) == planned


def _function(do: Any) -> Any:
    """The function of a partial, or of a bound method."""
    inner = getattr(do, "func", do)
    return getattr(inner, "__func__", inner)


def test_a_black_box_is_prepared_in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several workers share it, so that it is made before the first job."""
    prepared: list[bool] = []
    monkeypatch.setattr(jobs, "run", lambda *args, **more: None)
    study = import_module("studies.black_boxes.run")
    monkeypatch.setattr(study, "prepare", lambda name, out, *rest: prepared.append(out.is_dir()))
    study.run(study.Options(out=tmp_path / "new" / "out", data=tmp_path, workers=2, only="planted.random"))
    assert prepared == [True]
