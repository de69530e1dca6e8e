"""One annotation of ERASER's, with the documents it is about -> an Example.  A ValueError says what does not fit.

Several documents are read one after the other, as one text.  `evidence` says how tokens become characters.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from steadygaze.corpus import evidence
from steadygaze.corpus.check import is_empty
from steadygaze.corpus.columns import json_rows
from steadygaze.foreign_files import read_bytes, resolve
from steadygaze.types import Example, Span

BETWEEN = "\n"
"""What stands between two documents."""


@dataclass(frozen=True)
class Annotation:
    name: str
    example: Example
    parts: dict[str, Span]
    """Which characters of the text each document is."""
    empty: int = 0
    """Spans of evidence without any token, which are left out."""


@dataclass(frozen=True)
class Documents:
    """docs/<docid>, or the lines of docs.jsonl."""

    folder: Path

    @property
    def there(self) -> bool:
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


def annotation(row: dict[str, Any], documents: Documents, asked: bool) -> Annotation:
    """`asked`: the query is a question about the text."""
    if not isinstance(row.get("annotation_id"), str | int):
        raise ValueError("there is no annotation_id")
    if asked and is_empty(row.get("query")):
        raise ValueError("there is no query, though other annotations have one")
    name, marks = str(row["annotation_id"]), evidence.flat(row.get("evidences"))
    parts, text = _joined(_docids(row, name, marks), documents)
    spans, empty = _spans(marks, text, parts)
    example = Example(
        text,
        row.get("classification"),
        str(row["query"]) if asked else None,
        None if row.get("evidences") is None else spans,
        evidence.lines(text) or None,
    )
    return Annotation(name, example, parts, empty)


def _docids(row: dict[str, Any], name: str, marks: list[Any]) -> list[str]:
    """Those it names; else those of its evidence; else the one with its own name."""
    named = row.get("docids") or [mark["docid"] for mark in marks if isinstance(mark, dict) and mark.get("docid")]
    if not isinstance(named, list):
        raise ValueError(f"docids is {named!r:.60}; it must be a list of names")
    return list(dict.fromkeys(map(str, named))) or [name]


def _joined(names: list[str], documents: Documents) -> tuple[dict[str, Span], str]:
    parts: dict[str, Span] = {}
    text = ""
    for name in names:
        text += BETWEEN if parts else ""
        read = documents.read(name)
        parts[name] = (len(text), len(text) + len(read))
        text += read
    return parts, text


def _spans(marks: list[Any], text: str, parts: dict[str, Span]) -> tuple[evidence.Spans, int]:
    """Of the whole text, sorted; and how many held no token."""
    words = {name: evidence.words(text[start:end]) for name, (start, end) in parts.items()}
    found: list[Span] = []
    for mark in marks:
        docid = str((mark.get("docid") if isinstance(mark, dict) else None) or next(iter(parts)))
        if docid not in parts:
            raise ValueError(f"there is evidence in {docid!r:.60}, which is none of its docids")
        begin, end = parts[docid]
        span = evidence.from_mark(mark, text[begin:end], words[docid])
        found += [] if span is None else [(begin + span[0], begin + span[1])]
    return tuple(sorted(found)), len(marks) - len(found)
