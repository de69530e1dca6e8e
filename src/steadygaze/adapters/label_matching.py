"""Labels of data matched with the classes of a model.

1. By name.  Numbers and strings are compared as strings: the label 1 matches the class "1".  A boolean label also
   matches the words: true matches the class "True", "true" or "TRUE".
2. By position, if no label is the name of a class and every label is a whole number: 0 is the first class.  Classes
   whose names are numbers or, for boolean labels, boolean words are not matched by position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.data.text_checks import BooleanLabel


@dataclass(frozen=True)
class UnmatchedLabel:
    """The first label without a class."""

    label: Label


def positions(labels: Sequence[Label], classes: Sequence[Label]) -> list[int] | UnmatchedLabel:
    """The position of each label among the classes.

    >>> positions([1, 0], ["1", "0"])
    [0, 1]
    >>> positions([1, 0], ["hate", "normal"])
    [1, 0]
    >>> positions([1, 2], ["1", "one"])
    UnmatchedLabel(label=2)
    >>> positions([BooleanLabel(True), BooleanLabel(False)], ["True", "False"])
    [0, 1]
    """
    names = {str(name): position for position, name in enumerate(classes)}
    spellings = {spelling for label in labels for spelling in _spellings(label)}
    if not spellings & names.keys() and not any(_names_value(name, labels) for name in classes):
        names = {str(position): position for position in range(len(classes))}
    indices = [_position(label, names) for label in labels]
    matched = [position for position in indices if position is not None]
    return matched if len(matched) == len(labels) else UnmatchedLabel(labels[indices.index(None)])


def _position(label: Label, names: Mapping[str, int]) -> int | None:
    return next((names[spelling] for spelling in _spellings(label) if spelling in names), None)


def _spellings(label: Label) -> tuple[str, ...]:
    """Class names that a label matches, best first."""
    if not isinstance(label, BooleanLabel):
        return (str(label),)
    word = str(bool(label))
    return word, word.lower(), word.upper(), str(int(label))


def _names_value(name: Label, labels: Sequence[Label]) -> bool:
    """Whether the name of a class is a possible label, so that labels are not positions."""
    if not isinstance(name, str):
        return True
    boolean = any(isinstance(label, BooleanLabel) for label in labels)
    return name.removeprefix("-").isdecimal() or (boolean and name.casefold() in ("true", "false"))


def check_label_order(classes: Sequence[Label], names: Sequence[Label], model: str) -> None:
    """Refuse the model's own class names in another order: they would swap classes."""
    new, current = list(map(str, names)), list(map(str, classes))  # the command line gives 1 as "1"
    if new != current and set(new) == set(current):
        raise UserError(
            f"classes= has the classes of {model} in another order than its own, {', '.join(map(str, classes)):.200}: "
            f"remove it, or pass them in that order"
        )
