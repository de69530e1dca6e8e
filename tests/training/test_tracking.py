"""Epochs in TensorBoard, MLflow and Weights & Biases."""

import struct
import sys
from pathlib import Path

import pytest

from steadygaze import TextClassifier
from steadygaze.core.errors import UserError
from steadygaze.training import tracking

TEXTS, LABELS = ["a good film", "a dull film"] * 10, ["yes", "no"] * 10


def classifier(track: str) -> TextClassifier:
    return TextClassifier("average", epochs=3, settings={"small_data": False}, device="cpu", verbose=False, track=track)


def events(folder: Path) -> list:
    """All events of TensorBoard's files: length, checksum, record, checksum."""
    from tensorboardX.proto.event_pb2 import Event

    results = []
    for file in sorted(folder.rglob("events*")):
        content = file.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            results.append(Event.FromString(content[12 : 12 + length]))
            content = content[16 + length :]
    return results


def test_every_epoch_is_an_event_of_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    clf = classifier(f"tensorboard:{tmp_path}").fit(TEXTS, LABELS)
    logged = [(e.step, v.tag, v.simple_value) for e in events(tmp_path) for v in e.summary.value]
    scores = {step: value for step, tag, value in logged if tag == "train/macro-f1"}
    assert scores == {i: pytest.approx(epoch["macro-f1"]) for i, epoch in enumerate(clf.history_, 1)}
    losses = {step: value for step, tag, value in logged if tag == "train/terms/task"}
    assert losses == {i: pytest.approx(epoch["terms"]["task"]) for i, epoch in enumerate(clf.history_, 1)}


@pytest.mark.parametrize(("service", "tracker"), [("mlflow", "MLflowTracker"), ("wandb", "WandBTracker")])
def test_services_get_the_configuration_and_every_epoch(monkeypatch, service, tracker):
    calls: list[tuple] = []

    class Recorded:
        def __init__(self, *names, **options):
            calls.append(("open", *names))

        def start(self):
            calls.append(("start",))

        def store_init_configuration(self, values):
            calls.append(("config", values["encoder"], values["seed"]))

        def log(self, values, step):
            calls.append(("log", step, values["train/macro-f1"]))

        def finish(self):
            calls.append(("finish",))

    monkeypatch.setattr(f"accelerate.tracking.{tracker}", Recorded)
    monkeypatch.setattr(tracking, "find_spec", lambda name: True)
    clf = classifier(service).fit(TEXTS, LABELS)
    epochs = [("log", i, epoch["macro-f1"]) for i, epoch in enumerate(clf.history_, 1)]
    assert calls == [("open", "steadygaze"), ("start",), ("config", "average", 0), *epochs, ("finish",)]
    assert service not in sys.modules


@pytest.mark.parametrize(
    ("track", "installed", "message"),
    [
        ("tensorbord", True, "track: unknown service 'tensorbord'; known: tensorboard, mlflow, wandb"),
        ("wandb:x", False, "track: wandb is not installed: pip install wandb"),
    ],
)
def test_services_are_checked_before_training(monkeypatch, track, installed, message):
    monkeypatch.setattr(tracking, "find_spec", lambda name: installed or None)
    with pytest.raises(UserError, match=message):
        classifier(track).fit(TEXTS, LABELS)
