"""After a rationalizer is trained: its independent reader, and a warning where the selection leaks the label."""

from typing import Any

import torch

from steadygaze import infer
from steadygaze.batch import Data
from steadygaze.explain.learned.independent_reader import STREAM
from steadygaze.explain.rationale_reader import fit_reader, rationale_readings
from steadygaze.explain.readings import PREDICTED, evened
from steadygaze.rationaliser import Rationaliser
from steadygaze.report.interval import mean_row
from steadygaze.report.warned import PREDICTOR, leakage, leaks
from steadygaze.train.loop import Job
from steadygaze.train.seed import derive, own_chance

FEWEST = 30
"""Validation texts below which nothing is said."""


def add_reader(model: Rationaliser, job: Job, epochs: int, seed: int) -> dict[str, dict[str, Any]]:
    """Trains the reader, which stays with the model; its scores on the validation texts, by measure.

    Nothing is drawn from torch's own generator, and the weights of the rationalizer do not change.
    """
    model.to(job.accelerator.device)
    with own_chance():
        torch.manual_seed(derive(seed, STREAM))  # for the reader's dropout
        reader = fit_reader(model, job.train, job.validation, epochs * len(job.train), seed)
    if reader is None:
        model.cpu()
        return {}
    model.reader = reader
    found = {name: mean_row(name, values) for name, values in scores(model, job.validation).items()}
    if len(job.validation) >= FEWEST and leaks(found):
        job.watcher.warn(leakage(found, PREDICTOR, target="the label"))
    model.cpu()
    return {name: {"value": row.value, "interval": row.interval, "n": row.n} for name, row in found.items()}


def scores(model: Rationaliser, data: Data) -> dict[str, list[float]]:
    """One number per text, by the names of the audit's catalogue."""
    parts = []
    for _, batch, said in infer.forwards(model, data):
        readings = rationale_readings(model, batch, said.selected, said.logits)
        assert readings is not None
        parts.append({**readings.measures(said.logits), PREDICTED: said.logits.argmax(-1)})
    found = evened({name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]})
    return {name: values.tolist() for name, values in found.items() if name != PREDICTED}
