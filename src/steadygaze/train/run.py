"""A whole run: the stages a technique declares, one after the other, each resumable.

A stage that trains a fresh model draws exactly the chance that a run of its own with that seed would draw.  So a
teacher trained as somebody's stage and the same technique trained alone are the same model, bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from steadygaze.model import Classifier
from steadygaze.objective.technique import Given, Stage, Technique
from steadygaze.train import optim
from steadygaze.train.checkpoint import Checkpoint
from steadygaze.train.loop import Job, Objective, train_epoch, validate
from steadygaze.train.seed import derive, own_chance
from steadygaze.train.state import State

RESULT = "model"
"""The name of the model that a run is for; every other is a means to it."""


@dataclass
class Run:
    technique: Technique
    make_model: Callable[[], Classifier]
    """Draws fresh weights from torch's own generator, which is seeded before every call."""
    job: Job
    seed: int = 0
    checkpoint: Checkpoint | None = None
    models: dict[str, Classifier] = field(default_factory=dict)
    """Finished so far, by name."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One record per epoch: stage, epoch, terms, macro-f1, accuracy."""

    def execute(self) -> Classifier:
        """Train as the technique says."""
        stages = self.technique.stages()
        watcher, training = self.job.watcher, self.job.training
        steps = -(-len(self.job.train) // training.batch_size)
        watcher.start(len(stages), sum(self._epochs(stage) for stage in stages), steps)
        try:
            with own_chance():
                self._all(stages)
        finally:
            watcher.stop()
        return self.models[RESULT].eval()

    def _all(self, stages: tuple[Stage, ...]) -> None:
        saved = self.checkpoint.load() if self.checkpoint else None
        for number, stage in enumerate(stages):
            if saved and number < saved.stage:
                self._recall(stage)
                continue
            visits = sum(earlier.model == stage.model for earlier in stages[:number])
            state = self._begin(stage, (self.seed + stage.seed, visits))
            if saved and number == saved.stage:
                state.unpack(saved.tensors, saved.plain)
                self.history = state.history
                self.job.watcher.skip(state.epoch)
            self._run(number, stage, state)
            self._finish(stage, state)

    def _run(self, number: int, stage: Stage, state: State) -> None:
        """The epochs of one stage, a checkpoint after each."""
        given = {name: model for name, model in self.models.items() if name != stage.model}
        most, patience = self._epochs(stage), self.job.training.patience
        while state.epoch < most and (stage.select == "last" or state.epoch - state.best_epoch < patience):
            progress = state.epoch / most
            terms = train_epoch(
                self.job, stage.name, state, Given(given, dict(state.modules.items()), state.random, progress)
            )
            state.epoch += 1
            record: dict[str, Any] = {
                "stage": stage.name,
                "epoch": state.epoch,
                "terms": terms,
                **validate(self.job, state),
            }
            self.history.append(record)
            state.keep_if_best(record["macro-f1"])
            self.job.watcher.epoch(record)
            if self.checkpoint:
                self.checkpoint.save(number, state)
        self.job.watcher.skip(most - state.epoch)

    def _begin(self, stage: Stage, stream: tuple[int, ...]) -> State:
        """Weights, optimisers and generators as they stand before the first step."""
        torch.manual_seed(derive(*stream))
        training, accelerator = self.job.training, self.job.accelerator
        technique = stage.technique or self.technique
        model = self.models.get(stage.model) or self.make_model()
        if stage.start is not None:
            model.load_state_dict(self.models[stage.start].state_dict())
        modules = nn.ModuleDict(technique.modules(model))
        objective = accelerator.prepare(Objective(model, modules))

        named = optim.named_parameters(model, dict(modules.items()))
        players = technique.players()
        held = optim.hold(named, stage, players)
        optimisers = {player.name: optim.optimiser(player, named, model, training) for player in players}
        steps = self._epochs(stage) * -(-len(self.job.train) // training.batch_size)
        return State(
            technique=technique,
            model=model,
            modules=modules,
            objective=objective,
            held=held,
            moved={player.name: list(optim.chosen(named, player.trains).values()) for player in players},
            optimisers={name: accelerator.prepare(value) for name, value in optimisers.items()},
            schedules={name: optim.schedule(value, training, steps) for name, value in optimisers.items()},
            random=torch.Generator(accelerator.device).manual_seed(derive(*stream, 1)),
            stream=stream,
            history=self.history,
        )

    def _finish(self, stage: Stage, state: State) -> None:
        if stage.select == "best":
            state.model.load_state_dict(state.best)
        for parameter in state.held:
            parameter.requires_grad_(True)
        self.job.accelerator.free_memory()
        self.models[stage.model] = state.model
        if stage.model != RESULT:
            freeze(state.model)
            if self.checkpoint:
                self.checkpoint.finish(stage.model, state.model.state_dict())

    def _recall(self, stage: Stage) -> None:
        """A stage that was over before the interruption."""
        if stage.model != RESULT and self.checkpoint:
            model = self.make_model()
            model.load_state_dict(self.checkpoint.finished(stage.model))
            self.models[stage.model] = freeze(model.to(self.job.accelerator.device))
        self.job.watcher.skip(self._epochs(stage))

    def _epochs(self, stage: Stage) -> int:
        return stage.epochs or self.job.training.epochs


def freeze(model: Classifier) -> Classifier:
    """Never trained again: a reference for later stages."""
    return model.eval().requires_grad_(False)
