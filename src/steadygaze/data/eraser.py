"""ERASER's files (DeYoung et al. 2020, arXiv:1911.03429): documents, and annotations with rationales in tokens.

docs/<docid>  or  docs.jsonl           documents: one sentence per line, tokens separated by white space
train.jsonl, val.jsonl, test.jsonl     annotations, one per line:

annotation_id    its name
classification   the label
evidences        [[{"docid", "start_token", "end_token", "text"}, …], …]: the tokens [start, end) of a document.
                 All groups together are the rationale; null: not annotated
query            a question, if the queries differ
docids           its documents; default: those of the rationales, else the one named as the annotation

Several documents of an annotation are joined to one text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Span
from steadygaze.core.untrusted_files import read_bytes, resolve
from steadygaze.data import rationale_spans
from steadygaze.data.corpus import Corpus
from steadygaze.data.row_layouts import EMPTY, EMPTY_SPAN, NO_LABEL
from steadygaze.data.tables import json_rows
from steadygaze.data.text_checks import check_labels, is_empty, is_missing

BETWEEN = "\n"
"""Separator of two documents."""


@dataclass(frozen=True)
class Annotation:
    name: str
    example: Example
    parts: dict[str, Span]
    """Document -> its characters in the text."""
    empty: int = 0
    """Number of dropped rationale spans without a token."""


@dataclass(frozen=True)
class Documents:
    """docs/<docid>, or the lines of docs.jsonl."""

    folder: Path

    @property
    def exists(self) -> bool:
        return (self.folder / "docs").is_dir() or (self.folder / "docs.jsonl").is_file()

    @cached_property
    def _lines(self) -> dict[str, str]:
        file = self.folder / "docs.jsonl"
        return {str(row.get("docid")): str(row.get("document")) for _, row in json_rows(file)} if file.is_file() else {}

    def read(self, name: str) -> str:
        if name in self._lines:
            return self._lines[name]
        docs, file = resolve(self.folder) / "docs", resolve(self.folder / "docs" / name)
        if not file.is_relative_to(docs) or not file.is_file():
            raise ValueError(f"there is no document {name!r:.60}")
        try:
            return read_bytes(file).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"the document {name!r:.60} is not UTF-8 (offset {error.start})") from None


def annotation(row: dict[str, Any], documents: Documents, has_question: bool) -> Annotation:
    """`has_question`: the query is a question about the text."""
    if not isinstance(row.get("annotation_id"), str | int):
        raise ValueError("there is no annotation_id")
    if has_question and is_empty(row.get("query")):
        raise ValueError("there is no query, though other annotations have one")
    name, marks = str(row["annotation_id"]), rationale_spans.flat(row.get("evidences"))
    parts, text = _joined(_docids(row, name, marks), documents)
    spans, empty = _spans(marks, text, parts)
    example = Example(
        text,
        row.get("classification"),
        str(row["query"]) if has_question else None,
        None if row.get("evidences") is None else spans,
        rationale_spans.lines(text) or None,
    )
    return Annotation(name, example, parts, empty)


def _docids(row: dict[str, Any], name: str, marks: list[Any]) -> list[str]:
    """Names of the documents: from `docids`, else from the rationales, else the name of the annotation."""
    names = row.get("docids") or [mark["docid"] for mark in marks if isinstance(mark, dict) and mark.get("docid")]
    if not isinstance(names, list):
        raise ValueError(f"docids is {names!r:.60}; it must be a list of names")
    return list(dict.fromkeys(map(str, names))) or [name]


def _joined(names: list[str], documents: Documents) -> tuple[dict[str, Span], str]:
    parts: dict[str, Span] = {}
    text = ""
    for name in names:
        text += BETWEEN if parts else ""
        read = documents.read(name)
        parts[name] = (len(text), len(text) + len(read))
        text += read
    return parts, text


def _spans(marks: list[Any], text: str, parts: dict[str, Span]) -> tuple[rationale_spans.Spans, int]:
    """Sorted rationale spans in the whole text, and the number of spans without a token."""
    words = {name: rationale_spans.words(text[start:end]) for name, (start, end) in parts.items()}
    rationales: list[Span] = []
    for mark in marks:
        docid = str((mark.get("docid") if isinstance(mark, dict) else None) or next(iter(parts)))
        if docid not in parts:
            raise ValueError(f"there is a rationale in {docid!r:.60}, which is not one of its docids")
        begin, end = parts[docid]
        span = rationale_spans.from_mark(mark, text[begin:end], words[docid])
        rationales += [] if span is None else [(begin + span[0], begin + span[1])]
    return tuple(sorted(rationales)), len(marks) - len(rationales)


SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""ERASER split -> split."""
KEYS = {"annotation_id", "evidences"}
"""Keys that identify an annotation."""


def is_eraser(path: Path) -> bool:
    """Return whether a folder, or a file with documents beside it, has this format."""
    files = [path / f"{name}.jsonl" for name in SPLITS] if path.is_dir() else [path]
    existing = [file for file in files if file.suffix.lower() == ".jsonl" and file.is_file()]
    if not existing or not Documents(existing[0].parent).exists:
        return False
    try:
        row = next((row for _, row in json_rows(existing[0])), None)
    except UserError:
        return False
    return isinstance(row, dict) and row.keys() >= KEYS


def load_eraser(path: Path, drop_empty: bool = False) -> Corpus:
    """Load a folder as its splits, or a file as the split "train"."""
    files = (
        {split: path / f"{eraser_split}.jsonl" for eraser_split, split in SPLITS.items()}
        if path.is_dir()
        else {"train": path}
    )
    files = {split: file for split, file in files.items() if file.is_file()}
    has_question, dropped = _has_questions(list(files.values())), Counter[str]()
    splits = {split: _labeled(file, has_question, drop_empty, dropped) for split, file in files.items()}
    return Corpus(path.name, splits, dict(dropped), "file")


def annotations(file: Path, drop_empty: bool = False) -> Iterator[Annotation]:
    """Yield the annotations with a text."""
    return (item for item in _read(file, _has_questions([file]), drop_empty) if not is_empty(item.example.text))


def stream_eraser(
    file: Path, drop_empty: bool, chunk: int, labeled: bool, dropped: Counter[str]
) -> Iterator[list[Example]]:
    """At most `chunk` examples at a time.  `labeled`: `drop_empty` leaves out annotations without a label, too."""
    items = _read(file, _has_questions([file]), drop_empty)
    examples = (item.example for item in _complete(items, labeled and drop_empty, dropped))
    while part := list(islice(examples, chunk)):
        yield part


def _labeled(file: Path, has_question: bool, drop_empty: bool, dropped: Counter[str]) -> list[Example]:
    items = list(_read(file, has_question, drop_empty))
    nonempty = list(_complete(items, drop_empty, dropped))
    if not nonempty:
        raise UserError(f"{file.name} has no rows with a text{' and a label' if dropped[NO_LABEL] else ''}.")
    labels = check_labels(
        [item.example.label for item in nonempty],
        minimum_classes=1,
        location=lambda i: f"{file.name}, annotation {nonempty[i].name!r}: classification",
    )
    if spans := sum(item.empty for item in items):
        dropped[EMPTY_SPAN] += spans
    return [replace(item.example, label=label) for item, label in zip(nonempty, labels, strict=True)]


def _complete(items: Iterable[Annotation], labeled: bool, dropped: Counter[str]) -> Iterator[Annotation]:
    """The annotations with a text and, if `labeled`, a label; the others are counted."""
    for item in items:
        if is_empty(item.example.text):
            dropped[EMPTY] += 1
        elif labeled and is_missing(item.example.label):
            dropped[NO_LABEL] += 1
        else:
            yield item


def _has_questions(files: Sequence[Path]) -> bool:
    """Return whether the queries differ and are therefore questions."""
    queries: set[str] = set()
    for file in files:
        for _, row in json_rows(file):
            queries.add(str(row.get("query") or ""))
            if len(queries) > 1:
                return True
    return False


def _read(file: Path, has_question: bool, drop_empty: bool) -> Iterator[Annotation]:
    documents = Documents(file.parent)
    for number, row in json_rows(file):
        try:
            item = annotation(row, documents, has_question)
        except ValueError as error:
            raise UserError(f"{file.name}, line {number}: {error}.") from None
        if is_empty(item.example.text) and not drop_empty:
            problem = "the document is empty; fill it in, or leave such rows out with --drop-empty (drop_empty=True)"
            raise UserError(f"{file.name}, line {number}: {problem}.")
        yield item
