"""Multi-label and regression models as models of two classes, for evaluations and audits."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.output_labels import binary_labels, numbers
from steadygaze.core.arguments import number, optional, validated
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.estimator.inputs import list_labels


@validated(threshold=optional(number()))
def two_class_models(
    adapters: Sequence[ModelAdapter], texts: Any, target: Label | None, threshold: float | None
) -> tuple[list[ModelAdapter], Callable[[Any], Any]]:
    """The models of an audit as models of two classes, and the function that converts their labels.

    The first model determines the threshold, the median of its predictions, and the scale, their standard deviation.
    """
    first = adapters[0]
    if first.task == "classification":
        if target is not None or threshold is not None:
            raise UserError(
                f"target= and threshold= are for multi-label and regression models; {first.name} has classes"
            )
        return list(adapters), list_labels
    if threshold is not None and first.task != "regression":
        raise UserError(f"threshold= is for regression models; {first.name} predicts several labels")
    name, index = first.output_position(target)
    if first.task == "multi-label":
        return [adapter.for_output(name) for adapter in adapters], lambda labels: binary_labels(
            list_labels(labels, first.outputs), first.outputs, index
        )
    values = first.predict_covered(texts, batch_size=64)[0][:, index]
    limit = float(np.median(values)) if threshold is None else threshold
    scale = float(values.std()) or 1.0
    return [adapter.for_output(name, limit, scale) for adapter in adapters], lambda labels: [
        int(value > limit) for value in numbers(list_labels(labels))
    ]
