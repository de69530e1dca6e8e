"""Rows of a fitted explainer: one number per text becomes a mean with its interval; some also by predicted class."""

import math
from collections.abc import Mapping, Sequence

from steadygaze.record import Row
from steadygaze.report.interval import mean_row
from steadygaze.report.warned import BY_CLASS, READER
from steadygaze.types import Label


def selection_rows(
    values: Mapping[str, Sequence[float]],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """A row for each measure, NaN left out; for the independent reader also one for each predicted class.

    `predicted`: the class of each text, as its position in `classes`.
    """
    rows = []
    for name, numbers in values.items():
        if known := [value for value in numbers if not math.isnan(value)]:
            rows.append(mean_row(name, known, settings))
        if name == READER:
            rows += by_class(numbers, predicted, classes, settings)
    return rows


def by_class(
    numbers: Sequence[float],
    predicted: Sequence[float],
    classes: Sequence[Label],
    settings: Mapping[str, str | int | float],
) -> list[Row]:
    """The independent reader's accuracy for each predicted class that occurs."""
    rows = []
    for index, label in enumerate(classes):
        own = [value for value, code in zip(numbers, predicted, strict=True) if code == index and not math.isnan(value)]
        if own:
            rows.append(mean_row(BY_CLASS, own, {**settings, "class": str(label)}))
    return rows
