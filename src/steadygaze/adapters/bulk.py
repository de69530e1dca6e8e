"""Predict or explain every row of large files: `--out` of the commands predict and explain.

Memory does not grow with the files.  Results are written in parts, each of them atomically:

    explained.parquet.parts/settings.json              model, files and options
    explained.parquet.parts/part-000000-8192.parquet   rows of the first CHUNKS chunks, with their results

Slow explainers have smaller parts, of a few thousand forward passes.

After an interruption, the same command continues with the missing parts.  In the end the parts are merged in the order
of the rows, and deleted.
"""

import json
import re
import shutil
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from steadygaze.adapters import streaming
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.atomic_files import exclusive_output, new_file, remove_folder, write_text
from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress, inputs_of
from steadygaze.core.untrusted_files import digest_json, read_object_or_empty
from steadygaze.data import tables, user_files
from steadygaze.data.eraser import is_eraser
from steadygaze.data.table_writers import check_columns, header, write_rows
from steadygaze.data.tables import column_types
from steadygaze.data.text_checks import EmptyTexts
from steadygaze.data.user_files import input_files, stream_chunks
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.models.inference import BATCH
from steadygaze.results.explanation import Explanation
from steadygaze.results.health import HEALTHY, Health

CHUNKS = 8
"""Chunks of rows per part, of up to streaming.CHUNK rows each."""
LABEL, LABELS = "predicted_label", "predicted_labels"
"""Columns of predictions; `predicted_labels` is a list, for a multi-label model."""
WORDS = {"words": pa.list_(pa.string()), "spans": pa.list_(pa.list_(pa.int64())), "weights": pa.list_(pa.float64())}
"""Columns of explanations: words, first character and end of each, and weights."""

SETTINGS = "settings.json"

Row = dict[str, Any]
Chunk = tuple[int, list[Any], list[Row]]
"""Number of the part, texts or pairs, and rows with all columns of the file."""


@dataclass(frozen=True)
class Source:
    """The rows of one file, or of all files of a folder by name."""

    path: Path
    text: Sequence[str]
    drop_empty: bool = False
    sentences: str | None = None
    """Column of given sentences."""
    part: int | None = None
    """Rows of a part; None: CHUNKS chunks."""
    empty: EmptyTexts | None = None
    """Receives the rows without a text, which have no prediction; None: they are an error."""

    @cached_property
    def files(self) -> list[Path]:
        return input_files(self.path)

    @cached_property
    def types(self) -> dict[str, Any]:
        """The columns of the files and their Arrow types."""
        first, *others = self.files
        for file in self.files:
            if tuple(self.text) == ("text",) and is_eraser(file):
                raise UserError(
                    f"{file.name} has annotations of ERASER, not rows with a text: use explain --eraser PATH"
                )
        types = column_types(first, streaming.CHUNK) or {self.text[0]: pa.string()}
        for file in others:
            if (column_types(file, streaming.CHUNK) or {self.text[0]: pa.string()}) != types:
                raise UserError(f"{file.name} has other columns than {first.name}: write one output for each")
        return types

    @cached_property
    def facts(self) -> list[list[Any]]:
        """Name, size and time of change of each file."""
        return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in self.files]

    @property
    def total(self) -> int:
        """Number of rows, if the files tell; otherwise 0."""
        if any(file.suffix.lower() != ".parquet" for file in self.files):
            return 0
        return sum(parquet.read_metadata(file).num_rows for file in self.files)

    def chunks(self) -> Iterator[Chunk]:
        columns = list(self.types), self.text, self.drop_empty, self.sentences
        files = (stream_chunks(file, *columns, empty=self.empty) for file in self.files)
        small = count()
        for number, (examples, rows) in enumerate(chain.from_iterable(files)):
            texts = inputs_of(examples)
            if self.part is None:
                yield number // CHUNKS, texts, rows
                continue
            for some, cells in zip(streaming.pieces(texts, self.part), streaming.pieces(rows, self.part), strict=True):
                yield next(small), list(some), list(cells)


@dataclass(frozen=True)
class Parts:
    """The folder of parts of an output file."""

    out: Path
    types: Mapping[str, Any]
    """All columns of the output."""
    spreadsheet_safe: bool = False
    """True if the formulas of a .csv or .tsv file are escaped."""

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Refuse parts of another command."""
        file, digest = self.folder / SETTINGS, digest_json([settings], sort_keys=True)
        stored = read_object_or_empty(file)
        if stored and stored.get("digest") != digest:
            raise UserError(f"{self.folder} has parts of another command, model or file: delete it to start again")
        write_text(file, json.dumps({"digest": digest, **settings}, indent=1) + "\n")

    def discard_if_empty(self) -> None:
        """Delete the settings of a run that has finished no part."""
        if self.folder.is_dir() and not self.finished():
            (self.folder / SETTINGS).unlink(missing_ok=True)

    def finished(self) -> dict[int, tuple[int, Path]]:
        """Part -> number of rows, and file, in the order of the parts."""
        pattern = re.compile(rf"part-(\d+)-(\d+)\{self.out.suffix}")
        matches = [(pattern.fullmatch(path.name), path) for path in sorted(self.folder.iterdir())]
        return {int(match[1]): (int(match[2]), path) for match, path in matches if match}

    def write(self, part: int, rows: Sequence[Row]) -> None:
        path = self.folder / f"part-{part:06}-{len(rows)}{self.out.suffix}"
        write_rows(path, self.types, rows, spreadsheet_safe=self.spreadsheet_safe)

    def merge(self, health: Health = HEALTHY) -> int:
        """Write the output file and delete the parts; return the number of rows.

        Parquet files have the health of the model in their metadata; rows of other formats have no place for it.
        """
        parts = self.finished().values()
        with new_file(self.out) as new:
            if self.out.suffix.lower() == ".parquet":
                _merge_parquet([path for _, path in parts], new, self.types, health)
            else:
                start = header(self.out, self.types, spreadsheet_safe=self.spreadsheet_safe)
                _merge_text([path for _, path in parts], new, start)
        remove_folder(self.folder)
        return sum(count for count, _ in parts)


def _merge_parquet(files: Sequence[Path], new: Path, types: Mapping[str, Any], health: Health) -> None:
    schema = pa.schema(list(types.items()), metadata={"health": json.dumps(health.to_list())})
    with parquet.ParquetWriter(new, schema) as writer:
        for file in files:
            with parquet.ParquetFile(file) as part:
                for group in range(part.num_row_groups):
                    writer.write_table(part.read_row_group(group).replace_schema_metadata(schema.metadata))


def _merge_text(files: Sequence[Path], new: Path, start: bytes) -> None:
    """Concatenate text files that start with the same bytes; write these once."""
    with new.open("wb") as whole:
        whole.write(start)
        for file in files:
            with file.open("rb") as part:
                part.seek(len(start))
                shutil.copyfileobj(part, whole)


@dataclass(frozen=True)
class BulkTask:
    """A model, and what it does with each text."""

    adapter: ModelAdapter
    request: ExplainRequest | None
    """What to explain; None: predict."""
    batch_size: int = BATCH
    """Texts per batch of predictions."""

    @property
    def health(self) -> Health:
        """Known-bad states of the model and of a fitted explainer."""
        return getattr(self.request and self.request.explainer, "health", self.adapter.health)

    @property
    def part(self) -> int | None:
        """Rows of a part, if the explainer is slow."""
        return None if self.request is None else streaming.chunk_of(self.adapter.model, self.request.explainer)

    def types(self, pair: bool) -> dict[str, Any]:
        """The columns that are added, and their Arrow types."""
        single = self.adapter if self.request is None else self.adapter.for_output(self.request.target)
        numbers = all(isinstance(label, int) for label in single.classes)
        kinds = {LABEL: pa.int64() if numbers else pa.string(), LABELS: pa.list_(pa.string())}
        record = streaming.prediction(single, dict.fromkeys(map(str, single.classes), 0.0))
        types = {name: kinds.get(name, pa.float64()) for name in prediction_columns(record)}
        if self.request is None:
            return types
        return {**types, **WORDS, **({f"question_{name}": kind for name, kind in WORDS.items()} if pair else {})}

    def results(self, chunks: Iterator[list[Any]]) -> Iterator[Row]:
        """Yield the added columns of each text, in order."""
        if self.request is None:
            return map(prediction_columns, streaming.predict(self.adapter, chunks, self.batch_size))
        explanations = streaming.explain(self.adapter, chunks, self.request)
        return ({} if explanation is None else explanation_columns(explanation) for explanation in explanations)


def prediction_columns(record: Mapping[str, Any]) -> Row:
    """The columns of a prediction."""
    columns = {name: record[key] for key, name in (("label", LABEL), ("labels", LABELS)) if key in record}
    probabilities = {f"probability_{name}": value for name, value in record.get("probabilities", {}).items()}
    return {**columns, **probabilities, **{f"predicted_{name}": v for name, v in record.get("values", {}).items()}}


def explanation_columns(explanation: Explanation) -> Row:
    """The columns of a prediction and its explanation."""
    record: Row = {"label": explanation.label, "probabilities": explanation.probabilities}
    if explanation.value is not None:
        record = {"values": {explanation.label: explanation.value}}
    values = explanation.tokens, explanation.spans, explanation.weights
    columns = {name: list(value) for name, value in zip(WORDS, values, strict=True)}
    if (question := explanation.question_explanation) is not None:
        values = question.tokens, question.spans, question.weights
        columns |= {f"question_{name}": list(value) for name, value in zip(WORDS, values, strict=True)}
    return {**prediction_columns(record), **columns}


@dataclass(frozen=True)
class BulkRun:
    """One output file: its rows, its parts and the task."""

    source: Source
    parts: Parts
    on_progress: OnProgress

    def write(self, task: BulkTask) -> None:
        """Write the missing parts in this process."""
        waiting: deque[tuple[int, Row]] = deque()

        def texts() -> Iterator[list[Any]]:
            for part, chunk, rows in self.missing():
                waiting.extend((part, row) for row in rows)
                yield chunk

        results = ((*waiting.popleft(), result) for result in task.results(texts()))
        for part, group in groupby(results, key=itemgetter(0)):
            self.parts.write(part, [{**row, **result} for _, row, result in group])

    def missing(self) -> Iterator[Chunk]:
        """Yield the chunks of the parts that are not there, and report progress."""
        done, total = self.parts.finished(), self.source.total
        rows = sum(count for count, _ in done.values())
        for part, texts, cells in self.source.chunks():
            if part not in done:
                self.on_progress("rows", rows, max(total, rows))
                yield part, texts, cells
                rows += len(cells)


@contextmanager
def bulk_run(
    out: Path,
    source: Source,
    task: BulkTask,
    settings: Mapping[str, Any],
    on_progress: OnProgress,
    spreadsheet_safe: bool = False,
) -> Iterator[BulkRun]:
    """Lock the folder of parts inside the block; refuse an output that cannot be written or continued.

    `settings`: what the results depend on, besides the source.
    """
    added = task.types(pair=len(source.text) == 2)
    if clash := [name for name in added if name in source.types]:
        first = source.files[0].name
        raise UserError(f"{first} has a column {clash[0]!r}, which --out would add; rename it in the file")
    parts, source = Parts(out, {**source.types, **added}, spreadsheet_safe), replace(source, part=task.part)
    check_columns(out, parts.types)
    with exclusive_output(parts.folder, "writing"):
        facts = {"files": source.facts, "text": list(source.text), "drop_empty": source.drop_empty}
        facts |= {} if source.sentences is None else {"sentences": source.sentences}
        facts |= {"spreadsheet_safe": True} if spreadsheet_safe else {}
        # The sizes determine the rows of a part.
        sizes = {"chunk": user_files.CHUNK, "chunks": CHUNKS, "block": tables.BLOCK, "part": source.part}
        parts.prepare({**facts, **sizes, "columns": list(parts.types), **settings})
        try:
            yield BulkRun(source, parts, on_progress)
        finally:
            parts.discard_if_empty()
