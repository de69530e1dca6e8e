"""Health of a trained model, from the records of its training and its weights.

It is computed again whenever a model is saved or loaded, so that edited folders are judged, too.  Problems that were
saved are kept: some, such as an unlearned reference, leave no other record.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from math import isfinite, nan, sqrt
from typing import Any, TypeGuard

from torch import nn

from steadygaze.core.maths.collapse import UNEVEN, Collapse
from steadygaze.core.tensor_files import is_finite
from steadygaze.estimator.model_config import ModelConfig
from steadygaze.results.health import Health, HealthProblem, ProblemKind

FEWEST = 20
"""Fewest validation texts for a judgment of the macro-F1: its standard error is above 0.1 with fewer."""
UNKNOWN_TEXTS = 100
"""Validation texts that are assumed for a folder without their number."""
STALLED = 0.01
"""Least relative change of the training loss: a model that learns changes it by more in its first epochs."""

TEACHERS = ("teacher", "reference")
"""First words of the stages whose models are distilled."""

UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(("normalized_entropy", "distance_to_uniform", "distance_to_positional_mean", "unexplained"), nan),
    **{"overlap": None, "uniform": False, "constant": False},
}
"""Statistics that a record lacks."""


def assess(description: ModelConfig, model: nn.Module) -> Health:
    """The known-bad states of a model."""
    return Health(tuple(_problems(description, model))) + Health.from_list(description.health)


def reference_problems(references: Iterable[Health]) -> list[dict[str, Any]]:
    """The problem of a model whose references, passed to `fit`, have not learned; for `ModelConfig.health`."""
    numbers = [i for i, health in enumerate(references, 1) if not health.has_learned]
    return Health(tuple(_teacher(f"reference {number}") for number in numbers[:1])).to_list()


def _problems(description: ModelConfig, model: nn.Module) -> Iterator[HealthProblem]:
    if not all(is_finite(value) for value in model.state_dict().values() if value.is_floating_point()):
        yield HealthProblem(ProblemKind.NON_FINITE)
    best, history = description.best_epoch, description.history
    yield from _unlearned(best, history, description)
    yield from collapse_problems(best.get("attention"), selects="granularity" in description.technique_settings)
    if teacher := _unlearned_teacher(description):
        yield _teacher(teacher)


def _teacher(name: str) -> HealthProblem:
    return HealthProblem(ProblemKind.UNLEARNED_TEACHER, detail=name)


def _unlearned(
    epoch: Mapping[str, Any], history: Iterable[Mapping[str, Any]], description: ModelConfig
) -> Iterator[HealthProblem]:
    """A constant label, or else a score that guessing reaches: at most 1 / classes for a constant and for chance."""
    classes, n = description.classes, description.validation_texts
    label, score, guessing = epoch.get("constant_label"), epoch.get("macro-f1"), 1 / len(classes)
    if type(label) is int and 0 <= label < len(classes):
        yield HealthProblem(ProblemKind.CONSTANT_LABEL, label=classes[label])
    elif _is_number(score) and (n is None or n >= FEWEST):
        chance = guessing + 1 / sqrt(n or UNKNOWN_TEXTS)  # two standard errors of a share, at most
        if score <= guessing or (score <= chance and loss_stalled(epoch, history)):
            yield HealthProblem(ProblemKind.NOT_LEARNED, value=score, limit=guessing)


def loss_stalled(epoch: Mapping[str, Any], history: Iterable[Mapping[str, Any]]) -> bool:
    """True if the training loss of the stage of this epoch hardly changed."""
    terms = [record.get("terms") for record in history if record.get("stage") == epoch.get("stage")]
    losses = [loss for values in terms if isinstance(values, Mapping) and _is_number(loss := values.get("task"))]
    if len(losses) < 2:
        return False
    return abs(losses[-1] - losses[0]) < STALLED * abs(losses[0])


def _unlearned_teacher(description: ModelConfig) -> str:
    """The first teacher or reference of the training that has not learned; empty without one."""
    last = description.best_epoch.get("stage")
    for stage in dict.fromkeys(record.get("stage") for record in description.history):
        records = [record for record in description.history if record.get("stage") == stage]
        scored = [record for record in records if _is_number(record.get("macro-f1"))]
        if stage == last or not scored or not str(stage).startswith(TEACHERS):
            continue
        best = max(scored, key=lambda record: record["macro-f1"])
        if any(_unlearned(best, records, description)):
            return str(stage)
    return ""


def collapse_problems(record: Any, selects: bool) -> Iterator[HealthProblem]:
    """The collapse of attention or of a selection, judged by its numbers."""
    if not isinstance(record, Mapping):
        return
    names = {field.name for field in fields(Collapse)} & record.keys()
    numbers = {name: nan if record[name] is None and name != "selected" else record[name] for name in names}
    try:
        collapse = Collapse(**{**UNKNOWN, **numbers})
        collapse = replace(collapse, uniform=collapse.uniform or collapse.distance_to_uniform < UNEVEN)
        collapsed, reason = collapse.collapsed, collapse.reason
    except (TypeError, ValueError):  # an edited record
        return
    if collapsed:
        interlocked = collapse.unit == "sentence" and collapse.constant
        kind = ProblemKind.UNINFORMATIVE if selects else ProblemKind.COLLAPSED
        yield HealthProblem(ProblemKind.INTERLOCKED if interlocked else kind, detail=reason)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
