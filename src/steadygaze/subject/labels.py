"""Match the labels of the data with the classes of a model.

1. By name.  Numbers and strings are equal when they are written alike: the label 1 matches the class "1".  A boolean
   label also matches the words: true matches the class "True", "true" or "TRUE".
2. By position, where no label is the name of a class and every label is a whole number: 0 is the first class.  Classes
   whose names are numbers or, for boolean labels, boolean words are not matched by position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.corpus.check import BooleanLabel
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
    >>> positions([BooleanLabel(True), BooleanLabel(False)], ["True", "False"])
    [0, 1]
    """
    names = {str(name): position for position, name in enumerate(classes)}
    spellings = {spelling for label in labels for spelling in _spellings(label)}
    if not spellings & names.keys() and not any(_names_value(name, labels) for name in classes):
        names = {str(position): position for position in range(len(classes))}
    found = [_position(label, names) for label in labels]
    matched = [position for position in found if position is not None]
    return matched if len(matched) == len(labels) else Unmatched(labels[found.index(None)])


def _position(label: Label, names: Mapping[str, int]) -> int | None:
    return next((names[spelling] for spelling in _spellings(label) if spelling in names), None)


def _spellings(label: Label) -> tuple[str, ...]:
    """The names of classes that a label matches, the best first."""
    if not isinstance(label, BooleanLabel):
        return (str(label),)
    word = str(bool(label))
    return word, word.lower(), word.upper(), str(int(label))


def _names_value(name: Label, labels: Sequence[Label]) -> bool:
    """Whether a class is named after a value that labels like these can have, so that its position means nothing."""
    if not isinstance(name, str):
        return True
    boolean = any(isinstance(label, BooleanLabel) for label in labels)
    return name.removeprefix("-").isdecimal() or (boolean and name.casefold() in ("true", "false"))
