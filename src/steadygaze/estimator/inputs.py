"""What scikit-learn users pass as X and y -> texts, questions, labels and weights, checked.

One text each: a list, tuple, NumPy array or pandas Series of strings, a column of a Hugging Face dataset.
Pairs: a list of (text, question), an array or DataFrame of two columns.
A Hugging Face `Dataset` is read by its column `text`.
"""

import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.data.text_checks import check_labels, check_texts

HELD_OUT = 0.1
"""Share of the texts set aside to choose the epoch, where no validation set is given."""
FEW = 20
"""With fewer texts than this, none can be spared for that."""


@dataclass(frozen=True)
class Split:
    """Some labelled texts."""

    texts: list[str]
    questions: list[str] | None
    labels: list[Label]
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.texts):
            raise UserError(f"found {len(self.texts)} texts and {len(self.labels)} labels; they must be equally many")
        if self.weights is not None and self.weights.shape != (len(self.texts),):
            raise UserError(
                f"found {len(self.texts)} texts and weights of shape {self.weights.shape}; one each is needed"
            )
        if self.weights is not None and not (np.isfinite(self.weights).all() and self.weights.min() >= 0):
            raise UserError("sample weights must be finite numbers from 0 up")

    def fingerprint(self) -> str:
        """SHA-256 of everything here."""
        weights = None if self.weights is None else self.weights.tolist()
        return hashlib.sha256(json.dumps([self.texts, self.questions, self.labels, weights]).encode()).hexdigest()

    def rows(self, chosen: Sequence[int]) -> "Split":
        return Split(
            [self.texts[i] for i in chosen],
            None if self.questions is None else [self.questions[i] for i in chosen],
            [self.labels[i] for i in chosen],
            None if self.weights is None else self.weights[list(chosen)],
        )

    def weighted(self, class_weight: str | Mapping[Label, float] | None) -> NDArray[np.float32] | None:
        """Each text's weight times its class's, with mean 1; None where all are equal."""
        weights = self.weights
        if class_weight is not None:
            try:
                each = compute_sample_weight(class_weight, self.labels)
            except ValueError as error:
                raise UserError(f"class_weight does not fit the labels: {error}") from None
            weights = each if weights is None else weights * each
        if weights is not None and not weights.any():
            raise UserError("class_weight and the sample weights together leave every text with weight 0")
        return None if weights is None else (weights / weights.mean()).astype(np.float32)


def read_split(X: Any, y: Any, sample_weight: Any = None) -> Split:
    """What is to be trained on.  A text of weight 0 is left out, as if it had never been given."""
    texts, questions = read_texts(X)
    split = Split(texts, questions, read_labels(y, minimum_classes=2), read_weights(sample_weight))
    classes = len(set(split.labels))
    if len(split.labels) >= FEW and classes == len(split.labels):
        raise UserError(
            f"{len(split.labels):,} texts have {classes:,} different labels, {str(split.labels[0])!r:.40} among them: "
            "is this the column of labels?  Choose it with --label, or pass the labels as the second argument"
        )
    if split.weights is None or split.weights.all():
        return split
    kept = np.flatnonzero(split.weights).tolist()
    if len({split.labels[i] for i in kept}) < 2:
        raise UserError("sample weights above 0 are needed in at least two classes")
    return split.rows(kept)


def read_weights(given: Any) -> NDArray[np.float64] | None:
    """Sample weights as an array; None where there are none."""
    try:
        return None if given is None else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"sample weights must be numbers, one for each text; found {given!r:.80}") from None


def read_validation(given: Any) -> Split:
    """What chooses the epoch."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UserError(f"validation must be (texts, labels), found {given!r:.80}")
    texts, questions = read_texts(given[0])
    return Split(texts, questions, read_labels(given[1], minimum_classes=1))


def hold_out(split: Split, seed: int = 0) -> tuple[Split, Split]:
    """(train, validation): a tenth of the texts, each class in its share.

    The seed is not the run's: models that differ in their seed alone are to have read the same texts, or they could
    not be each other's teachers, and what differs between them would not be the seed's doing.
    The first text drawn of a class always stays: a class cannot be learnt from nothing.
    """
    total, seen = Counter(split.labels), Counter[Label]()
    share: dict[int, float] = {}  # of its class's texts, how many were drawn before this one
    for row in np.random.default_rng(seed).permutation(len(split.labels)).tolist():
        label = split.labels[row]
        if seen[label]:
            share[row] = seen[label] / total[label]
        seen[label] += 1
    if len(split.texts) < FEW or not share:
        warnings.warn(
            f"{len(split.texts)} texts are too few to set any aside: the epoch is chosen on them", stacklevel=4
        )
        return split, split
    held_out = set(sorted(share, key=share.__getitem__)[: math.ceil(len(split.texts) * HELD_OUT)])
    return split.rows([i for i in range(len(split.texts)) if i not in held_out]), split.rows(sorted(held_out))


def read_texts(given: Any) -> tuple[list[str], list[str] | None]:
    """(texts, questions); questions are None for single texts."""
    columns = _columns(given)
    if len(columns) > 2:
        raise UserError(f"a text and at most one question about it can be read, found {len(columns)} columns")
    texts = check_texts(columns[0])
    return texts, check_texts(columns[1], where="questions[{}]".format) if len(columns) == 2 else None


def read_labels(given: Any, minimum_classes: int) -> list[Label]:
    is_array = getattr(given, "ndim", 0) > 0  # whose shape is to be looked at first
    labels = check_labels(given if is_array else _listed(given, "labels"), minimum_classes=minimum_classes)
    return [label if isinstance(label, str) else int(label) for label in labels]  # a boolean is a number from here on


def is_single_text(given: Any) -> bool:
    """A single text, or a single (text, question): a tuple.  Several texts come in a list."""
    pair = isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) for part in given)
    return isinstance(given, str) or pair


def _columns(given: Any) -> list[Sequence[Any]]:
    if hasattr(given, "column_names") and hasattr(given, "features"):  # a Hugging Face Dataset
        return [_column(given, "text")]
    if hasattr(given, "columns") and hasattr(given, "iloc"):  # a pandas DataFrame
        return [given.iloc[:, i].tolist() for i in range(given.shape[1])]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return [column.tolist() for column in given.T]
    rows = _listed(given, "texts")
    if rows and all(isinstance(row, tuple | list) for row in rows):
        widths = sorted({len(row) for row in rows})
        if widths != [2]:
            raise UserError(f"pairs are (text, question), found rows of {widths} parts")
        return [[row[i] for row in rows] for i in range(2)]
    return [rows]


def _column(dataset: Any, name: str) -> list[Any]:
    if name not in (dataset.column_names or ()):
        columns = ", ".join(dataset.column_names or ["none"])
        raise UserError(f"the dataset has no column {name!r}, only {columns}: pass dataset[column]")
    return list(dataset[name])


def _listed(given: Any, name: str) -> list[Any]:
    """A list of what was given, unless it is one thing, or many in no order."""
    if isinstance(given, str | bytes):
        raise UserError(f"{name} must come in a list, found one string; put it in a list")
    if isinstance(given, Mapping | Set):
        raise UserError(f"{name} must come in a list, found a {type(given).__name__}; pass its values in a list")
    try:
        return list(given)
    except TypeError:  # not iterable: None, a number, an array without dimensions
        raise UserError(f"{name} must come in a list or an array, found {given!r:.80}") from None
