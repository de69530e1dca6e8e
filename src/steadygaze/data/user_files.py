"""A user's own files: .csv, .tsv, .jsonl or .parquet, or a folder of train, validation and test in these formats.

One text column, or two: the text that is explained, then the question about it.  Labels are strings or whole numbers
(see `text_checks`).  A csv file has only strings: its labels become numbers if every cell is a number.  Rationales and
sentences are optional (see `rationale_spans`).  ERASER's files have other columns (see `eraser`).  Messages name rows
and offsets of the user's file.
"""

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Label, Task
from steadygaze.data.corpus import Corpus
from steadygaze.data.eraser import is_eraser, load_eraser, stream_eraser
from steadygaze.data.rationale_spans import annotate, with_sentences
from steadygaze.data.row_layouts import EMPTY, NO_LABEL
from steadygaze.data.tables import READERS, NoColumn, Table, concatenate, read_columns, typed
from steadygaze.data.text_checks import EmptyTexts, check_labels, check_texts, is_missing, strip_label

SPLITS = ("train", "validation", "test")
UNTYPED = {".csv", ".tsv"}
CHUNK = 1024  # rows per chunk while streaming
FILL_IN = "fill it in, or leave such rows out with --drop-empty (drop_empty=True)."


class EmptyCellError(UserError):
    """A row without a text or a label."""

    def __init__(self, table: Table, column: str, row: int, problem: str) -> None:
        place = table.where(column)(row)
        super().__init__(f"{place} {problem}; {FILL_IN}")
        self.problem = f"{place.removeprefix(f'{table.file}, ')} {problem}"
        """Without the file and the fix."""


@dataclass(frozen=True)
class ColumnNames:
    """The columns of text, question, label, rationales and sentences."""

    text: Sequence[str] = ("text",)
    label: str | None = None
    rationales: str | None = None
    task: Task = field(default="classification", compare=False)
    """multi-label: a label may be a list, which becomes a tuple.  regression: labels become strings."""
    sentences: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.text, str) or not 1 <= len(self.text) <= 2:
            raise UserError(f"text columns: found {self.text!r}; name one, or two for pairs (text, question).")
        if len(set(self.names)) < len(self.names):
            raise UserError(f"each column can be used only once; found {', '.join(self.names)}.")

    @property
    def names(self) -> list[str]:
        return [*self.text, *(name for name in (self.label, self.rationales, self.sentences) if name is not None)]

    def option(self, name: str) -> str:
        """The keyword that names this column; the option of the command line has the same name, as in --text."""
        others = {self.label: "label", self.sentences: "sentences"}
        return "text" if name in self.text else others.get(name, "rationales")


def input_files(path: Path) -> list[Path]:
    """The file, or all files of a folder with rows, by name."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in READERS and file.is_file())
    if not files:
        raise UserError(f"{path} has no files of the formats {', '.join(READERS)}")
    return files


def check_files(path: Path, columns: ColumnNames) -> None:
    """Refuse a missing file or column; reads the first rows of each file."""
    if columns.text == ("text",) and path.suffix.lower() not in UNTYPED and is_eraser(path):
        return
    for file in (_split_files(path) if path.is_dir() else {"": path}).values():
        next(_read(file, columns, CHUNK))


def load_files(path: Path, columns: ColumnNames, drop_empty: bool = False) -> Corpus:
    """Load a file as the split "train", or a folder as its splits."""
    default = columns == ColumnNames(("text",), "label")
    if default and path.suffix.lower() not in UNTYPED and is_eraser(path):
        return load_eraser(path, drop_empty)
    paths = _split_files(path) if path.is_dir() else {"train": path}
    if columns.label is not None and ".txt" in {file.suffix.lower() for file in paths.values()}:
        message = f"{path.name} has no labels; use a {_formats()} file with a text and a label column."
        raise NoColumn(columns.label, message)
    complete = {name: concatenate(_read(file, columns, CHUNK)) for name, file in paths.items()}
    dropped = Counter[str]()
    tables = {name: _readable(table, columns, drop_empty, dropped) for name, table in complete.items()}
    for table in tables.values():
        if not len(table):
            raise UserError(f"{table.file} has no rows with a text{' and a label' if dropped[NO_LABEL] else ''}.")
    if columns.label is not None:
        tables |= _typed(
            {name: tables[name] for name, file in paths.items() if file.suffix.lower() in UNTYPED}, columns.label
        )
    splits = {name: _examples(table, columns) for name, table in tables.items()}
    return Corpus(path.name, splits, dict(+dropped), "file")


def stream(
    path: str | Path,
    *,
    text: Sequence[str] = ("text",),
    label: str | None = None,
    rationales: str | None = None,
    drop_empty: bool = False,
    chunk: int = CHUNK,
    task: Task = "classification",
    sentences: str | None = None,
    dropped: Counter[str] | None = None,
    empty: EmptyTexts | None = None,
) -> Iterator[list[Example]]:
    """Yield at most `chunk` examples at a time; also from a .txt file with one text per line.

    Labels are read only if their column is named.  Labels of a csv stay strings: a later row may not be a number.
    `dropped` counts the rows that `drop_empty` leaves out, by reason.  `empty`: receives the rows without a text, which
    are examples without a text instead of an error; not for files of ERASER.
    """
    dropped = Counter() if dropped is None else dropped
    columns = ColumnNames(text, label, rationales, task, sentences)
    if tuple(text) == ("text",) and is_eraser(Path(path)):
        return stream_eraser(Path(path), drop_empty, chunk, label is not None, dropped)
    complete = _read(Path(path), columns, chunk)
    tables = (_readable(table, columns, drop_empty, dropped, empty) for table in complete)
    return (_examples(table, columns, empty is not None) for table in tables if len(table))


def stream_chunks(
    path: Path,
    names: Sequence[str],
    text: Sequence[str],
    drop_empty: bool = False,
    sentences: str | None = None,
    label: str | None = None,
    empty: EmptyTexts | None = None,
) -> Iterator[tuple[list[Example], list[dict[str, Any]]]]:
    """Yield the examples that `stream` reads, and all cells of their rows by column name."""
    columns = ColumnNames(text, label, sentences=sentences)
    for complete in read_columns(path, names, CHUNK):
        table = _readable(complete, columns, drop_empty, Counter(), empty)
        if len(table):
            rows = [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]
            yield _examples(table, columns, empty is not None), rows


def _read(path: Path, columns: ColumnNames, chunk: int) -> Iterator[Table]:
    """Yield tables of at most `chunk` rows; the error of a missing column names the option to pass."""
    tables = read_columns(path, columns.names, chunk)  # raises errors of the path at once
    return _with_option(tables, path, columns)


def _with_option(tables: Iterator[Table], path: Path, columns: ColumnNames) -> Iterator[Table]:
    try:
        yield from tables
    except NoColumn as error:
        option = columns.option(error.column)
        unused = [name for name, count in Counter(error.known).items() if count == 1 and name not in columns.names]
        guess = GUESSES[option](path, unused) if option in GUESSES and unused else ""
        example = f", for example --{option} {shlex.quote(guess)}" if guess else ""
        advice = f"Name the {option} column with --{option} ({option}=){example}."
        raise NoColumn(error.column, f"{error}  {advice}", error.known) from None


def _fewest_values(path: Path, names: Sequence[str]) -> str:
    """The column with the fewest values in the first rows, which is probably the label; '' if none has few."""
    table = next(read_columns(path, names, CHUNK))
    values = {name: len(set(map(str, table.columns[name]))) for name in names}
    few = [name for name in names if 1 < values[name] <= len(table) // 2]  # an id has as many values as rows
    return min(few, key=values.__getitem__, default="")


def _longest(path: Path, names: Sequence[str]) -> str:
    """The column with the most characters in the first rows, which is probably the text."""
    table = next(read_columns(path, names, CHUNK))
    return max(names, key=lambda name: sum(len(str(cell)) for cell in table.columns[name]))


GUESSES = {"text": _longest, "label": _fewest_values}
"""Columns that the error of a missing column guesses."""


def _readable(
    table: Table, columns: ColumnNames, drop_empty: bool, dropped: Counter[str], texts: EmptyTexts | None = None
) -> Table:
    """The rows with a text and, if its column is named, a label; without `drop_empty`, an empty one is an error.

    `dropped` counts the other rows; a row without text and label counts as one without text.  `texts` receives the rows
    without a text, which stay.
    """
    empty = {i for name in columns.text for i, cell in enumerate(table.columns[name]) if is_missing(cell)}
    unlabeled = _unlabeled(table, columns.label) - empty
    if drop_empty:
        dropped.update({EMPTY: len(empty), NO_LABEL: len(unlabeled)})
        absent = empty | unlabeled
        return table.take([i for i in range(len(table)) if i not in absent]) if absent else table
    if empty and texts is not None:
        for i in sorted(empty):
            texts.add(table.row(i))
        empty = set()
    if empty:
        first = min(empty)
        column = next(name for name in columns.text if is_missing(table.columns[name][first]))
        raise EmptyCellError(table, column, first, f"is empty{_in_all(empty, table.unit)}")
    if unlabeled and columns.label is not None and columns.task == "classification":
        problem = f"is empty: every text needs a label{_in_all(unlabeled, table.unit)}"
        raise EmptyCellError(table, columns.label, min(unlabeled), problem)
    return table


def _unlabeled(table: Table, label: str | None) -> set[int]:
    """Positions of the rows whose label is missing; `nan` is missing in a format without types."""
    if label is None:
        return set()
    missing = {"nan"} if Path(table.file).suffix.lower() in UNTYPED else set()
    cells = (strip_label(cell) if isinstance(cell, str) else cell for cell in table.columns[label])
    return {i for i, cell in enumerate(cells) if is_missing(cell) or (missing and str(cell).lower() in missing)}


def _in_all(rows: Collection[int], unit: str) -> str:
    return f" ({len(rows):,} such {unit}s in all)" if len(rows) > 1 else ""


def _examples(table: Table, columns: ColumnNames, allow_empty: bool = False) -> list[Example]:
    text, *question = (
        check_texts(table.columns[name], location=table.where(name), allow_empty=allow_empty) for name in columns.text
    )
    questions: Sequence[str | None] = question[0] if question else [None] * len(text)
    labels = _labels_if_any(table, columns) if allow_empty else _labels(table, columns)
    examples = [Example(*row) for row in zip(text, labels, questions, strict=True)]
    for column, add in ((columns.rationales, annotate), (columns.sentences, with_sentences)):
        examples = examples if column is None else _annotated(examples, table, column, add)
    return examples


def _annotated(
    examples: Sequence[Example], table: Table, column: str, add: Callable[[Example, Any], Example]
) -> list[Example]:
    annotated: list[Example] = []
    for example, cell in zip(examples, table.columns[column], strict=True):
        try:
            annotated.append(add(example, cell) if example.text else example)
        except ValueError as error:
            raise UserError(f"{table.where(column)(len(annotated))}: {error}.") from None
    return annotated


def _labels(table: Table, columns: ColumnNames) -> Sequence[Label | None]:
    column = columns.label
    if column is None:
        return [None] * len(table)
    cells: list[Any] = list(table.columns[column])
    if columns.task == "regression":
        return list(map(str, cells))
    if columns.task == "multi-label" and any(isinstance(cell, list) for cell in cells):
        if (row := next((i for i, cell in enumerate(cells) if is_missing(cell)), None)) is not None:
            raise UserError(f"{table.where(column)(row)} is empty: write [] for a text without labels.")
        tuples: list[Any] = [tuple(cell) if isinstance(cell, list) else cell for cell in cells]
        return tuples  # `binary_labels` checks them
    return check_labels(cells, minimum_classes=1, location=table.where(column))


def _labels_if_any(table: Table, columns: ColumnNames) -> Sequence[Label | None]:
    """The labels; None for a row without one, which has no text either."""
    unlabeled = _unlabeled(table, columns.label)
    rows = [i for i in range(len(table)) if i not in unlabeled]
    labels = dict(zip(rows, _labels(table.take(rows), columns), strict=True)) if rows else {}
    return [labels.get(i) for i in range(len(table))]


def _typed(tables: dict[str, Table], label: str) -> dict[str, Table]:
    """Convert the labels of formats without types to numbers, if all of them are numbers."""
    cells = typed({name: table.columns[label] for name, table in tables.items()})
    return {name: replace(table, columns=table.columns | {label: cells[name]}) for name, table in tables.items()}


def _split_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name in SPLITS:
        candidates = [folder / f"{name}{suffix}" for suffix in READERS if (folder / f"{name}{suffix}").is_file()]
        if len(candidates) > 1:
            raise UserError(
                f"{folder} contains {' and '.join(file.name for file in candidates)}; "
                f"keep one file for the {name} split."
            )
        if candidates:
            files[name] = candidates[0]
    if not files:
        raise UserError(f"{folder} contains none of train, validation and test as {_formats()} files.")
    return files


def _formats() -> str:
    return ", ".join(suffix for suffix in READERS if suffix != ".txt")
