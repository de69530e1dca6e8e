"""Labels of the data for multi-label and regression models."""

from collections.abc import Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.data.text_checks import is_missing, strip_label
from steadygaze.results.formatting import count_text


def binary_labels(labels: Iterable[Any], outputs: Sequence[Label], index: int) -> list[Label]:
    """The labels of one output: sets or lists of names, rows of 0 and 1, or 0 and 1 for this label.

    Numbers in a set are names; a list of numbers is a row of 0 and 1.

    >>> binary_labels([{"toxic"}, [], [0, 1], 1], ["rude", "toxic"], 1)
    ['toxic', 'not toxic', 'toxic', 'toxic']
    """
    return [_binary(label, row, outputs, index) for row, label in enumerate(labels)]


def label_matrix(labels: Iterable[Any], outputs: Sequence[Label]) -> NDArray[np.bool_]:
    """Which labels each text has; rows as for `binary_labels`.  (N,K)"""
    matrix = []
    for row, label in enumerate(labels):
        items = _items(label)
        if items is None:
            raise UserError(f"labels[{row}] is {label!r:.40}; pass a set of names, or a row of 0 and 1, for each text")
        matrix.append(_presence(items, row, outputs))
    return np.array(matrix, bool).reshape(-1, len(outputs))


def _binary(label: Any, row: int, outputs: Sequence[Label], index: int) -> Label:
    items = _items(label)
    present: Any = label if items is None else _presence(items, row, outputs)[index]
    name = str(outputs[index])
    if present in (0, 1):
        return name if present else f"not {name}"
    unchecked: Label = present  # check_labels checks others
    return unchecked


def _items(label: Any) -> Set[Any] | Sequence[Any] | None:
    """The set or the list of a text with several labels; None for other values."""
    values = label.tolist() if hasattr(label, "tolist") else label  # NumPy
    return values if isinstance(values, Set | Sequence) and not isinstance(values, str) else None


def _presence(items: Set[Any] | Sequence[Any], row: int, outputs: Sequence[Label]) -> list[bool]:
    """True for each output whose label the text has."""
    names = list(map(str, outputs))
    if isinstance(items, Set) or not items or any(isinstance(item, str) for item in items):
        labels = {item if item in names else strip_label(item) for item in map(str, items)}
        if unknown := sorted(labels - set(names)):
            raise UserError(
                f"labels[{row}] has the label {unknown[0]!r:.40}, which is not an output of the model: "
                f"{', '.join(names):.200}"
            )
        return [name in labels for name in names]
    if len(items) != len(names):
        raise UserError(
            f"labels[{row}] has {count_text(len(items), 'value')}, but the model has {count_text(len(names), 'output')}"
            f" ({', '.join(names):.200}); pass a row of 0 and 1, one for each, or a set of names"
        )
    if not all(item in (0, 1) for item in items):
        raise UserError(f"labels[{row}] is {items!r:.60}; a row of labels has only 0 and 1")
    return list(map(bool, items))


def numbers(labels: Iterable[Any]) -> list[float]:
    """Labels of a regression model."""
    values = []
    for i, label in enumerate(labels):
        try:
            values.append(float("nan") if is_missing(label) else float(label))
        except (TypeError, ValueError):
            raise UserError(f"labels[{i}] is {label!r:.40}; a regression model needs numbers") from None
        if not np.isfinite(values[-1]):
            raise UserError(f"labels[{i}] is {label!r:.40}; a regression model needs finite numbers")
    return values
