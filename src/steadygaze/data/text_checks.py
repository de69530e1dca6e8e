"""Check texts and labels of any iterable; return `list[str]` and `list[str | int]`.

`location` names the i-th value in errors: `texts[3]`, or the file and the row.

String labels lose the white space around them, also no-break spaces and invisible characters such as zero-width
spaces: otherwise `ok` and `ok ` would be two classes.
Whole numbers become `int`, also whole floats (2.0 -> 2).  Booleans become 0 and 1, as a `BooleanLabel`, so that they
match classes named true and false.  Errors: a missing label, several labels for one text, fractions (regression), mixed
strings and numbers, and whole numbers of more than 64 bits.

`positions` matches the labels of data with the classes of a model:

1. By name.  Numbers and strings are compared as strings: the label 1 matches the class "1".  A boolean label also
   matches the words: true matches the class "True", "true" or "TRUE".  White space around the name of a class does not
   count, unless two classes differ in it alone.
2. By position, if no label is the name of a class and every label is a whole number: 0 is the first class.  Classes
   whose names are numbers or, for boolean labels, boolean words are not matched by position.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import numpy as np

from steadygaze.core.errors import MAX_NAMES, UserError
from steadygaze.core.types import Label

Locate = Callable[[int], str]
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + (
    "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
)
"""White space, and characters that take no space."""


class BooleanLabel(int):
    """0 or 1 from a boolean in the data.  Only `ModelAdapter.label_codes` distinguishes it from an integer."""


HEADER = " (the header is row 1)"
"""End of the location of a row, in a file whose first row is the header."""
MOST_NAMED = 5
"""Empty texts that a warning names."""


@dataclass
class EmptyTexts:
    """Counts the rows without a text, which have no prediction, and names the first ones."""

    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Count a row."""
        self.count += 1
        if self.count <= MOST_NAMED:
            self.names.append(name)

    @property
    def sentence(self) -> str:
        """
        >>> EmptyTexts(2, ["texts[1]", "texts[3]"]).sentence
        'no prediction for 2 empty texts: texts[1]; texts[3]'
        >>> EmptyTexts(3, ["a.csv, row 2 (the header is row 1)", "a.csv, row 9 (the header is row 1)"]).sentence
        'no prediction for 3 empty texts: a.csv, row 2 (the header is row 1); row 9; …'
        """
        texts = "text" if self.count == 1 else "texts"
        more = "; …" if self.count > len(self.names) else ""
        file = self.names[0].rpartition(", ")[0] if self.names else ""  # only the first name has the file
        others = [name.removeprefix(f"{file}, ").removesuffix(HEADER) if file else name for name in self.names[1:]]
        return f"no prediction for {self.count:,} empty {texts}: {'; '.join([*self.names[:1], *others])}{more}"


def check_texts(
    texts: Iterable[object], *, location: Locate = "texts[{}]".format, allow_empty: bool = False
) -> list[str]:
    """The texts as a list of str, none of them empty; with `allow_empty`, empty and missing ones become ""."""
    values = _listed(texts, "texts")
    if allow_empty:
        return ["" if is_missing(text) else _text(text, i, location) for i, text in enumerate(values)]
    empty = [i for i, text in enumerate(values) if is_empty(text)]
    if empty:
        count = f" ({len(empty)} such texts in all)" if len(empty) > 1 else ""
        raise UserError(f"{location(empty[0])} is empty{count}; every text needs at least one word.")
    return [_text(text, i, location) for i, text in enumerate(values)]


def check_labels(
    labels: Iterable[object],
    *,
    minimum_classes: int = 2,
    location: Locate = "labels[{}]".format,
    strip: bool = True,
) -> list[Label]:
    """The labels as a list of str or of int, with at least `minimum_classes` different ones.

    `strip=False`: for the names of the classes of a model, which labels match with or without white space.
    """
    values = _listed(labels, "labels")
    if strip:
        values = [strip_label(value) if isinstance(value, str) else value for value in values]
    checked = [_label(value, i, location) for i, value in enumerate(values)]
    _refuse_mixture(checked, location)
    classes = sorted(set(checked))
    if len(classes) < minimum_classes:
        raise UserError(
            f"the {len(checked)} labels have {len(classes)} class ({classes[0]!r}); "
            f"a classifier needs at least {minimum_classes}."
        )
    return checked


def strip_label(label: str) -> str:
    """Return a label without the white space and invisible characters around it.

    >>> strip_label("\\u200b not ok\\xa0 ")
    'not ok'
    """
    return label.strip(BLANKS)


def is_empty(text: object) -> bool:
    """Return whether a text is null or only white space."""
    return text is None or (isinstance(text, str) and not text.strip())


def is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT, or a string of white space."""
    if type(value).__name__ in {"NAType", "NaTType"}:  # pandas' own markers, known without importing pandas
        return True
    return is_empty(value) or (isinstance(value, float | np.floating) and math.isnan(value))


def _listed(values: Iterable[object], name: str) -> list[object]:
    if isinstance(values, str | bytes):
        raise UserError(f"{name} is a single string; pass a list of strings: [{name}].")
    shape = getattr(values, "shape", (0,))
    if len(shape) != 1:
        hint = " (steadygaze trains single-label classifiers)" if name == "labels" else ""
        raise UserError(f"{name} has shape {tuple(shape)}; pass one value per text{hint}.")
    listed: list[object] = values.tolist() if hasattr(values, "tolist") else list(values)
    if not listed:
        raise UserError(f"there are no {name}.")
    return listed


def _text(value: object, i: int, location: Locate) -> str:
    if not isinstance(value, str):
        description = "missing" if is_missing(value) else f"{value!r:.40} ({type(value).__name__})"
        raise UserError(f"{location(i)} is {description}; every text must be a string.")
    return _characters(value, i, location)


def _characters(value: str, i: int, location: Locate) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        half = value[error.start]
        raise UserError(
            f"{location(i)} contains {half!r}, half of a surrogate pair, which is not a character."
        ) from None
    return str(value)  # numpy.str_ becomes str


def _label(value: object, i: int, location: Locate) -> Label:
    if isinstance(value, np.generic):  # inside an object array
        value = value.item()
    if is_missing(value):
        raise UserError(f"{location(i)} is empty: every text needs a label; fill it in, or remove the row.")
    if isinstance(value, str):
        return _characters(value, i, location)
    if isinstance(value, bool | BooleanLabel):
        return BooleanLabel(value)
    if isinstance(value, Real):
        if not isinstance(value, Integral) and not float(value).is_integer():
            raise UserError(
                f"{location(i)} is {value!r}: steadygaze trains classifiers, not regressions; "
                "labels must be class names or whole numbers."
            )
        whole = int(value) if isinstance(value, Integral) else int(float(value))
        if not -(2**63) <= whole < 2**63:
            raise UserError(
                f"{location(i)} is an integer of more than 64 bits; if labels are names, convert them to strings."
            )
        return whole
    if isinstance(value, Iterable):
        raise UserError(
            f"{location(i)} is {value!r:.60}: steadygaze trains single-label classifiers; pass one label per text."
        )
    raise UserError(
        f"{location(i)} is {value!r:.60} ({type(value).__name__}); labels must be strings or whole numbers."
    )


def _refuse_mixture(labels: Sequence[Label], location: Locate) -> None:
    first = isinstance(labels[0], str)
    mismatch = next((i for i, label in enumerate(labels) if isinstance(label, str) != first), None)
    if mismatch is not None:
        raise UserError(
            f"{location(0)} is {labels[0]!r} but {location(mismatch)} is {labels[mismatch]!r}; "
            "labels must be all strings or all whole numbers."
        )


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
    names = {strip_label(str(name)): position for position, name in enumerate(classes)}
    names |= {str(name): position for position, name in enumerate(classes)}
    spellings = {spelling for label in labels for spelling in _spellings(label)}
    if not spellings & names.keys() and not any(_names_value(name, labels) for name in classes):
        names = {str(position): position for position in range(len(classes))}
    indices = [next((names[word] for word in _spellings(label) if word in names), None) for label in labels]
    matched = [position for position in indices if position is not None]
    return matched if len(matched) == len(labels) else UnmatchedLabel(labels[indices.index(None)])


def _spellings(label: Label) -> tuple[str, ...]:
    """Class names that a label matches, best first."""
    if not isinstance(label, BooleanLabel):
        return (str(label),)
    word = str(bool(label))
    return word, word.lower(), word.upper(), str(int(label))


def _names_value(name: Label, labels: Sequence[Label]) -> bool:
    """True if the name of a class is a possible label, so that labels are not positions."""
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


def unmatched_label(label: Label, labels: Sequence[Label], classes: Sequence[Label], model: str) -> UserError:
    """The error of a label without a class, with the option that names the classes."""
    names = sorted(set(labels), key=str)
    if len(names) == len(classes) == 2:
        (first, second), (a, b) = classes, names
        option = (
            f"pass --classes {a},{b} (classes=) if {first!r} is {a!r} and {second!r} is {b!r}, or --classes {b},{a} if "
            "it is the other way round"
        )
    else:
        letters = [chr(ord("A") + i) for i in range(min(len(classes), MAX_NAMES))]
        meaning = " and ".join(f"{a} is your name of {c!r}" for a, c in zip(letters[:2], classes, strict=False))
        option = f"pass --classes {','.join(letters)} (classes=), where {meaning}"
    return UserError(
        f"the data have the label {label!r}, which is not a class of {model}; its {listed_names('classes', classes)}.  "
        f"The {listed_names('labels of the data', names)}.  If they name the same classes, {option}"
    )


def listed_names(noun: str, names: Sequence[Label]) -> str:
    """The first names of a list, as "classes are 'negative', 'positive'"."""
    return f"{noun} are {', '.join(map(repr, names[:MAX_NAMES]))}" + (" …" if len(names) > MAX_NAMES else "")
