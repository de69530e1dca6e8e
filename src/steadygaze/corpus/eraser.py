"""ERASER's files (DeYoung et al. 2020, arXiv:1911.03429): documents, and annotations with rationales in tokens.

docs/<docid>  or  docs.jsonl           documents: a sentence a line, tokens with white space between them
train.jsonl, val.jsonl, test.jsonl     annotations, one a line:

annotation_id    its name
classification   the label
evidences        [[{"docid", "start_token", "end_token", "text"}, …], …]: the tokens [start, end) of a document.
                 All groups together are the evidence; null says that nobody was asked
query            a question, where the queries differ; one and the same for all says nothing
docids           the documents that were read.  Else: those of the evidence; else the one named as the annotation
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from steadygaze.corpus.annotation import Annotation, Documents, annotation
from steadygaze.corpus.check import check_labels, is_empty
from steadygaze.corpus.columns import json_rows
from steadygaze.corpus.corpus import Corpus
from steadygaze.corpus.rows import EMPTY, EMPTY_SPAN
from steadygaze.errors import UserError
from steadygaze.types import Example

SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""Their name for a split -> ours."""
KEYS = {"annotation_id", "evidences"}
"""What tells such a line from others."""


def is_eraser(path: Path) -> bool:
    """Whether a folder, or a file with its documents beside it, is laid out so."""
    files = [path / f"{name}.jsonl" for name in SPLITS] if path.is_dir() else [path]
    found = [file for file in files if file.suffix.lower() == ".jsonl" and file.is_file()]
    if not found or not Documents(found[0].parent).there:
        return False
    try:
        row = next((row for _, row in json_rows(found[0])), None)
    except UserError:
        return False
    return isinstance(row, dict) and row.keys() >= KEYS


def load_eraser(path: Path, drop_empty: bool = False) -> Corpus:
    """A folder as the splits it holds, or a file as one split "train"."""
    files = {ours: path / f"{theirs}.jsonl" for theirs, ours in SPLITS.items()} if path.is_dir() else {"train": path}
    files = {split: file for split, file in files.items() if file.is_file()}
    asked, dropped = _asked(list(files.values())), Counter[str]()
    splits = {split: _labelled(file, asked, drop_empty, dropped) for split, file in files.items()}
    return Corpus(path.name, splits, dict(dropped), "file")


def annotations(file: Path, drop_empty: bool = False) -> Iterator[Annotation]:
    """Those with a text, one after the other."""
    return (one for one in _read(file, _asked([file]), drop_empty) if not is_empty(one.example.text))


def stream_eraser(file: Path, drop_empty: bool, chunk: int) -> Iterator[list[Example]]:
    """At most `chunk` examples at a time."""
    examples = (one.example for one in annotations(file, drop_empty))
    while part := list(islice(examples, chunk)):
        yield part


def _labelled(file: Path, asked: bool, drop_empty: bool, dropped: Counter[str]) -> list[Example]:
    found = list(_read(file, asked, drop_empty))
    kept = [one for one in found if not is_empty(one.example.text)]
    if not kept:
        raise UserError(f"{file.name} has no rows with a text.")
    labels = check_labels(
        [one.example.label for one in kept],
        minimum_classes=1,
        where=lambda i: f"{file.name}, annotation {kept[i].name!r}: classification",
    )
    for why, count in ((EMPTY, len(found) - len(kept)), (EMPTY_SPAN, sum(one.empty for one in found))):
        if count:
            dropped[why] += count
    return [replace(one.example, label=label) for one, label in zip(kept, labels, strict=True)]


def _asked(files: Sequence[Path]) -> bool:
    """Whether queries are questions about the texts: they differ."""
    seen: set[str] = set()
    for file in files:
        for _, row in json_rows(file):
            seen.add(str(row.get("query") or ""))
            if len(seen) > 1:
                return True
    return False


def _read(file: Path, asked: bool, drop_empty: bool) -> Iterator[Annotation]:
    documents = Documents(file.parent)
    for number, row in json_rows(file):
        try:
            one = annotation(row, documents, asked)
        except ValueError as error:
            raise UserError(f"{file.name}, line {number}: {error}.") from None
        if is_empty(one.example.text) and not drop_empty:
            why = "the document is empty; fill it in, or leave such rows out with --drop-empty (drop_empty=True)"
            raise UserError(f"{file.name}, line {number}: {why}.")
        yield one
