"""Jobs of studies: killed and failed jobs run again, finished ones do not; and what is planned."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from studies import jobs
from studies.movies import plan as movies
from studies.movies import run as movie_jobs
from studies.rationales import plan as rationales

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Job:
    id: str


def options_of(out: Path, **more: Any) -> jobs.JobOptions:
    return jobs.JobOptions(out=out, **more)


def left(out: Path) -> None:
    """By a run that was killed at one job, after one that failed and one that went well."""
    (out / "cells" / "killed").mkdir(parents=True)
    (out / "records").mkdir()
    (out / "records" / "failed.json").write_text('{"error": "out of memory"}')
    (out / "records" / "done.json").write_text('{"f1": 0.5}')


def test_what_was_killed_or_failed_is_done_again(tmp_path: Path) -> None:
    planned = [Job(name) for name in ("killed", "failed", "done", "new", "other")]
    left(tmp_path)
    jobs.run(options_of(tmp_path, only="^[^o]"), lambda: planned, lambda job: {"f1": 1.0})
    results = {file.stem: json.loads(file.read_text())["f1"] for file in (tmp_path / "records").glob("*.json")}
    assert results == {"killed": 1.0, "failed": 1.0, "done": 0.5, "new": 1.0}


def test_a_record_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    planned, values = [Job("one"), Job("two")], iter((1.0, 2.0, 3.0))
    run = partial(jobs.run, options_of(tmp_path), lambda: planned, lambda job: {"f1": next(values)})
    run()
    (tmp_path / "records" / "one.json").unlink()
    run()
    results = {file.stem: json.loads(file.read_text())["f1"] for file in (tmp_path / "records").glob("*.json")}
    assert results == {"one": 3.0, "two": 2.0}


def test_a_job_runs_after_those_it_needs(tmp_path: Path) -> None:
    order: list[str] = []
    planned = [Job("student"), Job("teacher")]
    needs = {"student": ("teacher",), "teacher": ()}
    do = lambda job: order.append(job.id) or {}  # noqa: E731
    jobs.run(options_of(tmp_path), lambda: planned, do, needs=lambda job: needs[job.id])
    assert order == ["teacher", "student"]


@pytest.mark.slow
def test_several_workers_run_the_jobs_of_a_script(tmp_path: Path) -> None:
    """The function and the jobs are those of the script itself; each worker keeps what it has read."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    out = tmp_path / "out"
    command = [sys.executable, str(script), str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    subprocess.run(command, check=True, env=environment, timeout=120)
    results = [json.loads(file.read_text()) for file in (out / "records").glob("*.json")]
    assert sorted(result["number"] for result in results) == list(range(6))
    workers = {result["process"] for result in results}
    assert len(workers) == 2
    assert sum(result["reads"] == 1 for result in results) == 2, "one first job in each worker"


SCRIPT = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from studies import jobs

@dataclass(frozen=True)
class Job:
    number: int
    @property
    def id(self):
        return f"job-{self.number}"

class Study:
    reads = 0
    def do(self, job):
        self.reads += 1
        time.sleep(0.3)
        return {"process": os.getpid(), "reads": self.reads}

def main():
    options = jobs.JobOptions(out=Path(sys.argv[1]), workers=2)
    jobs.run(options, lambda: [Job(n) for n in range(6)], Study().do)

if __name__ == "__main__":
    import script
    script.main()
"""


def test_a_job_that_fails_records_the_reason_and_the_next_one_runs(tmp_path: Path) -> None:
    def do(job: Job) -> dict[str, Any]:
        return {"f1": 1 / len(job.id.removeprefix("bad"))}

    with pytest.raises(SystemExit) as ended:
        jobs.run(options_of(tmp_path), lambda: [Job("bad"), Job("good")], do)
    message = str(ended.value.code)  # a string: the status is 1
    assert message.startswith("1 of 2 jobs failed: bad: ZeroDivisionError: division by zero.  Their tracebacks are in ")
    assert str(tmp_path / "records") in message
    results = {file.stem: json.loads(file.read_text()) for file in (tmp_path / "records").glob("*.json")}
    assert "ZeroDivisionError" in results["bad"]["error"]
    assert results["good"]["f1"] == 0.25


def test_the_message_about_many_failures_names_three(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^5 of 6 jobs failed: 0: \w+: .+; 1: .+; 2: [^;]+; and 2 more\.  Their "):
        jobs.run(
            options_of(tmp_path), lambda: [Job(str(i)) for i in range(6)], lambda job: {"f1": 1 // (int(job.id) // 5)}
        )


def test_a_job_that_fails_once_and_then_succeeds_is_no_failure(tmp_path: Path) -> None:
    values = iter((0, 1))
    jobs.run(options_of(tmp_path), lambda: [Job("one")], lambda job: {"f1": 1 / next(values)}, rounds=2)
    assert json.loads((tmp_path / "records" / "one.json").read_text())["f1"] == 1.0


def test_the_rate_with_the_best_validation_accuracy_goes_on(tmp_path: Path) -> None:
    """Two seeds each: means .75, .85 and .80, so that 3e-4 goes on with seeds 2 to 4, and only where all were tried."""
    (tmp_path / "records").mkdir()
    scores = {1e-4: (0.7, 0.8), 3e-4: (0.9, 0.8), 1e-3: (0.8, 0.8)}
    for setting in ("skewed20", "biased80"):
        for rate, accuracies in scores.items():
            for seed, accuracy in enumerate(accuracies):
                job = rationales.Job("palate", setting, rationales.rnp_row(rate), seed)
                record = {**vars(job), "chosen": {"validation": {"accuracy": accuracy}}}
                (tmp_path / "records" / f"{job.id}.json").write_text(json.dumps(record))
    (tmp_path / "records" / "easy.palate.biased80.rnp-0.001.s1.json").unlink()
    result = rationales.plan_selected_rates(tmp_path, 5)
    assert result == [rationales.Job("palate", "skewed20", "rnp-0.0003", seed) for seed in (2, 3, 4)]


def test_no_job_is_planned_twice_and_rows_record_their_settings() -> None:
    planned = rationales.plan(5)
    assert len({job.id for job in planned}) == len(planned)
    assert {job.setting for job in planned} == set(rationales.SETTINGS)
    settings = rationales.technique_settings
    assert settings("rnp-0.0003", "skewed15") == ("rnp", {"skewed": 15, "generator_learning_rate": 3e-4})
    assert settings("a2r-lambda-0", "biased70") == ("a2r", {"skewed": 0, "agreement": 0.0})
    assert settings("a2r", "standard") == ("a2r", {"skewed": 0})
    assert settings("a2r-0.001", "standard") == ("a2r", {"skewed": 0, "generator_learning_rate": 1e-3})


def test_the_rates_of_movies_are_tuned_by_mean_accuracy_with_the_first_seeds(tmp_path: Path) -> None:
    """Of a2r all four were tried, and of two that are as good the slower goes on; of rnp one run is missing."""
    (tmp_path / "records").mkdir()
    tried = {1e-4: (0.9, 0.5), 3e-4: (0.75, 0.875), 1e-3: (0.875, 0.75), 3e-3: (0.5, 0.5)}
    for row, tried_scores in (("a2r", tried), ("rnp", {**tried, 1e-3: (0.9,)})):
        for rate, accuracies in tried_scores.items():
            for seed, accuracy in enumerate(accuracies):
                job = movies.Job(row, seed, rate)
                record = {**vars(job), "chosen": {"validation": {"accuracy": accuracy}}}
                (tmp_path / "records" / f"{job.id}.json").write_text(json.dumps(record))
    planned = movies.job_plan(tmp_path, 5)
    later = [job for job in planned if job.row in movies.TUNED_ROWS and job.seed > 1]
    assert later == [movies.Job("a2r", seed, 3e-4) for seed in (2, 3, 4)]
    assert len({job.id for job in planned}) == len(planned)


def test_movies_run_the_shipped_hardkuma_bert_rnp_and_a_fourth_learning_rate(tmp_path: Path) -> None:
    from steadygaze.techniques.hardkuma import HardKuma

    planned = movies.plan(5)
    assert movies.RATES[-1] == 3e-3
    assert [job for job in planned if job.row == "hardkuma"] == [movies.Job("hardkuma", seed) for seed in range(5)]
    assert movie_jobs.technique_of(movies.Job("hardkuma", 0)) == HardKuma()
    assert {job.rate for job in planned if job.row == "rnp-minilm"} == set(movies.RATES)
    assert movie_jobs.technique_of(movies.Job("rnp-minilm", 0, 3e-3)).generator_learning_rate == 3e-3


def test_records_are_written_to_one_file_with_five_digits() -> None:
    assert jobs.compact({"f1": [1 / 3, 2], "seed": 1, "kept": None}) == {"f1": [0.33333, 2], "seed": 1, "kept": None}
