"""Kill -9 at random moments of training, some inside a write; resumed, every run must end in the same bytes.

For each kill a process of its own does what `steadygaze train --resume` does, and is sent SIGKILL; another does the
same to its end.  Then every file of the model folder must have the SHA-256 it has after a run that nobody disturbed,
and the run's folder must be gone.  The model is small, but its checkpoint is not (wide word vectors), so that a write
takes a while.  A kill counts as inside a write when what was being written or deleted is found lying there afterward.

    python bench/kill_resume.py [--kills 20] [--inside 5] [--ending 5] [--seed 0]

Exits with 1 on any difference.
"""

import argparse
import glob
import hashlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

EPOCHS = 4
PATIENCE = 60.0  # seconds to wait for a process to get somewhere


def train(folder: Path) -> None:
    """One process' work: start the run in this folder, or take it up, and save the model."""
    import torch

    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.text_classifier import TextClassifier

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # that texts are cut short: on purpose, so that a run is quick
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
"""In every epoch a checkpoint is filled, by safetensors under a name of its own, then flushed and renamed."""
ENDING = {
    "saving": ".model.*.tmp/*",
    "saved": "model.unfinished/*",  # when there is a model beside it
    "clearing": ".model.unfinished.*.old/*",
}
"""At last the model is saved beside the run's folder, which is then renamed and deleted."""
PHASES = CHECKPOINT | ENDING


def torn(folder: Path, phase: str) -> list[Path]:
    """What is being written or deleted, or was when its process died."""
    if phase == "saved" and not (folder / "model").exists():
        return []
    return [Path(file) for file in glob.glob(str(folder / PHASES[phase]))]  # calm where files vanish under its eyes


@dataclass
class Kill:
    when: str
    process: BaseProcess
    torn: dict[str, int]
    """How many bytes were found of what was being written or deleted, by phase."""

    @property
    def landed(self) -> bool:
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

    def wait(self, process: BaseProcess, come: Callable[[], object]) -> None:
        """Until something has come, or the process has gone."""
        limit = time.monotonic() + PATIENCE
        while not come() and process.is_alive():
            if time.monotonic() > limit:
                process.kill()
                raise TimeoutError("the process under test hangs")
            time.sleep(0.0005)

    def kill_at(self, seconds: float) -> Kill:
        process = self.start()
        process.join(seconds)
        return self._kill(process, f"{seconds:.2f} s")

    def kill_in_write(self, number: int, phase: str) -> Kill:
        """Inside the n-th write of the run."""
        process = self.start()
        seen: set[Path] = set()
        self.wait(process, lambda: seen.update(torn(self.folder, phase)) or len(seen) >= number)
        return self._kill(process, f"{phase} {number}")

    def _kill(self, process: BaseProcess, when: str) -> Kill:
        process.kill()  # SIGKILL
        process.join()
        left = {phase: torn(self.folder, phase) for phase in PHASES}
        size = {phase: sum(map(written, files)) for phase, files in left.items() if files}
        return Kill(when, process, size)

    def finish(self) -> float:
        """Take the run up to its end; how many seconds that took."""
        process = self.start()
        begun = time.monotonic()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a run was not taken up: exit code {process.exitcode}")
        return time.monotonic() - begun


def written(file: Path) -> int:
    return len(file.read_bytes().rstrip(b"\0"))  # its room is taken beforehand


@dataclass
class Aim:
    """Chooses the moments, until enough kills have landed where they should."""

    inside: int
    ending: int
    chance: random.Random
    kills: list[Kill] = field(default_factory=list)

    def landed(self, phases: Iterable[str]) -> int:
        return sum(not kill.torn.keys().isdisjoint(phases) for kill in self.kills)

    def kill(self, trial: Trial, whole: float) -> bool:
        """Whether it came in time: else the run, or what was aimed at, was over."""
        if self.landed(CHECKPOINT) < self.inside:
            phases, number = CHECKPOINT, self.chance.randint(1, EPOCHS)
        elif self.landed(ENDING) < self.ending:
            phases, number = ENDING, 1
        else:
            phases, number = {}, 0
        if phases:
            kill = trial.kill_in_write(number, self.chance.choice(list(phases)))
        else:
            kill = trial.kill_at(self.chance.uniform(0, whole))
        if not kill.landed or (phases and kill.torn.keys().isdisjoint(phases)):
            return False
        self.kills.append(kill)
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how many in all")
    parser.add_argument("--inside", type=int, default=5, help="how many of them, at least, inside a checkpoint's write")
    parser.add_argument("--ending", type=int, default=5, help="how many, at least, while the model is saved or after")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: bits depend on the number of threads
    multiprocessing.set_forkserver_preload(
        ["steadygaze.estimator.resumable_training", "torch._dynamo"]
    )  # else every process loads them
    aim = Aim(chosen.inside, chosen.ending, random.Random(chosen.seed))

    with tempfile.TemporaryDirectory() as base:
        reference = Trial(Path(base) / "reference")
        whole = reference.finish()
        expected = hashes(reference.folder / "model")
        print(f"undisturbed: {whole:.1f} s, files: {', '.join(expected)}\n")
        print("kill  moment      found lying there        the model's bytes")
        different = attempt = 0
        while len(aim.kills) < chosen.kills:
            attempt += 1
            trial = Trial(Path(base) / str(attempt))
            if not aim.kill(trial, whole):
                continue
            trial.finish()
            same = hashes(trial.folder / "model") == expected and not (trial.folder / "model.unfinished").exists()
            different += not same
            kill = aim.kills[-1]
            left = ", ".join(f"{phase} {size / 1e6:.1f} MB" for phase, size in kill.torn.items()) or "-"
            print(f"{len(aim.kills):4}  {kill.when:10}  {left:23}  {'the same' if same else 'DIFFERENT'}", flush=True)
    inside, ending = aim.landed(CHECKPOINT), aim.landed(ENDING)
    print(f"\n{chosen.kills} kills, {inside} inside a checkpoint's write, {ending} at the end, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
