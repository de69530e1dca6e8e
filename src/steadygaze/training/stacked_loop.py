"""One stage of several runs as one program: K models, each with its own batches, random keys and best epoch.

    static step    batch, loss, gradients, clipping and optimizer, with inputs that are already on the device
    CUDA graph     the static step, captured once for each width of a batch, and then replayed without Python
    stack          K models as one network (models/stacking): one program trains all of them
    settings       of a technique, and learning rates: one number for each model, where they differ

A step reads its inputs from tables of the whole epoch: rows, random keys, progress.  A counter on the device selects
the entry, so that a replay needs no input from the host.
On a CPU the same step runs without a graph.  K = 1 is the model itself, with cuDNN.

Dropout of word encoders is drawn from the key of each model and step, also for K = 1.

A model that diverges is left out; it cannot affect the others.  So is one that its watcher stops.
"""

import copy
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.random_key import RandomKey, forked_generators
from steadygaze.core.types import Batch, Terms
from steadygaze.models.encoders.word_encoders import WordEncoder
from steadygaze.models.stacking.stacked_layers import stack, unstack
from steadygaze.techniques.technique import CachedTargets, Technique, check_terms
from steadygaze.training.cuda_graphs import CapturedFunction
from steadygaze.training.device_batches import DeviceData
from steadygaze.training.optimizers import named_parameters
from steadygaze.training.progress import TrainingDiverged, TrainingStopped
from steadygaze.training.teacher_cache import TargetCache
from steadygaze.training.technique_loop import TechniqueLoop, steps, training_mode

EXCESS = 1e-6
"""Added to a norm before division, as in torch.nn.utils.clip_grad_norm_."""


class StackedTargets:
    """The cached targets of K runs."""

    def __init__(self, caches: Sequence[TargetCache]) -> None:
        self.first, self.count = caches[0], len(caches)
        self.texts = {name: torch.stack([cache.texts[name] for cache in caches]) for name in self.first.texts}
        self.tokens = {name: torch.stack([cache.tokens[name] for cache in caches]) for name in self.first.tokens}

    def get(self, batch: Batch) -> CachedTargets:
        model = torch.arange(len(batch), device=batch.index.device) % self.count
        texts = {name: table[model, batch.index] for name, table in self.texts.items()}
        positions = self.first.positions(batch)
        return CachedTargets(texts, {name: table[model.unsqueeze(1), positions] for name, table in self.tokens.items()})


class StackedLoop:
    """Trains the loops of one stage, each to its own end.

    It repeats the step of `StageLoop.update`, because a CUDA graph captures a step without Python.  Such a step has no
    branches on values, and no optimizer state on the host.  `test_stacked_loop.py` compares both, model by model.
    """

    def __init__(self, loops: Sequence[TechniqueLoop], graphs: bool | None = None) -> None:
        """`graphs`: use CUDA graphs; None: on CUDA."""
        self.loops, self.count, self.job = list(loops), len(loops), loops[0].job
        self.device = self.job.accelerator.device
        self.data = DeviceData(self.job.train, self.device)
        self.models: list[Any] = [loop.state.model for loop in loops]
        self.model: Any = stack(self.models) if self.count > 1 else self.models[0]
        self.targets = StackedTargets([loop.targets for loop in loops]) if self.count > 1 else loops[0].targets
        self.optimizer = self._make_optimizer()
        size, count = self.job.training.batch_size * self.count, steps(self.job)
        dtype = next(self.models[0].parameters()).dtype
        clip = [loop.job.training.clip for loop in loops]
        self.clip = torch.tensor(clip, device=self.device, dtype=dtype)  # (K,)
        techniques = [loop.state.technique for loop in loops]
        self.technique = stacked_technique(techniques, size, self.clip) if self.count > 1 else techniques[0]
        self.rows = torch.zeros((count, size), dtype=torch.long, device=self.device)
        self.real = torch.zeros((count, size), device=self.device)
        self.keys = torch.zeros((count, self.count), dtype=torch.long, device=self.device)
        self.progress = torch.zeros(count, dtype=torch.float64, device=self.device)
        self.counter = torch.zeros(1, dtype=torch.long, device=self.device)
        self.tables: dict[str, Tensor] = {}
        self.sums: dict[str, Tensor] = {}  # (K,): over the epoch so far
        self.latest: dict[str, Tensor] = {}  # (B,K): of the last batch
        # Without a reference to this loop: the memory of its graphs is freed together with the loop.
        step = partial(StackedLoop.step, weakref.proxy(self))
        self.run_step = CapturedFunction(step, self.device, partial(report, loops[0]), graphs)
        self.epochs = 0  # finished
        self.stopped: set[int] = set()

    def execute(self) -> list[dict[str, Any] | None]:
        """Train all loops; return the record of each selected epoch, None for a model that diverged or was stopped."""
        self._load_moments()
        while active := [i for i, loop in enumerate(self.loops) if not (self._is_left_out(i) or loop.is_over())]:
            terms = self.train_epoch(active)
            if self.count > 1:
                unstack(self.model, self.models)
            self.epochs += 1
            for i in active:
                self.loops[i].state.epoch += 1
                self._finish_epoch(i, {name: float(values[i]) for name, values in terms.items()})
        return [None if self._is_left_out(i) else loop.selected_epoch() for i, loop in enumerate(self.loops)]

    def _is_left_out(self, number: int) -> bool:
        return self.loops[number].divergence is not None or number in self.stopped

    def rehearse(self) -> None:
        """Compute the gradients of the longest batch, so that a lack of memory is known before the first step.

        The second time, the optimizer has its state, as after the first step.  A step that waits for the device cannot
        be captured, and is found here: after a capture that fails, some versions of torch do not draw random numbers.
        """
        with forked_generators():
            self._start_epoch()
            longest = self.data.widths(np.arange(len(self.job.train)))
            self._rehearse_gradients(longest)
            self._allocate_moments()
            if self.run_step.uses_graphs:
                self._rehearse_capture(longest)
            self._rehearse_gradients(longest)
        self._clear_gradients()

    def _rehearse_gradients(self, widths: tuple[int, ...]) -> None:
        self._clear_gradients()
        self._loss(widths)[0].backward()  # type: ignore[no-untyped-call]

    def _rehearse_capture(self, widths: tuple[int, ...]) -> None:
        """Use no graphs if a step waits for the device."""
        try:
            with _waiting_is_an_error(self.device):
                self._rehearse_gradients(widths)
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.run_step.use_no_graphs(error)

    def _finish_epoch(self, number: int, terms: dict[str, float]) -> None:
        """Finish the epoch of one model."""
        loop = self.loops[number]
        try:
            for name, value in terms.items():
                loop.finite(name, value)
        except TrainingDiverged as error:
            loop.diverge(error)
            return
        if loop.save is not None:
            self._store_moments(number)
        try:
            loop.finish_epoch(terms)
        except TrainingStopped:
            self.stopped.add(number)

    def train_epoch(self, active: Sequence[int]) -> dict[str, Tensor]:
        """Train one epoch; return the mean of each term for each model.  (K,)

        `active`: the models that have not ended; the others are trained without effect.
        """
        widths = self._start_epoch()
        for width in widths:
            self.run_step(width)
            for number in active:
                terms = {name: values[:, number] for name, values in self.latest.items()}
                loop = self.loops[number]
                loop.watcher.step(loop.stage.name, loop.state.epoch, terms)
        for loop in self.loops:
            loop.state.step += len(widths)
        return {name: values.cpu() / len(self.job.train) for name, values in self.sums.items()}

    def _start_epoch(self) -> list[tuple[int, ...]]:
        """Fill the tables of the epoch; return the widths of each step."""
        for loop in self.loops:
            loop.start_epoch()
        if self.count > 1:
            training_mode(self.model, self.model)
        self._set_tables([loop.context.epoch_tables for loop in self.loops])
        batches = [loop.batches() for loop in self.loops]
        widths = []
        rows, real = (np.zeros(tuple(self.rows.shape), kind) for kind in (np.int64, np.float32))
        for step, parts in enumerate(zip(*batches, strict=True)):
            joined = np.stack(parts, 1).ravel()  # rows of the models alternate
            rows[step, : len(joined)], real[step, : len(joined)] = joined, 1
            widths.append(self.data.widths(joined))
        self.rows.copy_(torch.from_numpy(rows))
        self.real.copy_(torch.from_numpy(real))
        first = self.loops[0].state
        numbers = range(first.step, first.step + len(widths))
        keys = [[loop.state.key.child(step).key for loop in self.loops] for step in numbers]
        self.keys.copy_(torch.tensor(keys))
        self.progress.copy_(torch.tensor([step / first.steps for step in numbers], dtype=torch.float64))
        self.counter.zero_()
        for values in self.sums.values():
            values.zero_()
        return widths

    def _set_tables(self, tables: Sequence[Mapping[str, Tensor]]) -> None:
        """Copy the tables of the epoch to fixed addresses; a number of each model becomes one of each row."""
        texts = self.job.training.batch_size
        for name, first in tables[0].items():
            value = torch.stack([table[name] for table in tables]).repeat(texts) if self.count > 1 else first
            if name in self.tables:
                self.tables[name].copy_(value)
            else:
                self.tables[name] = value.clone()

    def step(self, widths: tuple[int, ...]) -> None:
        """Train one step on the next entry of the epoch's tables."""
        self._clear_gradients()  # of a capture that failed
        loss, terms = self._loss(widths)
        loss.backward()  # type: ignore[no-untyped-call]
        self._set_gradients()
        if self.loops[0].state.schedule == "linear":
            for group in self.optimizer.param_groups:
                group["lr"].copy_(group["rate"] * (1 - self._entry(self.progress)))
        self.optimizer.step()
        self._clear_gradients()  # so that graphs share memory
        for name, by_model in terms.items():
            if name in self.sums:
                self.sums[name] += by_model.sum(0)
                self.latest[name].copy_(by_model)
            else:  # the first step of a stage, which is not captured
                self.sums[name], self.latest[name] = by_model.sum(0), by_model.clone()
        self.counter += 1

    def _loss(self, widths: tuple[int, ...]) -> tuple[Tensor, Terms]:
        """Return the sum over the models of the mean loss of each, and the terms of each text.  (), (B,K)"""
        rows, real, keys = (self._entry(table) for table in (self.rows, self.real, self.keys))
        batch = self.data.batch(rows, widths)
        context = replace(
            self.loops[0].context,
            key=RandomKey(keys.repeat(len(rows) // self.count)),
            progress=self._entry(self.progress),  # type: ignore[arg-type]
            cached_targets=self.targets.get(batch),
            epoch_tables=self.tables,
        )
        autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=self.job.training.precision == "bf16")
        with self._dropout(keys), autocast:
            terms = check_terms(self.technique.loss(self.model, batch, context), self.technique, len(batch))
        terms = {name: values.to(self.clip.dtype) for name, values in terms.items()}
        weight = real if batch.weight is None else real * batch.weight
        total = (torch.stack(list(terms.values())).sum(0) * weight).sum() * self.count / real.sum()
        return total, {name: (values.detach() * real).view(-1, self.count) for name, values in terms.items()}

    def _dropout(self, keys: Tensor) -> AbstractContextManager[None]:
        """Draw dropout from the keys of the models (K,); a transformer, K = 1, uses torch's generator."""
        encoder = self.model.encoder
        return encoder.keyed_dropout(keys) if isinstance(encoder, WordEncoder) else nullcontext()

    def _entry(self, table: Tensor) -> Tensor:
        """Return the entry of the current step; the number of the step stays on the device."""
        return table.index_select(0, self.counter)[0]

    @torch.no_grad()
    def _set_gradients(self) -> None:
        """Clip the gradient of each model to its maximum norm, and provide it to the optimizer."""
        trained = {name: p for name, p in self._parameters().items() if p.grad is not None}
        by_model = {name: p.grad.view(self.count, -1) for name, p in trained.items()}  # type: ignore[union-attr]
        norms = [torch.linalg.vector_norm(gradient, dim=1) for gradient in by_model.values()]
        factor = (self.clip / (torch.stack(norms).norm(dim=0) + EXCESS)).clamp(max=1.0)  # (K,)
        for name, gradient in by_model.items():
            gradient.mul_(factor.unsqueeze(1))
            for members, values in zip(self.members, gradient.unbind(), strict=True):
                members[name].grad = values.view_as(members[name])

    def _clear_gradients(self) -> None:
        """Also those of auxiliary networks, and of members, which are views of the gradients of the stack."""
        stack_and_members: list[Mapping[str, Tensor]] = [self._parameters(), *self.members]
        for parameters in stack_and_members:
            for parameter in parameters.values():
                parameter.grad = None

    def _parameters(self) -> dict[str, nn.Parameter]:
        return named_parameters(self.model, dict(self.loops[0].state.modules.items()))

    def _make_optimizer(self) -> torch.optim.Adam:
        """Return Adam for the part of each model of the stacked parameters, with the groups of all loops.

        A part shares the memory of its stacked parameter, and is updated as in the optimizer of its model.
        """
        parts = {name: p.unbind() if self.count > 1 else [p] for name, p in self._parameters().items()}
        self.members = [
            {name: values[number].detach() for name, values in parts.items()} for number in range(self.count)
        ]
        groups: dict[tuple[float, float], list[Tensor]] = {}
        for number in range(self.count):
            for group, pairs in self._pairs(number):
                key = group["rate"], group["weight_decay"]
                groups.setdefault(key, []).extend(member for member, _ in pairs)
        rate_type = torch.float32 if self.device.type == "cuda" else torch.float64  # as the fused optimizer reads it
        settings = [
            {
                "params": members,
                "rate": rate,
                "weight_decay": decay,
                "lr": torch.tensor(rate, device=self.device, dtype=rate_type),
            }
            for (rate, decay), members in groups.items()
        ]
        amsgrad = self.job.training.amsgrad
        return torch.optim.Adam(settings, amsgrad=amsgrad, fused=True, capturable=self.device.type == "cuda")

    def _pairs(self, number: int) -> list[tuple[dict[str, Any], list[tuple[Tensor, Tensor]]]]:
        """Return the groups of one model's optimizer, each with pairs of a part of the stack and its own parameter."""
        state = self.loops[number].state
        own = named_parameters(state.model, dict(state.modules.items()))
        names = {parameter: name for name, parameter in own.items()}
        return [
            (group, [(self.members[number][names[p]], p) for p in group["params"]])
            for group in state.optimizer.param_groups
        ]

    def _load_moments(self) -> None:
        """Load the state of each model's optimizer, which is empty unless a run is resumed."""
        for number, loop in enumerate(self.loops):
            for member, own in (pair for _, pairs in self._pairs(number) for pair in pairs):
                if entry := loop.state.optimizer.state.get(own):
                    # Copied: the loop keeps the state before the first step.
                    moments = {name: value.to(self.device, copy=True) for name, value in entry.items()}
                    self.optimizer.state[member] = moments

    def _allocate_moments(self) -> None:
        """Allocate the state of the optimizer for parameters with a gradient, as its first step would."""
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if self.job.training.amsgrad else [])]
        trained = [name for name, parameter in self._parameters().items() if parameter.grad is not None]
        for member in (members[name] for members in self.members for name in trained):
            if not self.optimizer.state.get(member):
                moments = {name: torch.zeros_like(member) for name in names}
                self.optimizer.state[member] = {"step": torch.zeros((), device=self.device), **moments}

    def _store_moments(self, number: int) -> None:
        """Copy the state of the optimizer to that of one model, for its checkpoint."""
        optimizer = self.loops[number].state.optimizer
        for member, own in (pair for _, pairs in self._pairs(number) for pair in pairs):
            optimizer.state[own] = self.optimizer.state[member]


def report(loop: TechniqueLoop, reason: str) -> None:
    """Report how the technique is trained, and why."""
    loop.watcher.detail(f"{type(loop.state.technique).__name__} {reason}")


@contextmanager
def _waiting_is_an_error(device: torch.device) -> Iterator[None]:
    """Raise a RuntimeError if an operation waits for the GPU, such as reading a number from it."""
    if device.type != "cuda":
        yield
        return
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(mode)


def stacked_technique(techniques: Sequence[Technique], rows: int, like: Tensor) -> Technique:
    """Return the technique of a stack: a setting that differs between the models is a tensor of each row's value."""
    merged = copy.copy(techniques[0])
    for name in varying_settings(techniques):
        values = [getattr(technique, name) for technique in techniques]
        if isinstance(values[0], float):
            object.__setattr__(merged, name, like.new_tensor(values).repeat(rows // len(techniques)))
    return merged


def varying_settings(techniques: Sequence[Technique]) -> list[str]:
    """Return the names of the settings that are not the same in all techniques of one class."""
    first = techniques[0]
    return [f.name for f in fields(first) if any(getattr(t, f.name) != getattr(first, f.name) for t in techniques)]
