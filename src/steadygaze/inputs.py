"""What scikit-learn users pass as X and y -> texts, questions, labels and weights, checked.

One text each: a list, tuple, NumPy array or pandas Series of strings, a column of a Hugging Face dataset.
Pairs: a list of (text, question), an array or DataFrame of two columns.
A Hugging Face `Dataset` is read by its column `text`.
"""

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight

from steadygaze.corpus.check import check_labels, check_texts
from steadygaze.errors import UserError
from steadygaze.types import Label

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
        if self.weights is not None and not (
            np.isfinite(self.weights).all() and self.weights.min() >= 0 < self.weights.max()
        ):
            raise UserError("sample weights must be finite numbers from 0 up, some of them above 0")

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
        return None if weights is None else (weights / weights.mean()).astype(np.float32)


def read_split(X: Any, y: Any, sample_weight: Any = None, minimum_classes: int = 2) -> Split:
    texts, questions = read_texts(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return Split(texts, questions, check_labels(y, minimum_classes=minimum_classes), weights)


def set_aside(split: Split, seed: int) -> tuple[Split, Split]:
    """(train, validation): a tenth of the texts, each class in its share where every class has texts enough."""
    if len(split.texts) < FEW:
        warnings.warn(
            f"{len(split.texts)} texts are too few to set any aside: the epoch is chosen on them", stacklevel=4
        )
        return split, split
    rarest = min(np.unique(split.labels, return_counts=True)[1])
    stratify = split.labels if rarest >= 2 and len(split.texts) * HELD_OUT >= len(set(split.labels)) else None
    rows = train_test_split(range(len(split.texts)), test_size=HELD_OUT, random_state=seed, stratify=stratify)
    return split.rows(sorted(rows[0])), split.rows(sorted(rows[1]))


def read_texts(given: Any) -> tuple[list[str], list[str] | None]:
    """(texts, questions); questions are None for single texts."""
    if isinstance(given, str):
        raise UserError("texts must be a list of strings, found one string; put it in a list")
    columns = _columns(given)
    if len(columns) > 2:
        raise UserError(f"a text and at most one question about it can be read, found {len(columns)} columns")
    return check_texts(columns[0]), check_texts(columns[1]) if len(columns) == 2 else None


def is_one(given: Any) -> bool:
    """A single text, or a single (text, question): a tuple.  Several texts come in a list."""
    pair = isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) for part in given)
    return isinstance(given, str) or pair


def _columns(given: Any) -> list[Sequence[Any]]:
    if hasattr(given, "column_names") and hasattr(given, "features"):  # a Hugging Face Dataset
        if "text" not in given.column_names:
            raise UserError(
                f"the dataset has no column 'text', only {', '.join(given.column_names)}: pass dataset[column]"
            )
        return [list(given["text"])]
    if hasattr(given, "columns") and hasattr(given, "iloc"):  # a pandas DataFrame
        return [given.iloc[:, i].tolist() for i in range(given.shape[1])]
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return [column.tolist() for column in given.T]
    rows = list(given)
    if rows and all(isinstance(row, tuple | list) for row in rows):
        widths = sorted({len(row) for row in rows})
        if widths != [2]:
            raise UserError(f"pairs are (text, question), found rows of {widths} parts")
        return [[row[i] for row in rows] for i in range(2)]
    return [rows]
