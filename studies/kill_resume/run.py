"""Comparison of models from training that is killed at random moments and resumed with undisturbed training.

For each kill, a process runs `steadygaze train --resume` and receives SIGKILL.  A second process resumes the run to its
end.  Every file of the model folder must then have the SHA-256 of an undisturbed run, and the run's folder must be
deleted.  The model is small, but its checkpoint is large (wide word vectors), so that a write takes some time.  A kill
counts as inside a write if it leaves a partly written or partly deleted file.
"""

import glob
import hashlib
import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

EPOCHS = 4
TIMEOUT = 60.0  # seconds that a process may take to reach a phase


def train(folder: Path) -> None:
    """Start or resume the run in this folder, and save the model."""
    import torch

    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.text_classifier import TextClassifier

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # texts are truncated on purpose, for short runs
    corpus = load_corpus("planted-reviews:sizes=[160,32,32]")
    shape = {"hidden": 8, "dimension": 2048, "dropout": 0.2, "patience": EPOCHS}
    clf = TextClassifier("bilstm", epochs=EPOCHS, settings=shape, max_length=8, device="cpu", verbose=False)
    (folder / "begun").touch()
    resumable_training.train(clf, corpus, folder / "model", resume=True)


def hashes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


CHECKPOINT = {
    "filling": "model.unfinished/.checkpoint.safetensors.*.tmp/.tmp*",
    "flushing": "model.unfinished/.checkpoint.safetensors.*.tmp/checkpoint.safetensors",
}
"""Phases of a checkpoint in every epoch: safetensors writes a temporary file, which is then flushed and renamed."""
ENDING = {
    "saving": ".model.*.tmp/*",
    "saved": "model.unfinished/*",  # when there is a model beside it
    "clearing": ".model.unfinished.*.old/*",
}
"""Phases at the end: the model is saved beside the run's folder, which is then renamed and deleted."""
PHASES = CHECKPOINT | ENDING


def partial_files(folder: Path, phase: str) -> list[Path]:
    """Files that are being written or deleted, or were when the process died."""
    if phase == "saved" and not (folder / "model").exists():
        return []
    # Unlike Path.glob, glob.glob ignores folders that are deleted meanwhile.
    return [Path(file) for file in glob.glob(str(folder / PHASES[phase]))]


@dataclass
class Kill:
    when: str
    process: BaseProcess
    partial_files: dict[str, int]
    """Phase -> bytes of the files that were being written or deleted."""

    @property
    def was_killed(self) -> bool:
        return self.process.exitcode == -signal.SIGKILL


class Trial:
    """One folder: a run, its kill, its resumption."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def start(self) -> BaseProcess:
        process = multiprocessing.get_context("forkserver").Process(target=train, args=(self.folder,))
        (self.folder / "begun").unlink(missing_ok=True)
        process.start()
        self.wait(process, (self.folder / "begun").exists)
        return process

    def wait(self, process: BaseProcess, condition: Callable[[], object]) -> None:
        """Wait until a condition is true, or the process has ended."""
        limit = time.monotonic() + TIMEOUT
        while not condition() and process.is_alive():
            if time.monotonic() > limit:
                process.kill()
                raise TimeoutError("the process under test hangs")
            time.sleep(0.0005)

    def kill_at(self, seconds: float) -> Kill:
        process = self.start()
        process.join(seconds)
        return self._kill(process, f"{seconds:.2f} s")

    def kill_in_write(self, number: int, phase: str) -> Kill:
        """Kill the process inside the n-th write of the run."""
        process = self.start()
        seen: set[Path] = set()

        def has_written() -> bool:
            seen.update(partial_files(self.folder, phase))
            return len(seen) >= number

        self.wait(process, has_written)
        return self._kill(process, f"{phase} {number}")

    def _kill(self, process: BaseProcess, when: str) -> Kill:
        process.kill()  # SIGKILL
        process.join()
        by_phase = {phase: partial_files(self.folder, phase) for phase in PHASES}
        size = {phase: sum(map(written_bytes, files)) for phase, files in by_phase.items() if files}
        return Kill(when, process, size)

    def finish(self) -> float:
        """Resume the run to its end; return its seconds."""
        process = self.start()
        start = time.monotonic()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a run was not resumed: exit code {process.exitcode}")
        return time.monotonic() - start


def written_bytes(file: Path) -> int:
    return len(file.read_bytes().rstrip(b"\0"))  # the file is allocated with zeros


@dataclass
class KillPlan:
    """Selects the moments of kills until there are enough in each phase."""

    inside: int
    ending: int
    generator: random.Random
    kills: list[Kill] = field(default_factory=list)

    def count(self, phases: Iterable[str]) -> int:
        return sum(not kill.partial_files.keys().isdisjoint(phases) for kill in self.kills)

    def kill(self, trial: Trial, duration: float) -> bool:
        """Kill a run; False if the run or the phase was over before."""
        if self.count(CHECKPOINT) < self.inside:
            phases, number = CHECKPOINT, self.generator.randint(1, EPOCHS)
        elif self.count(ENDING) < self.ending:
            phases, number = ENDING, 1
        else:
            phases, number = {}, 0
        if phases:
            kill = trial.kill_in_write(number, self.generator.choice(list(phases)))
        else:
            kill = trial.kill_at(self.generator.uniform(0, duration))
        if not kill.was_killed or (phases and kill.partial_files.keys().isdisjoint(phases)):
            return False
        self.kills.append(kill)
        return True


def run(*, kills: int = 20, inside: int = 5, ending: int = 5, seed: int = 0) -> None:
    """`inside`, `ending`: smallest numbers inside a checkpoint's write, and while the model is saved or later."""
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: bits depend on the number of threads
    multiprocessing.set_forkserver_preload(["steadygaze.estimator.resumable_training", "torch._dynamo"])
    plan = KillPlan(inside, ending, random.Random(seed))

    with tempfile.TemporaryDirectory() as base:
        reference = Trial(Path(base) / "reference")
        duration = reference.finish()
        expected = hashes(reference.folder / "model")
        print(f"undisturbed: {duration:.1f} s, files: {', '.join(expected)}\n")
        print("kill  moment      partial files            the model's bytes")
        different = attempt = 0
        while len(plan.kills) < kills:
            attempt += 1
            trial = Trial(Path(base) / str(attempt))
            if not plan.kill(trial, duration):
                continue
            trial.finish()
            same = hashes(trial.folder / "model") == expected and not (trial.folder / "model.unfinished").exists()
            different += not same
            kill = plan.kills[-1]
            files = ", ".join(f"{phase} {size / 1e6:.1f} MB" for phase, size in kill.partial_files.items()) or "-"
            print(f"{len(plan.kills):4}  {kill.when:10}  {files:23}  {'the same' if same else 'DIFFERENT'}", flush=True)
    written, ended = plan.count(CHECKPOINT), plan.count(ENDING)
    print(f"\n{kills} kills, {written} inside a checkpoint's write, {ended} at the end, {different} different")
    if different:
        raise SystemExit(1)
