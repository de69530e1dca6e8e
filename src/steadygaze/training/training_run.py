"""A whole run: the stages a technique declares, one after the other, each resumable.

A stage that trains a fresh model draws exactly the chance that a run of its own with that seed would draw.  So a
teacher trained as somebody's stage and the same technique trained alone are the same model, bit for bit.

A stage keeps one epoch, whole: the model's weights and those of the auxiliary networks beside it.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey, derive_seed, forked_generators
from steadygaze.core.tensor_files import layout, layout_difference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.technique import LossContext, Stage, Technique
from steadygaze.training import optimizers
from steadygaze.training.checkpoint import Checkpoint, SavedStage
from steadygaze.training.teacher_cache import TeacherCache, cache_targets
from steadygaze.training.training_loop import (
    Objective,
    TrainingJob,
    attention_of,
    longest,
    report_longer_training,
    stage_is_over,
    steps,
    train_epoch,
    validate,
)
from steadygaze.training.training_state import TrainingState, under

RESULT = "model"
"""The name of the model that a run is for; every other is a means to it."""
UNDIVIDED = "no validation text has two sentences: all of each was selected.  granularity=token selects words"


@dataclass
class TrainingRun:
    technique: Technique
    make_model: Callable[[], Model]
    """Draws fresh weights from torch's own generator, which is seeded before every call."""
    job: TrainingJob
    seed: int = 0
    checkpoint: Checkpoint | None = None
    models: dict[str, Model] = field(default_factory=dict)
    """Finished so far, by name; frozen."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One record per epoch: stage, epoch, terms, macro-f1, accuracy, always, attention."""
    kept: dict[str, Any] = field(default_factory=dict)
    """Which epoch the result is: stage, epoch, macro-f1, always, attention."""
    modules: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """The weights that auxiliary networks have reached, by the network's name."""
    teacher_cache: TeacherCache | None = None
    """Where the means to a result are kept for the next run that needs the same."""

    def execute(self) -> Model:
        """Train as the technique says.  A stage whose model is there already, given by the caller, is not run."""
        stages = self.technique.stages(self.seed)
        report_longer_training(self.job)
        self.job.watcher.start(len(stages), sum(longest(self.job, stage) for stage in stages), steps(self.job))
        try:
            with forked_generators():
                self._all(stages)
                self._say_if_collapsed()
                self._say_remark()
                return self._copy(RESULT).eval()
        finally:
            self.job.watcher.stop()

    def _all(self, stages: tuple[Stage, ...]) -> None:
        saved, ready = self.checkpoint.load() if self.checkpoint else None, set(self.models)
        for number, stage in enumerate(stages):
            if stage.model in ready:
                self.job.watcher.skip(longest(self.job, stage))
            elif self.checkpoint and saved and number < saved.stage:
                self._recall(stage, *self.checkpoint.finished(number))
            else:
                self._one(number, stages, saved if saved and number == saved.stage else None)

    def _one(self, number: int, stages: tuple[Stage, ...], saved: SavedStage | None) -> None:
        """One stage: from where it was interrupted, from the teacher cache, or from its beginning."""
        stage = stages[number]
        teacher_cache = self.teacher_cache if self._apart(stage) else None
        # What was interrupted goes on even where the teacher cache has it: the history is in the checkpoint.
        if teacher_cache and not saved and self._from_teacher_cache(teacher_cache, number, stage):
            return
        visits = sum(earlier.model == stage.model for earlier in stages[:number])
        state = self._begin(stage, (self._seed(stage), visits))
        if self.checkpoint and saved:
            self.checkpoint.restore(state, saved)
            self.history = state.history
            self.job.watcher.skip(state.epoch)
        self._run(number, stage, state)
        self._finish(stage, state)
        if teacher_cache:
            why = teacher_cache.put(self._key(stage), state.weights(), self.history[-state.epoch :])
            if why is not None:
                self.job.watcher.warn(why)
        if number + 1 < len(stages):
            self._hand_over(number, state)

    def _run(self, number: int, stage: Stage, state: TrainingState) -> None:
        """The epochs of one stage, a checkpoint after each."""
        # In an order that does not depend on who was finished first, or given: a mean does, in its last bit.
        others = {} if stage.technique else {n: model for n, model in sorted(self.models.items()) if n != stage.model}
        given = LossContext(others, dict(state.modules.items()), synonyms=self.job.synonyms, prior=self._prior)
        memory = cache_targets(state.technique, others, self.job.train, self.job.accelerator.device)
        reference = attention_of(others, self.job.validation)
        while not stage_is_over(self.job, stage, state):
            terms = train_epoch(self.job, stage.name, state, given, memory)
            state.epoch += 1
            scores = validate(self.job, state, reference)
            record = {"stage": stage.name, "epoch": state.epoch, "terms": terms, **scores}
            self.history.append(record)
            state.keep_if_best(scores["macro-f1"], scores["loss"])
            if self.checkpoint:
                self.checkpoint.save(number, state)
            self.job.watcher.epoch(record)
        self.job.watcher.skip(longest(self.job, stage) - state.epoch)

    def _from_teacher_cache(self, teacher_cache: TeacherCache, number: int, stage: Stage) -> bool:
        """Whether an earlier run made exactly this, so that it need not be made again."""
        found = teacher_cache.get(self._key(stage))
        if found is None:
            return False
        weights, history = found
        try:
            self._recall(stage, weights, self.kept)
        except UserError:  # not of this model: it counts as not there
            return False
        self.history.extend({**record, "stage": stage.name} for record in history)  # there it may have another name
        if self.checkpoint:
            self.checkpoint.finish(number, weights, self.kept)
        return True

    def _key(self, stage: Stage) -> dict[str, Any]:
        """All that determines what a stage apart ends in, beside data and settings."""
        technique = stage.technique or self.technique
        return {
            "technique": {"name": type(technique).__name__, "settings": dataclasses.asdict(technique)},
            "seed": self._seed(stage),
            "trains": stage.trains,
            "epochs": longest(self.job, stage),
            "select": stage.select,
            "schedule": self._schedule(stage),
        }

    def _apart(self, stage: Stage) -> bool:
        """Whether a run of its own would end in just this: of a technique and a model of its own, all weights fresh."""
        own = stage.technique is not None and stage.model != RESULT
        # An auxiliary network of an earlier stage goes on under its name: what stands beside it is not all fresh.
        return own and stage.start is None and stage.model not in self.models and not self.modules

    def _schedule(self, stage: Stage) -> str:
        return stage.schedule or self.job.training.schedule

    def _seed(self, stage: Stage) -> int:
        return self.seed if stage.seed is None else stage.seed

    def _begin(self, stage: Stage, stream: tuple[int, ...]) -> TrainingState:
        """Weights, optimiser and generators as they stand before the first step."""
        torch.manual_seed(derive_seed(*stream))
        training, accelerator = self.job.training, self.job.accelerator
        technique = stage.technique or self.technique
        source = stage.start or stage.model
        model = self._copy(source) if stage.start or source in self.models else self.make_model()
        modules = nn.ModuleDict(technique.modules(model))
        for name in modules.keys() & self.modules.keys():
            _check_layout(name, self.modules[name], modules[name])
            modules[name].load_state_dict(self.modules[name])
        objective = accelerator.prepare(Objective(model, modules))
        named, players = optimizers.named_parameters(model, dict(modules.items())), technique.players()
        optimizers.freeze_parameters(named, stage, players)
        return TrainingState(
            technique=technique,
            model=model,
            modules=modules,
            objective=objective,
            parameters_by_player={
                name: list(part.values()) for name, part in optimizers.parameter_groups(named, players).items()
            },
            optimizer=accelerator.prepare(optimizers.make_optimizer(model, dict(modules.items()), players, training)),
            stream=stream,
            key=RandomKey(derive_seed(*stream, 1)),
            schedule=self._schedule(stage),
            steps=longest(self.job, stage) * steps(self.job),
            history=self.history,
        )

    def _finish(self, stage: Stage, state: TrainingState) -> None:
        """The stage's epoch is chosen, and its weights are what later stages find."""
        epoch = state.epoch
        if stage.select == "best":
            epoch = state.best_epoch
            state.load(state.best)
        self.models[stage.model] = freeze(state.model)
        self.modules |= {name: module.state_dict() for name, module in state.modules.items()}
        if stage.model == RESULT:
            record = self.history[epoch - state.epoch - 1]  # the stage's last epoch is the last of all so far
            self.kept = {key: record.get(key) for key in ("stage", "epoch", "macro-f1", "constant_label", "attention")}

    def _say_if_collapsed(self) -> None:
        """Of the epoch that is kept, whether it was trained just now or before an interruption."""
        attention = self.kept.get("attention", {})
        if attention.get("collapsed"):
            selects = "selection" in self.models[RESULT].capabilities
            what = "a selection that says nothing" if selects else "collapsed attention"
            locked = attention.get("unit") == "sentence" and attention["constant"]
            self.job.watcher.warn(f"{'a locked selection' if locked else what}: {attention['reason']}")
        elif attention.get("unit") == "sentence" and attention["distance_to_uniform"] is None:
            self.job.watcher.warn(UNDIVIDED)

    def _say_remark(self) -> None:
        remark = self.technique.warning_after_training(self.history[-1]["terms"], self._prior) if self.history else None
        if remark is not None:
            self.job.watcher.warn(remark)

    def _hand_over(self, number: int, state: TrainingState) -> None:
        """Before the next stage: what this one made is kept, what it needed is given back."""
        if self.checkpoint:
            self.checkpoint.finish(number, state.weights(), self.kept)
        self.job.accelerator.free_memory()

    def _recall(self, stage: Stage, weights: dict[str, Tensor], kept: dict[str, Any]) -> None:
        """A stage that was over before the interruption."""
        model = self.make_model()
        _check_layout(stage.name, under("model.", weights), model)
        model.load_state_dict(under("model.", weights))
        self.models[stage.model] = freeze(model.to(self.job.accelerator.device))
        for name in {key.split(".")[0] for key in under("modules.", weights)}:
            self.modules[name] = under(f"modules.{name}.", weights)
        self.kept = kept
        self.job.watcher.skip(longest(self.job, stage))

    def _copy(self, name: str) -> Model:
        """A finished model's weights in a model that may be trained: only what was made frozen is frozen."""
        model = self.make_model()
        model.load_state_dict(self.models[name].state_dict())
        return model

    @property
    def _prior(self) -> Tensor:
        """(C,) how frequent each class is, every text counting as much as it weighs."""
        counts = np.bincount(np.asarray(self.job.train.label), self.job.train.weight).astype(np.float64)
        return torch.from_numpy(counts / counts.sum()).float().to(self.job.accelerator.device)


def _check_layout(name: str, weights: dict[str, Tensor], module: nn.Module) -> None:
    """The weights of a finished stage come from a file."""
    if (difference := layout_difference(layout(weights), layout(module.state_dict()))) is not None:
        raise UserError(f"the saved weights of {name!r} are not those of this model: {difference}; start over")


def freeze(model: Model) -> Model:
    """Never trained again: a reference for later stages."""
    return model.eval().requires_grad_(False)
