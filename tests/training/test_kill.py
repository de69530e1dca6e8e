"""SIGKILL, with real processes: a run that is killed inside a write and resumed ends in the bytes of another run."""

import glob
import hashlib
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch

from kills import forked
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator import resumable_training
from steadygaze.estimator.text_classifier import TextClassifier

WRITES = {
    "checkpoint": "model.unfinished/.checkpoint.safetensors.*.tmp/*",
    "model": ".model.*.tmp/*",
}
ATTEMPTS = 10


def train(folder: Path) -> None:
    """Texts are truncated, for short runs; word vectors are wide, so that a write takes some time."""
    torch.set_num_threads(1)
    corpus = load_corpus("planted-reviews:sizes=[160,32,32]")
    shape = {"hidden": 8, "dimension": 2048, "dropout": 0.2, "patience": 4}
    clf = TextClassifier("bilstm", epochs=4, settings=shape, max_length=8, device="cpu", verbose=False)
    resumable_training.train(clf, corpus, folder / "model", resume=True)


def start(folder: Path) -> BaseProcess:
    folder.mkdir(exist_ok=True)
    return forked(train, folder)


def finish(folder: Path) -> dict[str, str]:
    """Start or resume the run; the hashes of the model's files."""
    (process := start(folder)).join(600)
    assert process.exitcode == 0
    assert not (folder / "model.unfinished").exists()
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (folder / "model").iterdir()}


def is_killed_in_write(folder: Path, pattern: str) -> bool:
    """Kill a run as soon as it writes; False: the write was over before."""
    process = start(folder)
    while not glob.glob(str(folder / pattern)) and process.is_alive():
        time.sleep(0.0005)
    process.kill()
    process.join()
    return bool(glob.glob(str(folder / pattern)))


@pytest.mark.slow  # tests/test_kills.py restores what a kill leaves at each disk operation
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is a Unix thing")
def test_a_run_killed_inside_a_write_and_resumed_ends_in_the_same_bytes(tmp_path: Path) -> None:
    expected = finish(tmp_path / "undisturbed")
    for name, pattern in WRITES.items():
        folders = [tmp_path / f"{name}-{attempt}" for attempt in range(ATTEMPTS)]
        killed = next(folder for folder in folders if is_killed_in_write(folder, pattern))
        assert finish(killed) == expected
