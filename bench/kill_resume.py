"""Kill -9 at random moments of training, some inside a checkpoint write; resumed, every run must end in the same bytes.

For each kill a process of its own trains a small model with a checkpoint folder and is sent SIGKILL; another process
takes the run up to its end.  Then every file of the model folder must have the SHA-256 it has after a run that nobody
disturbed.  The model is small, but its checkpoint is not (wide word vectors), so that a write takes a while.  A kill
counts as inside a write when the file is found lying there afterwards, half-written or not yet renamed.

    python bench/kill_resume.py [--kills 20] [--inside 5] [--seed 0]

Exits with 1 on any difference.
"""

import argparse
import hashlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

EPOCHS = 4
PATIENCE = 60.0  # seconds to wait for a process to get somewhere


def train(folder: Path) -> None:
    """One process' work: start the run in this folder, or take it up, and save the model."""
    import torch

    from steadygaze import TextClassifier, load_corpus

    torch.set_num_threads(1)
    splits = load_corpus("planted-reviews:sizes=[320,64,64]").splits
    (texts, labels), validation = (
        ([e.text for e in splits[name]], [e.label for e in splits[name]]) for name in ("train", "validation")
    )
    shape = {"hidden": 8, "dimension": 2048, "dropout": 0.2, "patience": EPOCHS}
    clf = TextClassifier("bilstm", epochs=EPOCHS, settings=shape, max_length=12, device="cpu", verbose=False)
    (folder / "begun").touch()
    clf.fit(texts, labels, validation=validation, checkpoint=folder / "run", resume=True)
    clf.save(folder / "model")


def hashes(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


PHASES = {"filling": ".tmp??????", "flushing": ".checkpoint.safetensors.*.tmp"}
"""A checkpoint is first filled, by safetensors under a name of its own; then it is flushed to the disk and renamed."""


def torn(folder: Path, *phases: str) -> list[Path]:
    """Checkpoints that are being written, or were when their process died."""
    return [file for phase in phases or PHASES for file in (folder / "run").glob(PHASES[phase])]


@dataclass
class Kill:
    when: str
    process: BaseProcess
    torn: int | None
    """How many bytes had been written of a checkpoint that was left behind without its name, if one was."""

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
        left = [len(file.read_bytes().rstrip(b"\0")) for file in torn(self.folder)]  # its room is taken beforehand
        return Kill(when, process, left[0] if left else None)

    def finish(self) -> float:
        """Take the run up to its end; how many seconds that took."""
        process = self.start()
        begun = time.monotonic()
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a run was not taken up: exit code {process.exitcode}")
        return time.monotonic() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how many in all")
    parser.add_argument("--inside", type=int, default=5, help="how many of them, at least, inside a write")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded: bits depend on the number of threads
    multiprocessing.set_forkserver_preload(["steadygaze.estimator"])
    chance = random.Random(chosen.seed)

    with tempfile.TemporaryDirectory() as base:
        reference = Trial(Path(base) / "reference")
        whole = reference.finish()
        expected = hashes(reference.folder / "model")
        size = (reference.folder / "run" / "checkpoint.safetensors").stat().st_size
        print(f"undisturbed: {whole:.1f} s, checkpoint of {size / 1e6:.1f} MB, files: {', '.join(expected)}\n")
        print("kill  moment           written   the model's bytes")
        kills: list[Kill] = []
        different = attempt = 0
        while len(kills) < chosen.kills:
            attempt += 1
            trial = Trial(Path(base) / str(attempt))
            inside = sum(kill.torn is not None for kill in kills) < chosen.inside
            if inside:
                kill = trial.kill_in_write(chance.randint(1, EPOCHS), chance.choice(list(PHASES)))
            else:
                kill = trial.kill_at(chance.uniform(0, whole))
            if not kill.landed or (inside and kill.torn is None):
                continue  # too late: the run, or the write, was over
            kills.append(kill)
            trial.finish()
            same = hashes(trial.folder / "model") == expected and not torn(trial.folder)
            different += not same
            left = "-" if kill.torn is None else f"{kill.torn / 1e6:.1f} MB"
            print(f"{len(kills):4}  {kill.when:10}  {left:>12}   {'the same' if same else 'DIFFERENT'}", flush=True)
    print(f"\n{len(kills)} kills, {sum(k.torn is not None for k in kills)} inside a write, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
