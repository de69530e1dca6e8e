"""Stability of attention: every technique on real data, many seeds, hyper-parameters selected on validation data alone.

    python bench/stability.py --out DIR --data DIR --glove FILE --synonyms DIR [--workers 16] [--device cuda]
                              [--records FILE] [--only REGEX] [--limit N] [--epochs N] [--commit HASH]

The work is divided into jobs; a job trains and probes one model.  Workers take the next job whose dependencies are
done.  A run can be stopped and resumed: finished jobs are not repeated.  `--records` adds the records of an earlier run
whose models are gone; a job among them is repeated only where a job that is left needs its model.  DIR gets one record
per job (records/<job>.json).  bench/stability_synonyms.py makes the tables of `--synonyms`.

Hyper-parameters are selected first, on the validation splits of SST-2 and Rotten Tomatoes with two seeds, by one rule:
the smallest shift of attention (geometric mean over the probes of stability_plan.SELECTION_PROBES) among configurations
within 0.005 of vanilla's macro-F1.  Published techniques are also selected by macro-F1 alone, as in their papers.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

from job_queue import tidy
from stability_plan import (
    ABLATION,
    FIXED,
    GRID,
    MARGIN,
    SAVED,
    SELECTION_PROBES,
    SELECTION_SEEDS,
    SELECTION_SETTINGS,
    TEACHERS,
    WITHOUT,
    Job,
    plan,
)

FOLDERS = ("records", "claims", "models", "seen")


@dataclass
class Study:
    """Paths, and what one worker does."""

    out: Path
    data: Path
    glove: Path
    synonyms: Path
    device: str = "cpu"
    epochs: int | None = None
    limit: int | None = None
    commit: str = "unknown"
    jobs: list[Job] = field(default_factory=plan)
    splits: dict[tuple[str, str], list[Any]] = field(default_factory=dict)

    def record(self, job_id: str) -> Path:
        return self.out / "records" / f"{job_id}.json"

    def seen(self, job_id: str) -> Path:
        """Attention, probabilities and mask of the test texts."""
        return self.out / "seen" / f"{job_id}.npz"

    def prepare(self, earlier: Path | None = None) -> None:
        """Removes claims of stopped workers and failed records; adds the records of an earlier run."""
        for name in FOLDERS:
            (self.out / name).mkdir(parents=True, exist_ok=True)
        tidy(self.out)
        for line in earlier.read_text().splitlines() if earlier else []:
            found = json.loads(line)
            if "error" not in found and not self.record(found["id"]).exists():
                self._write(found["id"], found)
        self._repeat_missing()

    def _repeat_missing(self) -> None:
        """Removes the records of jobs whose model or readings are gone and are an input of a job that is left."""
        jobs = {job.id: job for job in self.jobs}
        left = [job for job in self.jobs if not self.record(job.id).exists()]
        while left:
            for name in left.pop().inputs:
                if name in jobs and self.record(name).exists() and self._is_missing(jobs[name]):
                    self.record(name).unlink()
                    shutil.rmtree(self.out / "claims" / name, ignore_errors=True)
                    left.append(jobs[name])

    def _is_missing(self, job: Job) -> bool:
        saved = job.row not in SAVED or (self.out / "models" / job.id).exists()
        return not (saved and self.seen(job.id).exists())

    def work(self) -> None:
        """Every job that is left."""
        while job := self._next():
            started = time.time()
            try:
                result = self._seeds(job) if job.phase == "seeds" else self._run(job)
            except Exception:
                result = {"error": traceback.format_exc()}
            result |= {"id": job.id, "setting": job.setting, "row": job.row, "seed": job.seed, "phase": job.phase}
            result |= {"seconds": round(time.time() - started, 1), **self.origin()}
            self._write(job.id, result)
            print(f"{job.id}  {result['seconds']:.0f} s  {result.get('macro-f1', result.get('error', ''))}", flush=True)

    def origin(self) -> dict[str, Any]:
        import torch

        from steadygaze import __version__

        return {"commit": self.commit, "version": __version__, "torch": torch.__version__, "device": self.device}

    def _write(self, job_id: str, result: dict[str, Any]) -> None:
        new = self.record(job_id).with_suffix(f".{os.getpid()}.tmp")
        new.write_text(json.dumps(result) + "\n")
        os.replace(new, self.record(job_id))

    def _next(self) -> Job | None:
        while True:
            waiting = False
            done = {file.removesuffix(".json") for file in os.listdir(self.out / "records")}
            claimed = set(os.listdir(self.out / "claims"))
            for job in self.jobs:
                if job.id in done:
                    continue
                waiting = True
                if job.id not in claimed and done.issuperset(job.dependencies):
                    try:
                        (self.out / "claims" / job.id).mkdir()
                    except FileExistsError:
                        continue
                    return job
            if not waiting:
                return None
            time.sleep(0.5)

    def config(self, job: Job) -> dict[str, Any]:
        if job.config is not None:
            return GRID[job.row][job.config]
        if job.technique in ("anchored", "consensus"):
            kind = "word-at" if job.row == "consensus-word-at" else "vanilla"
            own = {"teachers": TEACHERS, "teacher": kind} if job.technique == "consensus" else {}
            return {**self.selected("anchored"), **own, **WITHOUT.get(job.row, {})}
        base, _, rule = job.row.rpartition("-by-")
        if rule in ("f1", "rule"):
            return self.selected(base, by_f1=rule == "f1")
        return (
            self.selected(job.row)
            if job.row in GRID and job.row not in FIXED
            else {**FIXED, **ABLATION}.get(job.row, {})
        )

    def selected(self, row: str, by_f1: bool = False) -> dict[str, Any]:
        """The configuration that the validation splits select."""
        scores = {i: self._validation(row, i) for i in range(len(GRID[row]))}
        least = self._validation("vanilla", None)[0] - MARGIN
        able = {} if by_f1 else {i: score for i, score in scores.items() if score[0] >= least}
        if not able:  # by macro-F1, or no configuration is accurate enough: the most accurate
            return GRID[row][max(scores, key=lambda i: scores[i][0])]
        return GRID[row][min(able, key=lambda i: able[i][1])]

    def _validation(self, row: str, config: int | None) -> tuple[float, float]:
        """Mean macro-F1, and the geometric mean of all shifts of attention."""
        ids = [Job("select", s, row, seed, config).id for s in SELECTION_SETTINGS for seed in SELECTION_SEEDS]
        found = [json.loads(self.record(i).read_text()) for i in ids]
        shifts = [r[f"jensen-shannon/{probe}"] for r in found for probe in SELECTION_PROBES]
        return mean(r["macro-f1"] for r in found), geometric_mean(shifts)

    def _run(self, job: Job) -> dict[str, Any]:
        from stability_probe import measured, trained

        config = self.config(job)
        for twin in job.twins:
            found = json.loads(self.record(twin).read_text())
            if found.get("config") == config:
                shutil.copyfile(self.seen(twin), self.seen(job.id))
                return {**found, "same-as": twin}
        clf, model = trained(self, job, config)
        if job.row in SAVED and job.config is None:
            clf.save(self.out / "models" / job.id)
        return {"config": config, **measured(self, job, clf, model)}

    def _seeds(self, job: Job) -> dict[str, Any]:
        from stability_probe import between

        return between([self.seen(need) for need in job.needs])

    def examples(self, setting: str, split: str) -> list[Any]:
        """The texts of a split; with `limit`, that many spread over the split."""
        from stability_plan import SETTINGS
        from steadygaze.data.corpora import load_corpus

        name = SETTINGS[setting][0]
        if (name, split) not in self.splits:
            corpus = load_corpus(name, data_dir=self.data)
            for one, texts in corpus.splits.items():
                step = max(1, len(texts) // self.limit) if self.limit else 1
                self.splits[name, one] = list(texts[::step])
        return self.splits[name, split]


def matching(jobs: list[Job], pattern: str) -> list[Job]:
    """The jobs whose names match, and all that they depend on, in the order of the plan."""
    known, wanted = {job.id: job for job in jobs}, {job.id for job in jobs if re.search(pattern, job.id)}
    left = list(wanted)
    while left:
        new = set(known[left.pop()].dependencies) - wanted
        wanted |= new
        left += new
    return [job for job in jobs if job.id in wanted]


def head_commit() -> str:
    """Of the repository this file is in, "+" where files differ from it; "unknown" outside a repository."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name in ("out", "data", "glove", "synonyms"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--records", type=Path, help="records of an earlier run, one a line")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--only", default="", help="jobs whose names this matches, and what they depend on")
    parser.add_argument("--commit", default=head_commit())
    parser.add_argument("--one-of-many", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    jobs = matching(plan(), given.only)
    study = Study(
        *(given.out, given.data, given.glove, given.synonyms, given.device, given.epochs, given.limit, given.commit),
        jobs,
    )
    if not given.one_of_many:
        study.prepare(given.records)
    if given.workers > 1:
        command = [sys.executable, *sys.argv, "--workers=1", "--one-of-many", f"--commit={given.commit}"]
        for worker in [subprocess.Popen(command) for _ in range(given.workers)]:
            worker.wait()
        return
    import torch

    torch.set_num_threads(1)
    study.work()


if __name__ == "__main__":
    main()
