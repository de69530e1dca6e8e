"""Which stages are trained as one program, in how many parts, and why others are not."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import set_generator_states
from steadygaze.models.classifier import Classifier
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.inference import Model
from steadygaze.models.stacking.stacked_layers import is_stackable
from steadygaze.techniques.technique import Player, Technique
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import TrainingDiverged, TrainingStopped
from steadygaze.training.stacked_loop import StackedLoop, report, varying_settings
from steadygaze.training.technique_loop import TechniqueLoop


def train_loops(loops: Sequence[TechniqueLoop]) -> list[dict[str, Any] | None]:
    """Train stages on the same data, as stacks where possible; return the records of the selected epochs.

    None: the model diverged, and its loop has the error; or its watcher stopped it.
    """
    records: dict[int, dict[str, Any] | None] = {}
    for numbers in _stacks(loops):
        group = [loops[number] for number in numbers]
        reason = why_not_static(group[0]) if group[0].job.uses_stacks else ""
        if reason:
            report(group[0], f"trains without CUDA graphs: {reason}")
        with _clear_memory_errors():
            results = _train_stack(group) if reason is None else list(map(_train_alone, group))
        records |= zip(numbers, results, strict=True)
    return [records[number] for number in range(len(loops))]


def _stacks(loops: Sequence[TechniqueLoop]) -> list[list[int]]:
    """Return the numbers of the loops that can be trained as one program."""
    stacks: list[list[int]] = []
    for number, loop in enumerate(loops):
        for stack_numbers in stacks if loop.job.uses_stacks else []:
            if can_stack([loops[stack_numbers[0]], loop]):
                stack_numbers.append(number)
                break
        else:
            stacks.append([number])
    return stacks


def _train_alone(loop: TechniqueLoop) -> dict[str, Any] | None:
    set_generator_states(loop.generators)
    try:
        return loop.execute()
    except TrainingStopped:
        return None
    except TrainingDiverged as error:
        loop.diverge(error)
        return None


def _train_stack(loops: Sequence[TechniqueLoop]) -> list[dict[str, Any] | None]:
    """Train loops as one stack, or as two if they do not fit into the memory of the device."""
    records = _try_stack(loops)
    if records is not None:
        return records
    gc.collect()  # the stack that failed
    torch.cuda.empty_cache()
    half = len(loops) // 2
    loops[0].watcher.detail(f"{len(loops)} models do not fit into the memory of the GPU: {half} at a time")
    return [*_train_stack(loops[:half]), *_train_stack(loops[half:])]


def _try_stack(loops: Sequence[TechniqueLoop]) -> list[dict[str, Any] | None] | None:
    """Train loops as one stack; None if it does not fit into memory, up to the end of its first epoch.

    Until then, the models of a stack are unchanged.  A model alone is trained in place.
    """
    if len(loops) == 1:  # a transformer's dropout
        set_generator_states(loops[0].generators)
    stack: StackedLoop | None = None
    try:
        stack = StackedLoop(loops)
        stack.rehearse()
        return stack.execute()
    except torch.cuda.OutOfMemoryError:
        if len(loops) == 1 or (stack is not None and stack.epochs):
            raise
    return None  # outside of the handler, whose traceback keeps the tensors of the stack


@contextmanager
def _clear_memory_errors() -> Iterator[None]:
    """Raise an error with advice if the GPU has too little memory."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        raise UserError(
            "the GPU has too little memory for this model: use a smaller batch_size (--set batch_size=16), "
            "a smaller max_length, or --device cpu"
        ) from None


def why_not_static(loop: TechniqueLoop) -> str | None:
    """Return why the step of a loop cannot be repeated without Python; None if it can."""
    technique, job = loop.state.technique, loop.job
    transformer = _is_transformer(loop.state.model)
    if job.training.precision == "fp16" or (job.training.precision == "bf16" and not transformer):
        return f"precision is {job.training.precision}"
    if technique.players() != (Player(),):
        return "it has several players"
    if type(technique).after_step is not Technique.after_step:
        return "its settings change with every step"
    if not (transformer or is_stackable(loop.state.model)):
        return "its model has layers of other kinds"
    return None


def _is_transformer(model: Model) -> bool:
    """Return True for a classifier that encodes each text in one pass of a transformer."""
    return isinstance(model, Classifier) and isinstance(model.encoder, Transformer) and model.encoder.windows is None


def can_stack(loops: Sequence[TechniqueLoop]) -> bool:
    """Return True if these loops can be trained as one program."""
    first = loops[0]
    return all(
        why_not_static(loop) is None
        and is_stackable(loop.state.model)
        and not loop.state.modules
        and loop.stage.trains == first.stage.trains
        and _settings_stack(first.state.technique, loop.state.technique)
        and loop.targets.is_complete
        and loop.longest == first.longest
        and loop.state.schedule == first.state.schedule
        and loop.state.step == first.state.step  # a resumed stage can be an epoch behind
        and loop.job.train is first.job.train
        and loop.job.synonyms is first.job.synonyms
        and _shared_training(loop.job.training) == _shared_training(first.job.training)
        for loop in loops
    )


def _settings_stack(first: Technique, other: Technique) -> bool:
    """Return True if a stack can train with both: the same terms, and different numbers only where a loss allows it."""
    if type(first) is not type(other) or not first.stacks:
        return False
    names = varying_settings([first, other])
    weights = [value for name in names for value in (getattr(first, name), getattr(other, name))]
    leaves_out_a_term = any(isinstance(weight, float) and weight == 0 for weight in weights)
    return set(names) <= set(first.stacked_settings) and not leaves_out_a_term


def _shared_training(training: Training) -> Training:
    """Return the settings without those that may differ between the models of a stack."""
    default = Training()
    names = ("learning_rate", "encoder_learning_rate", "weight_decay", "clip", "patience", "select", "epochs")
    return replace(training, **{name: getattr(default, name) for name in names})
