"""Match the labels of the data with the classes of a model.

1. By name.  Numbers and strings are equal when they are written alike: the label 1 matches the class "1".
2. By position, where no label is the name of a class and every label is a whole number: 0 is the first class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from steadygaze.types import Label


@dataclass(frozen=True)
class Unmatched:
    """The first label without a class."""

    label: Label


def positions(labels: Sequence[Label], classes: Sequence[Label]) -> list[int] | Unmatched:
    """The position of each label among the classes.

    >>> positions([1, 0], ["1", "0"])
    [0, 1]
    >>> positions([1, 0], ["hate", "normal"])
    [1, 0]
    >>> positions([1, 2], ["1", "one"])
    Unmatched(label=2)
    """
    names = {str(name): position for position, name in enumerate(classes)}
    if not any(str(label) in names for label in labels) and all(isinstance(name, str) for name in classes):
        names = {str(position): position for position in range(len(classes))}
    for label in labels:
        if str(label) not in names:
            return Unmatched(label)
    return [names[str(label)] for label in labels]
