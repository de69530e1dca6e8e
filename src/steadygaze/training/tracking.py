"""Log epochs to TensorBoard, MLflow or Weights & Biases, through the trackers of accelerate.

    tensorboard[:FOLDER]   event files; default folder: runs
    mlflow[:URI]           a tracking server or folder; default: that of MLflow
    wandb[:PROJECT]        default project: steadygaze

A service is imported only if it is named.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.training.progress import Watcher

PACKAGES = {"tensorboard": ("tensorboard", "tensorboardX"), "mlflow": ("mlflow",), "wandb": ("wandb",)}
"""Service -> packages that provide it."""


def check_track(track: str | None) -> None:
    """Refuse an unknown service, or one that is not installed."""
    if track is None:
        return
    service = track.partition(":")[0]
    if service not in PACKAGES:
        raise UserError(f"track: unknown service {service!r}; known: {', '.join(PACKAGES)}")
    if not any(find_spec(name) for name in PACKAGES[service]):
        raise UserError(f"track: {service} is not installed: pip install {PACKAGES[service][0]}")


def open_tracker(track: str, run: str, config: Mapping[str, Any]) -> Any:
    """A started tracker of accelerate, which has stored the configuration."""
    from accelerate import PartialState
    from accelerate.tracking import MLflowTracker, TensorBoardTracker, WandBTracker

    check_track(track)
    PartialState()  # trackers log in the main process only
    service, _, place = track.partition(":")
    if service == "tensorboard":
        tracker: Any = TensorBoardTracker(run, place or "runs")
    elif service == "mlflow":
        if place:
            import mlflow

            mlflow.set_tracking_uri(place)
        tracker = MLflowTracker("steadygaze", run_name=run)
    else:
        tracker = WandBTracker(place or "steadygaze", name=run)
    tracker.start()
    tracker.store_init_configuration({name: _plain(value) for name, value in config.items()})
    return tracker


def _plain(value: Any) -> Any:
    """Services store numbers and strings."""
    return value if isinstance(value, int | float | str | bool) else str(value)


def flat_numbers(record: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """The numbers of a nested record by path; booleans are 0 and 1.

    >>> flat_numbers({"macro-f1": 0.9, "terms": {"task": 0.5}, "stage": "train", "overlap": None}, "train")
    {'train/macro-f1': 0.9, 'train/terms/task': 0.5}
    """
    numbers: dict[str, float] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            numbers |= flat_numbers(value, f"{prefix}/{name}")
        elif isinstance(value, int | float):
            numbers[f"{prefix}/{name}"] = float(value)
    return numbers


def log_run(track: str, run: str, config: Mapping[str, Any], steps: Sequence[Mapping[str, float]]) -> None:
    """Log a finished run: its configuration, and the numbers of step 1, 2, …"""
    tracker = open_tracker(track, run, config)
    for step, numbers in enumerate(steps, 1):
        tracker.log(dict(numbers), step=step)
    tracker.finish()


def run_name(technique: str, seed: int) -> str:
    """A name that is unique on this machine."""
    return f"{technique}-seed{seed}-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"


class TrackingWatcher:
    """A watcher that logs every epoch, and passes everything on to another."""

    def __init__(self, watcher: Watcher, track: str, run: str, config: Mapping[str, Any]) -> None:
        self.watcher, self.track, self.run, self.config = watcher, track, run, config
        self.skip, self.say, self.detail, self.warn = watcher.skip, watcher.say, watcher.detail, watcher.warn
        self.tracker: Any = None
        self.epochs = 0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        if self.tracker is None:
            self.tracker = open_tracker(self.track, self.run, self.config)
        self.watcher.start(stages, epochs, steps)

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.watcher.step(stage, epoch, terms)

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.epochs += 1
        if self.tracker is not None:
            self.tracker.log(flat_numbers(record, str(record["stage"])), step=self.epochs)
        self.watcher.epoch(record)

    def stop(self) -> None:
        self.watcher.stop()
        if self.tracker is not None:
            self.tracker.finish()
            self.tracker = None
