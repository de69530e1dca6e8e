"""A training run: the stages that a technique declares, in order, each resumable.

A stage with a fresh model draws the same random numbers as a separate run with its seed.  A teacher trained as a stage
therefore equals the same technique trained alone, bit for bit.

A stage selects one epoch, for the model's weights and those of the auxiliary networks.
"""

import dataclasses
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey, derive_seed
from steadygaze.core.tensor_files import layout, layout_difference
from steadygaze.models.inference import Model
from steadygaze.techniques import own_source
from steadygaze.techniques.technique import LossContext, Stage, Technique
from steadygaze.training import optimizers
from steadygaze.training.checkpoint import Checkpoint, SavedStage
from steadygaze.training.progress import TrainingDiverged
from steadygaze.training.stacked_stages import train_loops
from steadygaze.training.teacher_cache import TeacherCache, cache_targets
from steadygaze.training.technique_loop import (
    Objective,
    TechniqueLoop,
    TrainingJob,
    attention_of,
    longest,
    report_longer_training,
    steps,
)
from steadygaze.training.training_loop import training_session
from steadygaze.training.training_state import TrainingState, under

Parts = Generator[list[TechniqueLoop], list[dict[str, Any] | None], Model | None]
RESULT = "model"
"""Name of the resulting model; all others are auxiliary."""
ANY_SEED = {"seed": None}
FEWEST = 20
"""Fewest validation texts that can show that a model has learned nothing."""
NOTHING_LEARNED = (
    "{0} has learned nothing: it predicts the same label for every validation text (macro-F1 {1:.3f}), and a student "
    "would copy it.  Train longer (--epochs), with word vectors (--vectors glove-50d), with another learning rate "
    "(--set learning_rate=0.003) or with more texts; --replace starts over"
)
UNDIVIDED = "no validation text has two sentences: whole texts were selected.  Try granularity=token"


@dataclass
class TrainingRun:
    technique: Technique
    make_model: Callable[[], Model]
    """Makes a model with fresh weights from torch's global generator, which is seeded before every call."""
    job: TrainingJob
    seed: int = 0
    checkpoint: Checkpoint | None = None
    models: dict[str, Model] = field(default_factory=dict)
    """Finished models by name; frozen."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One record per epoch: stage, epoch, terms, macro-f1, accuracy, constant_label, attention."""
    best_epoch: dict[str, Any] = field(default_factory=dict)
    """Selected epoch of the result: stage, epoch, macro-f1, constant_label, attention."""
    modules: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """Current weights of the auxiliary networks, by name."""
    teacher_cache: TeacherCache | None = None
    """Cache of teachers and references for later runs."""
    among_others: bool = False
    """True if other runs are executed too, which continue if this one diverges."""

    def execute(self) -> Model:
        """Run the stages; skip a stage whose model the caller provides."""
        (model,) = execute_together([self])
        assert model is not None  # one model that diverges is an error
        return model

    def stages(self) -> tuple[Stage, ...]:
        """Return the stages of the technique, with the selection of the run."""
        stages = self.technique.stages(self.seed)
        if self.job.training.select == "last":
            stages = tuple(dataclasses.replace(stage, select="last") for stage in stages)
        return stages

    def parts(self) -> Parts:
        """Run the stages: yield the loops to train next, receive their records, and return the model.

        None: its watcher stopped it.  A stage that diverged is an error, unless another was trained at the same time.
        """
        stages = self.stages()
        saved, provided = self.checkpoint.load() if self.checkpoint else {}, set(self.models)
        for numbers in self._groups(stages):
            loops: dict[int, TechniqueLoop] = {}
            failures: list[TrainingDiverged] = []
            cacheable = {number for number in numbers if self.teacher_cache and self._is_separable(stages[number])}
            for number in numbers:
                stage = stages[number]
                if stage.model in provided:
                    self.job.watcher.skip(longest(self.job, stage))
                elif (error := self._recorded_divergence(number, stage, len(numbers) > 1)) is not None:
                    failures.append(error)
                elif self.checkpoint and saved and number < min(saved):
                    self._load_finished(stage, *self.checkpoint.finished(number))
                # An interrupted stage continues even if the teacher cache has it: its history is in the checkpoint.
                elif number in saved or number not in cacheable or not self._from_teacher_cache(number, stage):
                    loops[number] = self._prepare(number, stages, saved.get(number), len(numbers) > 1)
            if loops:
                self._complete(stages, loops, (yield list(loops.values())), cacheable)
            failures += [loop.divergence for loop in loops.values() if loop.divergence is not None]
            if len(failures) == len(numbers):
                raise failures[0]
        if RESULT not in self.models:
            return None
        self._warn_of_result()
        return self._copy(RESULT).eval()

    def _groups(self, stages: tuple[Stage, ...]) -> list[list[int]]:
        """Return the numbers of the stages that are trained at the same time: teachers of one technique."""
        groups: list[list[int]] = []
        for number, stage in enumerate(stages):
            earlier = stages[groups[-1][-1]] if groups else None
            if earlier is not None and self.job.uses_stacks and self._are_alike(stage, earlier):
                groups[-1].append(number)
            else:
                groups.append([number])
        return groups

    def _are_alike(self, stage: Stage, other: Stage) -> bool:
        """True if two stages are separable and differ in their seed alone."""
        return (
            all(map(self._is_separable, (stage, other))) and self._key(stage) | ANY_SEED == self._key(other) | ANY_SEED
        )

    def _prepare(
        self, number: int, stages: tuple[Stage, ...], saved: SavedStage | None, among_others: bool
    ) -> TechniqueLoop:
        """Return the loop of a stage at its beginning or at its checkpoint."""
        stage = stages[number]
        visits = sum(earlier.model == stage.model for earlier in stages[:number])
        state = self._begin(stage, (self._seed(stage), visits))
        if among_others:
            state.history = list(self.history)
        if self.checkpoint and saved:
            self.checkpoint.restore(state, saved)
            self.job.watcher.skip(state.epoch)
            if not among_others:
                self.history = state.history
        loop = self._loop(number, stage, state, among_others)
        loop.finishes_model = all(later.model != stage.model for later in stages[number + 1 :])
        return loop

    def _complete(
        self,
        stages: tuple[Stage, ...],
        loops: dict[int, TechniqueLoop],
        records: list[dict[str, Any] | None],
        cacheable: set[int],
    ) -> None:
        """Provide the models of trained stages to later stages; `records`: of the selected epochs."""
        for (number, loop), record in zip(loops.items(), records, strict=True):
            stage, state = stages[number], loop.state
            if record is None:  # diverged or stopped
                continue
            own_history = state.history[-state.epoch :]
            if state.history is not self.history:
                self.history.extend(own_history)
            self._finish(stage, state, record)
            self._check_learned(stage, own_history)
            if self.teacher_cache and number in cacheable:
                failure = self.teacher_cache.put(self._key(stage), state.weights(), own_history)
                if failure is not None:
                    self.job.watcher.warn(failure)
            if number + 1 < len(stages):
                self._save_finished(number, state)

    def _loop(self, number: int, stage: Stage, state: TrainingState, among_others: bool = False) -> TechniqueLoop:
        """Return the loop of one stage, with a checkpoint after each epoch."""
        # Sorted: the last bit of a mean depends on the order.
        earlier_models = (
            {} if stage.technique else {n: model for n, model in sorted(self.models.items()) if n != stage.model}
        )
        context = LossContext(
            earlier_models, dict(state.modules.items()), synonyms=self.job.synonyms, prior=self._prior
        )
        targets = cache_targets(state.technique, earlier_models, self.job.train, self.job.accelerator.device)
        reference = attention_of(earlier_models, self.job.validation)
        loop = TechniqueLoop(self.job, stage, state, context, targets, reference)
        if self.checkpoint:
            loop.save = partial(self.checkpoint.save, number, state, among_others)
        if among_others or self.among_others:
            loop.on_divergence = partial(self._left_out, number, stage)
        return loop

    def _left_out(self, number: int, stage: Stage, error: TrainingDiverged) -> None:
        """Warn that other models are trained without this one, and record it."""
        self.job.watcher.warn(f"{stage.name}, seed {self._seed(stage)}: {error}  The other models are not affected.")
        if self.checkpoint and not error.recorded:
            self.checkpoint.diverge(number, str(error))

    def _recorded_divergence(self, number: int, stage: Stage, among_others: bool) -> TrainingDiverged | None:
        """Return the error of a stage that diverged before an interruption."""
        message = self.checkpoint.divergence(number) if self.checkpoint else None
        if message is None:
            return None
        error = TrainingDiverged(message)
        error.recorded = True
        self.job.watcher.skip(longest(self.job, stage))
        if among_others or self.among_others:
            self._left_out(number, stage, error)
        return error

    def _from_teacher_cache(self, number: int, stage: Stage) -> bool:
        """Load the stage's model from the cache; return True on success."""
        teacher = self.teacher_cache.get(self._key(stage)) if self.teacher_cache else None
        if teacher is None:
            return False
        weights, history = teacher
        self._check_learned(stage, history)
        try:
            self._load_finished(stage, weights, self.best_epoch)
        except UserError:  # another layout: treat it as absent
            return False
        self.history.extend({**record, "stage": stage.name} for record in history)  # its stage can have another name
        if self.checkpoint:
            self.checkpoint.finish(number, weights, self.best_epoch)
        return True

    def _key(self, stage: Stage) -> dict[str, Any]:
        """Return everything that determines the weights of a separable stage, except data and settings."""
        technique = stage.technique or self.technique
        return {
            "technique": {
                "name": type(technique).__name__,
                "settings": dataclasses.asdict(technique),
                **own_source(type(technique)),
            },
            "seed": self._seed(stage),
            "trains": stage.trains,
            "epochs": longest(self.job, stage),
            "select": stage.select,
            "schedule": self._schedule(stage),
            "rate_factor": stage.rate_factor,
        }

    def _is_separable(self, stage: Stage) -> bool:
        """True if a separate run would give the same model: own technique, own model, fresh weights."""
        has_own_model = stage.technique is not None and stage.model != RESULT
        # An auxiliary network of an earlier stage continues with its weights, which are then not fresh.
        return has_own_model and stage.start is None and stage.model not in self.models and not self.modules

    def _schedule(self, stage: Stage) -> str:
        return stage.schedule or self.job.training.schedule

    def _seed(self, stage: Stage) -> int:
        return self.seed if stage.seed is None else stage.seed

    def _begin(self, stage: Stage, stream: tuple[int, ...]) -> TrainingState:
        """Return weights, optimizer and generators before the first step."""
        torch.manual_seed(derive_seed(*stream))
        training, accelerator = self.job.training, self.job.accelerator
        training = dataclasses.replace(training, learning_rate=training.learning_rate * stage.rate_factor)
        technique = stage.technique or self.technique
        source = stage.start or stage.model
        if stage.start and source not in self.models and self.models:
            source = min(self.models)  # the model to start from diverged
        model = self._copy(source) if stage.start or source in self.models else self.make_model()
        modules = nn.ModuleDict(technique.modules(model))
        for name in modules.keys() & self.modules.keys():
            _check_layout(name, self.modules[name], modules[name])
            modules[name].load_state_dict(self.modules[name])
        networks, players = accelerator.prepare(Objective(model, modules)), technique.players()
        named_parameters = optimizers.named_parameters(model, dict(modules.items()))
        parameters = optimizers.player_parameters(named_parameters, stage, players)
        optimizer = accelerator.prepare(optimizers.make_optimizer(model, dict(modules.items()), players, training))
        return TrainingState(
            technique=technique,
            model=model,
            modules=modules,
            networks=networks,
            parameters_by_player=parameters,
            optimizer=optimizer.optimizer,
            accelerated=optimizer,
            stream=stream,
            key=RandomKey(derive_seed(*stream, 1)),
            schedule=self._schedule(stage),
            steps=longest(self.job, stage) * steps(self.job),
            history=self.history,
        )

    def _finish(self, stage: Stage, state: TrainingState, record: dict[str, Any]) -> None:
        """Provide the weights of the selected epoch to later stages; `record`: of that epoch."""
        self.models[stage.model] = freeze(state.model)
        self.modules |= {name: module.state_dict() for name, module in state.modules.items()}
        if stage.model == RESULT:
            self.best_epoch = {
                key: record.get(key) for key in ("stage", "epoch", "macro-f1", "constant_label", "attention")
            }

    def _check_learned(self, stage: Stage, history: list[dict[str, Any]]) -> None:
        """Raise if a teacher has learned nothing; `history`: the epochs of its stage."""
        if not (stage.must_learn and history) or len(self.job.validation) < FEWEST:
            return
        best = max(history, key=lambda record: record.get("macro-f1", 0.0))
        if best.get("constant_label") is not None:
            raise UserError(NOTHING_LEARNED.format(stage.name, best["macro-f1"]))

    def _warn_of_result(self) -> None:
        """Warn of a model of sentences that has only selected whole texts, and of what the technique reports."""
        attention = self.best_epoch.get("attention", {})
        undivided = attention.get("unit") == "sentence" and attention["distance_to_uniform"] is None
        if undivided and not attention.get("collapsed"):
            self.job.watcher.warn(UNDIVIDED)
        remark = self.technique.warning_after_training(self.history[-1]["terms"], self._prior) if self.history else None
        if remark is not None:
            self.job.watcher.warn(remark)

    def _save_finished(self, number: int, state: TrainingState) -> None:
        """Save the stage's weights and free its memory."""
        if self.checkpoint:
            self.checkpoint.finish(number, state.weights(), self.best_epoch)
        self.job.accelerator.free_memory()

    def _load_finished(self, stage: Stage, weights: dict[str, Tensor], best_epoch: dict[str, Any]) -> None:
        """Load the weights of a finished stage."""
        model = self.make_model()
        _check_layout(stage.name, under("model.", weights), model)
        model.load_state_dict(under("model.", weights))
        self.models[stage.model] = freeze(model.to(self.job.accelerator.device))
        for name in {key.split(".")[0] for key in under("modules.", weights)}:
            self.modules[name] = under(f"modules.{name}.", weights)
        self.best_epoch = best_epoch
        self.job.watcher.skip(longest(self.job, stage))

    def _copy(self, name: str) -> Model:
        """Return a trainable copy of a finished model."""
        model = self.make_model()
        model.load_state_dict(self.models[name].state_dict())
        return model

    @property
    def _prior(self) -> Tensor:
        """(C,) weighted frequency of each class."""
        counts = np.bincount(np.asarray(self.job.train.label), self.job.train.weight).astype(np.float64)
        return torch.from_numpy(counts / counts.sum()).float().to(self.job.accelerator.device)


def execute_together(runs: Sequence[TrainingRun]) -> list[Model | None]:
    """Execute runs on the same data; if models can be stacked, each stage of all runs at the same time.

    None: the model diverged, but another did not; or its watcher stopped it.  Raise if all diverged.
    """
    first = runs[0].job
    stages = [stage for run in runs for stage in run.stages()]
    report_longer_training(first)
    epochs = sum(longest(run.job, stage) for run in runs for stage in run.stages())
    models: dict[int, Model | None] = {}
    failures: dict[int, TrainingDiverged] = {}
    waiting: dict[int, list[TechniqueLoop]] = {}

    def advance(number: int, records: list[dict[str, Any] | None] | None) -> None:
        try:
            waiting[number] = parts[number].send(records)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            models[number] = end.value
        except TrainingDiverged as error:
            models[number], failures[number] = None, error.with_traceback(None)

    for run in runs:
        run.among_others = len(runs) > 1
    with training_session(first.watcher, len(stages), epochs, steps(first)):
        parts = [run.parts() for run in runs]
        groups = [range(len(runs))] if first.uses_stacks else [range(i, i + 1) for i in range(len(runs))]
        for group in groups:
            for number in group:
                advance(number, None)
            while waiting:
                ready = dict(waiting)
                waiting.clear()
                records = iter(train_loops([loop for loops in ready.values() for loop in loops]))
                for number, loops in ready.items():
                    advance(number, [next(records) for _ in loops])
    if len(failures) == len(runs):
        for number, error in failures.items():
            if (checkpoint := runs[number].checkpoint) and not error.recorded:
                checkpoint.forget_divergences()
        raise failures[0]
    return [models[number] for number in range(len(runs))]


def _check_layout(name: str, weights: dict[str, Tensor], module: nn.Module) -> None:
    """Raise if the saved weights do not fit the model."""
    if (difference := layout_difference(layout(weights), layout(module.state_dict()))) is not None:
        raise UserError(f"the saved weights of {name!r} do not fit this model: {difference}; start over")


def freeze(model: Model) -> Model:
    """Freeze a finished model."""
    return model.eval().requires_grad_(False)
