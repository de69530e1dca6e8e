"""Which technique holds attention still?  Every technique on real data, many seeds, chosen on validation data alone.

    python bench/stability.py --out DIR --data DIR --glove FILE [--workers 16] [--device cuda] [--only REGEX]

Work is cut into jobs: one model trained and probed each.  Workers take the next job whose needs are met, so that a run
can be stopped and taken up again at any moment; what is there is not done again.  DIR gets one record per job
(records/<job>.json); bench/stability_table.py makes the tables.

First the settings are chosen, on the validation splits of SST-2 and Rotten Tomatoes with two seeds, by one rule for
all: the smallest move of attention, the geometric mean over five probes, among those within 0.005 of vanilla's
macro-F1; some published ones a second time, by macro-F1 alone.  Then they are frozen, and the test splits are read.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stability_plan import BY_F1, CHOSEN_ON, FIXED, GRID, PROBES, TEACHERS, WITHIN, WITHOUT, Job, plan


@dataclass
class Study:
    """Where everything lies, and what one worker does."""

    out: Path
    data: Path
    glove: Path
    device: str
    epochs: int | None = None
    minilm: str = "transformer:minilm"
    jobs: list[Job] = field(default_factory=plan)
    read: dict[str, Any] = field(default_factory=dict)

    def record(self, job_id: str) -> Path:
        return self.out / "records" / f"{job_id}.json"

    def work(self) -> None:
        """Until nothing is left to do."""
        for name in ("records", "claims", "models", "seen"):
            (self.out / name).mkdir(parents=True, exist_ok=True)
        while job := self._next():
            started = time.time()
            try:
                result = self._seeds(job) if job.phase == "seeds" else self._run(job)
            except Exception:
                result = {"error": traceback.format_exc()}
            result |= {"id": job.id, "setting": job.setting, "row": job.row, "seed": job.seed, "phase": job.phase}
            result["seconds"] = time.time() - started
            new = self.record(job.id).with_suffix(".tmp")
            new.write_text(json.dumps(result) + "\n")
            os.replace(new, self.record(job.id))
            print(f"{job.id}  {result['seconds']:.0f} s  {result.get('macro-f1', result.get('error', ''))}", flush=True)

    def _next(self) -> Job | None:
        while True:
            waiting = False
            for job in self.jobs:
                if self.record(job.id).exists() or (self.out / "claims" / job.id).exists():
                    waiting |= not self.record(job.id).exists()
                    continue
                waiting = True
                if all(self.record(need).exists() for need in (*job.teachers, *job.needs)):
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
        if job.temper:
            return {}
        if job.technique in ("anchored", "consensus"):
            teachers = {"teachers": TEACHERS, "teacher": "word-at" if job.row == "consensus-at" else "vanilla"}
            own = teachers if job.technique == "consensus" else {}
            return {**self.frozen("anchored"), **own, **WITHOUT.get(job.row, {})}
        if job.row in BY_F1:
            return self.frozen(BY_F1[job.row], by_f1=True)
        return self.frozen(job.row) if job.row in GRID else FIXED[job.row]

    def frozen(self, row: str, by_f1: bool = False) -> dict[str, Any]:
        """The entry of the grid that the validation splits chose."""
        scores = {i: self._validated(row, i) for i in range(len(GRID[row]))}
        if by_f1:
            return GRID[row][max(scores, key=lambda i: scores[i][0])]
        least = self._validated("vanilla", None)[0] - WITHIN
        able = {i: score for i, score in scores.items() if score[0] >= least}
        if not able:  # none is good enough: the most accurate
            return self.frozen(row, by_f1=True)
        return GRID[row][min(able, key=lambda i: able[i][1])]

    def _validated(self, row: str, config: int | None) -> tuple[float, float]:
        """Mean macro-F1, and geometric mean of all moves of attention."""
        ids = [Job("select", s, row, seed, config).id for s in CHOSEN_ON for seed in (0, 1)]
        found = [json.loads(self.record(i).read_text()) for i in ids]
        from statistics import geometric_mean, mean

        return mean(r["macro-f1"] for r in found), geometric_mean(
            r[f"jensen-shannon/{p}"] for r in found for p in PROBES
        )

    def _run(self, job: Job) -> dict[str, Any]:
        from stability_probe import fitted, measured

        config = self.config(job)
        clf = fitted(self, job, config)
        if job.row in ("vanilla", "word-at") and job.config is None:
            clf.save(self.out / "models" / job.id)
        return {"config": config, **measured(self, job, clf, "validation" if job.phase == "select" else "test")}

    def _seeds(self, job: Job) -> dict[str, Any]:
        from stability_probe import between

        return between([self.out / "seen" / f"{need}.npz" for need in job.needs])

    def corpus(self, name: str) -> Any:
        from steadygaze import load_corpus

        if name not in self.read:
            self.read[name] = load_corpus(name, data_dir=self.data)
        return self.read[name]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--glove", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=0, help="0: work here")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--minilm", default="transformer:minilm")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.workers:
        command = [sys.executable, *sys.argv, "--workers=0"]  # the last one counts
        for worker in [subprocess.Popen(command) for _ in range(arguments.workers)]:
            worker.wait()
        return
    import torch

    torch.set_num_threads(1)
    study = Study(arguments.out, arguments.data, arguments.glove, arguments.device, arguments.epochs, arguments.minilm)
    study.jobs = [job for job in study.jobs if re.search(arguments.only, job.id)]
    study.work()


if __name__ == "__main__":
    main()
