"""Black boxes: what a killed or failed run left is done again, what is there is not."""

import json
from pathlib import Path

import pytest
import torch

from studies.black_boxes import run as study
from studies.black_boxes.plan import needs, plan


def run(out: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, object]]:
    """One worker on the three `planted.random`, `planted.gradient` and `planted.lime`; the records then."""
    monkeypatch.setattr(study, "run_job", lambda job, **_: {"fidelity": 1.0})
    study.run(study.Options(out=out, data=out, seeds=1, only=r"^planted\.(random|gradient|lime)\."))
    return {file.stem: json.loads(file.read_text()) for file in sorted((out / "records").glob("*.json"))}


def left(out: Path) -> None:
    """By a run that was killed at one job, after one that failed and one that went well."""
    (out / "cells" / "planted.random.0").mkdir(parents=True)
    (out / "records").mkdir()
    (out / "records" / "planted.gradient.0.json").write_text('{"error": "out of memory"}')
    (out / "records" / "planted.lime.0.json").write_text('{"fidelity": 0.5}')


def test_what_was_killed_or_failed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path)
    result = run(tmp_path, monkeypatch)
    assert {name: record["fidelity"] for name, record in result.items()} == {
        "planted.random.0": 1.0,
        "planted.gradient.0": 1.0,
        "planted.lime.0": 0.5,
    }


def test_the_first_seed_of_cxplain_computes_the_effects_of_removal_for_the_others() -> None:
    jobs = plan(seeds=2)
    needed = {job.id: needs(job, jobs) for job in jobs}
    assert needed["mnist_3_8.gray.cxplain.1"] == ("mnist_3_8.gray.cxplain.0",)
    assert needed["imdb.cxplain.1"] == ("imdb.cxplain.0",)
    assert {name.rsplit(".", 2)[-2] for name, names in needed.items() if names} == {"cxplain"}
    without_first = [job for job in jobs if job.seed == 1]
    assert not any(needs(job, without_first) for job in without_first)


def test_measures_are_averaged_also_if_they_are_classes() -> None:

    assert study._means({"predicted": torch.tensor([0, 1, 1, 0])}, [])["predicted"] == 0.5
