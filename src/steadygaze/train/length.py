"""How long a stage lasts: as `settings` says, more epochs where texts are few, and fewer where nothing gets better."""

import numpy as np

from steadygaze.objective.technique import Stage
from steadygaze.train.loop import Job
from steadygaze.train.settings import EPOCHS
from steadygaze.train.state import State


def steps(job: Job) -> int:
    """Of one epoch."""
    return -(-len(job.train) // job.training.batch_size)


def longest(job: Job, stage: Stage) -> int:
    """Epochs at most."""
    return job.training.longest(steps(job)) if stage.epochs is None else stage.epochs


def over(job: Job, stage: Stage, state: State) -> bool:
    """Whether a stage has run long enough, or in vain: epochs no better than guessing do not count as that."""
    if state.epoch >= longest(job, stage):
        return True
    patience = job.training.patient(steps(job)) if stage.epochs is None else job.training.patience
    guessing = 1 / len(np.unique(job.train.label))  # type: ignore[arg-type]  # a split to train on has labels
    of_this_stage = state.history[len(state.history) - state.epoch :]
    scores = [record["macro-f1"] for record in of_this_stage]
    first = scores.index(max(scores)) + 1 if scores else 0  # surer alone is not better
    waited = sum(score > guessing for score in scores[first:])
    return stage.select != "last" and waited >= patience


def say_if_longer(job: Job) -> None:
    """Where there are more epochs than usual because texts are few."""
    each, most = steps(job), job.training.longest(steps(job))
    if job.training.epochs is None and most > EPOCHS:
        few = f"{len(job.train):,} texts are {each} step{'s' * (each > 1)} an epoch"
        job.watcher.say(f"{few}: they are read up to {most} times, not {EPOCHS} (--epochs says how often)")
