"""Which technique holds attention still?  Every technique on real data, many seeds, chosen on validation data alone.

    python bench/stability.py --out DIR --data DIR --glove FILE [--workers 16] [--device cuda] [--only REGEX]

Work is cut into jobs: one model trained and probed each.  Workers take the next job whose needs are met, so that a run
can be stopped and taken up again at any moment; what is there is not done again.  DIR gets one record per job
(records/<job>.json); bench/stability_table.py makes the tables.

First the settings are chosen, on the validation splits of SST-2 and Rotten Tomatoes with two seeds: a published
technique's by macro-F1; ours by the smallest move of attention, the geometric mean over all five probes, among those
within 0.005 of vanilla's macro-F1.  Then they are frozen, and the test splits are read.
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

SETTINGS = {
    "sst2-bilstm": ("sst2", "bilstm"),
    "rt-bilstm": ("rotten_tomatoes", "bilstm"),
    "emotion-bilstm": ("tweet_emotion", "bilstm"),
    "sst2-rnn": ("sst2", "rnn"),
    "sst2-minilm": ("sst2", "transformer:minilm"),
}
CHOSEN_ON = ("sst2-bilstm", "rt-bilstm")
GRID: dict[str, list[dict[str, Any]]] = {
    "word-at": [{"epsilon": e} for e in (0.1, 0.2, 0.4)],
    "word-iat": [{"epsilon": e} for e in (0.1, 0.2, 0.4)],
    "attention-rp": [{"epsilon": e} for e in (0.3, 1.0, 3.0)],
    "attention-at": [{"epsilon": e} for e in (0.1, 0.3, 1.0, 3.0)],
    "attention-iat-word": [{"variant": "word", "epsilon": e} for e in (0.1, 0.3, 1.0)],
    "seat-joint": [{"variant": "joint", "radius": r} for r in (1e-3, 1e-2, 1e-1)],
    "anchored": [
        {"closeness": p, "overlap": o, "noise_radius": n}
        for p, o, n in ((1, 143, 0.1), (10, 143, 0.1), (10, 14.3, 0.1), (10, 143, 0.3), (10, 14.3, 0.3), (1, 14.3, 0.1))
    ],
}
OURS = ("anchored",)
FIXED: dict[str, dict[str, Any]] = {  # as their papers or their code have them
    "vanilla": {},
    "attention-iat-released": {"variant": "released", "epsilon": 0.3},
    "attention-iat-literal": {"variant": "literal", "epsilon": 0.3},
    "seat-paper": {"variant": "paper"},
    "seat-released": {"variant": "released"},
    "seat-released-clamp": {"variant": "released", "clamp": True},
    "seat-paper-no-top-k": {"variant": "paper", "overlap": 0.0},
    "seat-paper-no-stability": {"variant": "paper", "stability": 0.0},
    "seat-paper-neither": {"variant": "paper", "overlap": 0.0, "stability": 0.0},
}
TEACHERS = 5
PROBES = ("noise", "worst-label", "worst-attention", "3-synonyms", "3-neighbours")
WITHIN = 0.005
"""Validation macro-F1 that a setting of ours may cost."""


@dataclass(frozen=True)
class Job:
    phase: str  # select | test | seeds
    setting: str
    row: str
    seed: int = 0
    config: int | None = None  # which entry of the grid, while choosing
    teachers: tuple[str, ...] = ()  # jobs whose models it starts from or is held against
    needs: tuple[str, ...] = ()  # other jobs that must be done first

    @property
    def id(self) -> str:
        tail = f".c{self.config}" if self.config is not None else ""
        return f"{self.phase}.{self.setting}.{self.row}.s{self.seed}{tail}"

    @property
    def technique(self) -> str:
        names = ("attention-iat", "attention-at", "attention-rp", "seat", "consensus")
        return next((name for name in names if self.row.startswith(name)), self.row)


def plan() -> list[Job]:
    """All jobs, the most wanted first."""
    choosing = [
        Job("select", setting, row, seed, i, (Job("select", setting, "vanilla", seed).id,))
        for row in ("anchored", "word-at", *(r for r in GRID if r not in ("anchored", "word-at")))
        for i in range(len(GRID[row]))
        for setting in CHOSEN_ON
        for seed in (0, 1)
    ]
    plain = [Job("select", setting, "vanilla", seed) for setting in CHOSEN_ON for seed in (0, 1)]
    chosen = {row: tuple(j.id for j in (*choosing, *plain) if j.row in (row, "vanilla")) for row in GRID}
    words = [s for s in SETTINGS if s != "sst2-minilm"]
    jobs = [Job("test", s, "vanilla", seed) for s in words for seed in range(25)]
    jobs += [Job("test", s, "word-at", seed, needs=chosen["word-at"]) for s in words for seed in range(5)]
    jobs += [_anchored("anchored", s, seed, chosen) for s in words for seed in range(5)]
    jobs += [_consensus("consensus", "vanilla", s, seed, chosen) for s in words for seed in range(5)]
    jobs += [_with_vanilla("seat-paper", s, seed, ()) for s in words for seed in range(5)]
    rest = [r for r in GRID if r not in ("anchored", "word-at")]
    jobs += [_with_vanilla(r, s, seed, chosen[r]) for r in rest for s in words for seed in range(5)]
    jobs += [_with_vanilla("attention-iat-released", s, seed, ()) for s in words for seed in range(5)]
    jobs += [_with_vanilla("attention-iat-literal", s, seed, ()) for s in words for seed in range(5)]
    jobs += [_with_vanilla("seat-released-clamp", s, seed, ()) for s in words for seed in range(2)]
    jobs += [Job("test", s, "word-at", seed, needs=chosen["word-at"]) for s in words for seed in range(5, 25)]
    jobs += [_consensus("consensus-at", "word-at", s, seed, chosen) for s in words for seed in range(5)]
    jobs += [
        _with_vanilla(r, "sst2-bilstm", seed, ()) for r in FIXED if r.startswith("seat-paper-") for seed in range(5)
    ]
    jobs += [_with_vanilla("seat-released", s, seed, ()) for s in words for seed in range(5)]
    jobs += [_with_vanilla("seat-released-clamp", s, seed, ()) for s in words for seed in range(2, 5)]
    jobs += [Job("test", "sst2-minilm", "vanilla", seed) for seed in range(25)]
    jobs += [_with_vanilla("seat-paper", "sst2-minilm", seed, ()) for seed in range(5)]
    jobs += [Job("test", "sst2-minilm", "word-at", seed, needs=chosen["word-at"]) for seed in range(5)]
    jobs += [_consensus("consensus", "vanilla", "sst2-minilm", seed, chosen) for seed in range(5)]
    together: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        together.setdefault((job.setting, job.row), []).append(job.id)
    seeds = [Job("seeds", s, row, needs=tuple(ids)) for (s, row), ids in together.items() if len(ids) > 1]
    first = [job for job in jobs if job.row == "vanilla" and job.setting in CHOSEN_ON]
    ours = 4 * len(GRID["anchored"])
    return [*plain, *choosing[:ours], *first, *choosing[ours:], *(job for job in jobs if job not in first), *seeds]


def _vanilla(setting: str, seed: int) -> str:
    return Job("test", setting, "vanilla", seed).id


def _with_vanilla(row: str, setting: str, seed: int, needs: tuple[str, ...]) -> Job:
    return Job("test", setting, row, seed, None, (_vanilla(setting, seed),), needs)


def _anchored(row: str, setting: str, seed: int, chosen: dict[str, tuple[str, ...]]) -> Job:
    return Job("test", setting, row, seed, None, (_vanilla(setting, seed),), chosen["anchored"])


def _consensus(row: str, teacher: str, setting: str, seed: int, chosen: dict[str, tuple[str, ...]]) -> Job:
    group = tuple(Job("test", setting, teacher, s).id for s in range(TEACHERS * seed, TEACHERS * seed + TEACHERS))
    return Job("test", setting, row, seed, None, group, chosen["anchored"])


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
            new.write_text(json.dumps(result))
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
        if job.row.startswith("consensus"):
            teacher = {"teacher": "word-at" if job.row == "consensus-at" else "vanilla"}
            return {**self.frozen("anchored"), **teacher, "teachers": TEACHERS}
        return self.frozen(job.row) if job.row in GRID else FIXED[job.row]

    def frozen(self, row: str) -> dict[str, Any]:
        """The entry of the grid that the validation splits chose."""
        scores = {i: self._validated(row, i) for i in range(len(GRID[row]))}
        if row in OURS:
            least = self._validated("vanilla", None)[0] - WITHIN
            able = {i: score for i, score in scores.items() if score[0] >= least} or scores
            return GRID[row][min(able, key=lambda i: able[i][1])]
        return GRID[row][max(scores, key=lambda i: scores[i][0])]

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
