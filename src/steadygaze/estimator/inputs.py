"""Read and check X and y: texts, questions, labels and weights.

One text each: a list, tuple, NumPy array, pandas or polars Series of strings, a column of a Hugging Face dataset.
Pairs: a list of (text, question), an array or DataFrame of two columns.
A Hugging Face `Dataset` is read by its column `text`.
A list of `Example`: text, question and the given sentences, which models that select sentences read.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import CoverageWarning, UserError, unknown
from steadygaze.core.types import Example, Label, Sentences
from steadygaze.core.untrusted_files import digest_json
from steadygaze.data.label_checks import count_labels, near_duplicate_sentence, rare_sentence
from steadygaze.data.splits import hold_out
from steadygaze.data.text_checks import EmptyTexts, check_labels, check_texts, strip_label
from steadygaze.models.inference import NonFiniteOutput

if TYPE_CHECKING:
    from steadygaze.results.explanation import Explanation

SMALL_DATASET = 20
"""Fewest texts for a held-out set."""


@dataclass(frozen=True)
class Split:
    """Labeled texts."""

    texts: list[str]
    questions: list[str] | None
    labels: list[Label]
    weights: NDArray[np.float64] | None = None
    sentences: Sentences | None = None
    """The given sentences; None: no text has any."""

    def __post_init__(self) -> None:
        check_label_count(len(self.texts), len(self.labels))
        if self.weights is not None and self.weights.shape != (len(self.texts),):
            raise UserError(
                f"found {len(self.texts)} texts and weights of shape {self.weights.shape}; pass one for each text"
            )
        if self.weights is not None and not (np.isfinite(self.weights).all() and self.weights.min() >= 0):
            raise UserError("sample weights must be finite numbers of at least 0")

    @property
    def all_texts(self) -> list[str]:
        """Texts and questions."""
        return [*self.texts, *(self.questions or [])]

    @property
    def joined_texts(self) -> list[str]:
        """Each text with its question."""
        questions = self.questions
        return self.texts if questions is None else [f"{t}\n{q}" for t, q in zip(self.texts, questions, strict=True)]

    @property
    def inputs(self) -> list[Any]:
        """The texts as X."""
        return join_questions(self.texts, self.questions, self.sentences)

    def fingerprint(self, sentences: bool = False) -> str:
        """SHA-256 of texts, questions, labels and weights; and of the given sentences, if a model reads them."""
        weights = None if self.weights is None else self.weights.tolist()
        units = [] if self.sentences is None or not sentences else [self.sentences]
        return digest_json([[self.texts, self.questions, self.labels, weights], *units])

    def rows(self, indices: Sequence[int]) -> "Split":
        return Split(
            [self.texts[i] for i in indices],
            None if self.questions is None else [self.questions[i] for i in indices],
            [self.labels[i] for i in indices],
            None if self.weights is None else self.weights[list(indices)],
            None if self.sentences is None else [self.sentences[i] for i in indices],
        )

    def weighted(self, class_weight: str | Mapping[Label, float] | None) -> NDArray[np.float32] | None:
        """Product of text and class weights, with mean 1; None: all are equal."""
        weights = self.weights
        if class_weight is not None:
            from sklearn.utils.class_weight import compute_sample_weight  # slow to import

            try:
                class_weights = compute_sample_weight(class_weight, self.labels)
            except ValueError as error:
                raise UserError(f"class_weight does not fit the labels: {error}") from None
            weights = class_weights if weights is None else weights * class_weights
        if weights is not None and not weights.any():
            raise UserError(
                "class_weight and the sample weights together give every text weight 0; use a weight above 0"
            )
        return None if weights is None else (weights / weights.mean()).astype(np.float32)


def read_split(X: Any, y: Any, sample_weight: Any = None) -> Split:
    """The training split.  Texts of weight 0 are removed."""
    texts, questions, sentences = read_inputs(X)
    split = Split(texts, questions, read_labels(y, minimum_classes=2), read_weights(sample_weight), sentences)
    classes = len(set(split.labels))
    if len(split.labels) >= SMALL_DATASET and classes == len(split.labels):
        raise UserError(
            f"{len(split.labels):,} texts have {classes:,} different labels, {str(split.labels[0])!r:.40} among them: "
            "check the column of labels.  Choose it with --label, or pass the labels as the second argument"
        )
    if split.weights is None or split.weights.all():
        return split
    rows = np.flatnonzero(split.weights).tolist()
    if len({split.labels[i] for i in rows}) < 2:
        raise UserError("sample weights above 0 are needed in at least two classes")
    return split.rows(rows)


def label_remarks(y: Any, *splits: Split) -> str:
    """Return what is unusual about labels, or ''.  `splits`: for training and validation; `y`: labels as passed."""
    counts = count_labels(splits[0].labels)
    near = near_duplicate_sentence(count_labels(label for split in splits for label in split.labels))
    stripped = sum(isinstance(label, str) and label != strip_label(label) for label in y)
    remarks = [
        f"{near}.  Each is a class of its own" if near else "",
        rare_sentence(counts),
        f"the white space around {stripped:,} labels was removed" if stripped else "",
    ]
    return ".  ".join(filter(None, remarks))


def known_label(label: Any, classes: Sequence[Label]) -> Label:
    """The label, if it is one of the classes."""
    label = label.item() if isinstance(label, np.generic) else label  # JSON has no NumPy types
    label = strip_label(label) if isinstance(label, str) and label not in classes else label
    if not isinstance(label, str | int) or label not in classes:
        raise unknown("label", label, classes)
    return label


def read_weights(weights: Any) -> NDArray[np.float64] | None:
    """Sample weights as an array, or None."""
    try:
        return None if weights is None else np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"sample weights must be numbers, one for each text; found {weights!r:.80}") from None


def read_validation(validation: Any) -> Split:
    """The validation split, which chooses the epoch."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise UserError(f"validation must be (texts, labels), found {validation!r:.80}")
    texts, questions, sentences = read_inputs(validation[0])
    return Split(texts, questions, read_labels(validation[1], minimum_classes=1), sentences=sentences)


def validation_size(labels: Sequence[Label | None]) -> int:
    """The number of training texts that `hold_out_validation` holds out; 0: there are too few texts."""
    return 0 if len(labels) < SMALL_DATASET else len(hold_out(len(labels), labels)[1])


def hold_out_validation(split: Split, seed: int = 0) -> tuple[Split, Split]:
    """(train, validation): a stratified tenth of the texts is held out."""
    train, held_out = hold_out(len(split.texts), split.labels, seed=seed)
    if not validation_size(split.labels):
        warnings.warn(
            f"{len(split.texts)} texts are too few to hold any out: the epoch is chosen on the training texts",
            stacklevel=4,
        )
        return split, split
    return split.rows(sorted(train)), split.rows(sorted(held_out))


def read_texts(data: Any) -> tuple[list[str], list[str] | None]:
    """(texts, questions); questions are None for single texts."""
    return read_inputs(data)[:2]


def read_inputs(data: Any, allow_empty: bool = False) -> tuple[list[str], list[str] | None, Sentences | None]:
    """(texts, questions, given sentences); sentences are None if no text has any."""
    columns, sentences = _columns(data)
    if len(columns) > 2:
        raise UserError(f"X must have one column of texts and at most one of questions, found {len(columns)} columns")
    texts, *questions = (
        check_texts(column, location=f"{name}[{{}}]".format, allow_empty=allow_empty)
        for name, column in zip(("texts", "questions"), columns, strict=False)
    )
    return texts, questions[0] if questions else None, sentences


def predict_nonempty(X: Any, width: int, predict: Callable[[list[Any]], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Predict the rows of X that have a text (and a question, for pairs): (N,width), NaN in the other rows."""
    inputs, rows, total = nonempty_inputs(X)
    values = np.full((total, width), np.nan)
    if rows:
        with _numbered(rows):
            values[rows] = predict(inputs)
    return values


def explain_nonempty(X: Any, explain: "Callable[[list[Any]], Sequence[Explanation]]") -> "list[Explanation | None]":
    """Explain the rows of X that have a text (and a question, for pairs); None for the other rows."""
    from steadygaze.results.explanation import Explanations

    inputs, rows, total = nonempty_inputs(X)
    explanations: Any = Explanations([None] * total)  # type: ignore[list-item]
    if rows:
        with _numbered(rows):
            for row, explanation in zip(rows, explain(inputs), strict=True):
                explanations[row] = explanation
    result: list[Explanation | None] = explanations
    return result


def warn_of_empty(empty: Iterable[bool], stacklevel: int) -> None:
    """Give one warning that counts and names the empty texts."""
    texts = EmptyTexts()
    for row, is_empty in enumerate(empty):
        if is_empty:
            texts.add(f"texts[{row}]")
    if texts.count:
        warnings.warn(texts.sentence, CoverageWarning, stacklevel=stacklevel + 1)


def labels_or_none(labels: NDArray[Any], empty: NDArray[np.bool_]) -> NDArray[Any]:
    """The labels; if a text is empty, as objects, with None for this text."""
    if empty.any():
        labels = labels.astype(object)
        labels[empty] = None
    return labels


def nonempty_inputs(X: Any) -> tuple[list[Any], list[int], int]:
    """The inputs with a text, their rows, and the number of all rows."""
    texts, questions, sentences = read_inputs(X, allow_empty=True)
    rows = [i for i, text in enumerate(texts) if text and (questions is None or questions[i])]
    inputs = join_questions(texts, questions, sentences)
    return inputs if len(rows) == len(texts) else [inputs[i] for i in rows], rows, len(texts)


@contextmanager
def _numbered(rows: Sequence[int]) -> Iterator[None]:
    """Number the text of an error among all rows."""
    try:
        yield
    except NonFiniteOutput as error:
        raise NonFiniteOutput(rows[error.row]) from None


def join_questions(
    texts: Sequence[str], questions: Sequence[str] | None, sentences: Sentences | None = None
) -> list[Any]:
    """The result of `read_inputs` as X: strings, pairs (text, question), or examples with given sentences."""
    if sentences is not None:
        optional_questions: Sequence[str | None] = questions or [None] * len(texts)
        rows = zip(texts, optional_questions, sentences, strict=True)
        return [Example(text, None, question, sentences=spans) for text, question, spans in rows]
    return list(texts) if questions is None else list(zip(texts, questions, strict=True))


def read_labels(data: Any, minimum_classes: int) -> list[Label]:
    is_array = getattr(data, "ndim", 0) > 0  # check_labels checks its shape
    labels = check_labels(data if is_array else _as_list(data, "labels"), minimum_classes=minimum_classes)
    return [label if isinstance(label, str) else int(label) for label in labels]  # booleans become numbers


def list_labels(data: Any, outputs: Sequence[Label] = ()) -> list[Any]:
    """The labels as a list, with a row for each text if there are several columns; only several outputs allow those.

    Columns of a DataFrame have the names of the outputs, in any order, or no names.
    """
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):  # a DataFrame of pandas or polars
        names, data = list(map(str, data.columns)), data.to_numpy()
        expected = list(map(str, outputs))
        if sorted(names) == sorted(expected):
            data = data[:, [names.index(name) for name in expected]]
        elif expected and len(names) > 1 and names != list(map(str, range(len(expected)))):
            raise UserError(
                f"the labels have the columns {', '.join(names):.100}; the model has the outputs "
                f"{', '.join(expected):.100}: pass one column for each output"
            )
    if getattr(data, "ndim", 1) == 2:
        columns = data.shape[1]
        if columns > 1 and not outputs:
            raise UserError(f"the labels have {columns} columns; pass one label for each text")
        data = data[:, 0] if columns == 1 else data
    return _as_list(data, "labels")


def check_label_count(texts: int, labels: int) -> None:
    if texts != labels:
        raise UserError(f"found {texts:,} texts and {labels:,} labels; pass one label for each text")


def is_single_text(data: Any) -> bool:
    """True if X is a single text, a tuple (text, question) or an example.  Several texts are a list."""
    pair = isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, str) for part in data)
    return isinstance(data, str | Example) or pair


def _columns(data: Any) -> tuple[list[Sequence[Any]], Sentences | None]:
    """Texts, and questions if there are any; and the given sentences of examples."""
    if hasattr(data, "column_names") and hasattr(data, "features"):  # a Hugging Face Dataset
        return [_column(data, "text")], None
    if hasattr(data, "columns") and hasattr(data, "iloc"):  # a pandas DataFrame
        return [data.iloc[:, i].tolist() for i in range(data.shape[1])], None
    if hasattr(data, "get_columns") and hasattr(data, "iter_rows"):  # a polars DataFrame
        return [column.to_list() for column in data.get_columns()], None
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return [column.tolist() for column in data.T], None
    rows = _as_list(data, "texts")
    if rows and all(isinstance(row, Example) for row in rows):
        texts, questions = [example.text for example in rows], [example.question for example in rows]
        sentences = [example.sentences for example in rows]
        columns: list[Sequence[Any]] = [texts] if questions.count(None) == len(rows) else [texts, questions]
        return columns, None if sentences.count(None) == len(rows) else sentences
    if rows and all(isinstance(row, tuple | list) for row in rows):
        widths = sorted({len(row) for row in rows})
        if widths != [2]:
            raise UserError(f"pairs are (text, question), found rows of {widths} parts")
        return [[row[i] for row in rows] for i in range(2)], None
    return [rows], None


def _column(dataset: Any, name: str) -> list[Any]:
    if name not in (dataset.column_names or ()):
        columns = ", ".join(dataset.column_names or ["none"])
        raise UserError(f"the dataset has no column {name!r}, only {columns}: pass dataset[column]")
    return list(dataset[name])


def _as_list(values: Any, name: str) -> list[Any]:
    """Convert to a list; refuse a single string and unordered collections."""
    if isinstance(values, str | bytes):
        raise UserError(f"{name} must be a list, found one string; put it in a list")
    if isinstance(values, Mapping | Set):
        raise UserError(f"{name} must be a list, found a {type(values).__name__}; pass its values in a list")
    try:
        return list(values)
    except TypeError:  # not iterable: None, a number, an array without dimensions
        raise UserError(f"{name} must be a list or an array, found {values!r:.80}") from None
