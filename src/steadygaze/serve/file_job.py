"""Explain every row of an uploaded file: the work of a job, with the streaming code of `explain --out`.

Rows are sent to the model in small batches, in the queue of the other requests, so that a page stays responsive.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from steadygaze.adapters.bulk import BulkRun, BulkTask, Parts, Row, Source, explanation_columns
from steadygaze.core.errors import UserError
from steadygaze.data.table_writers import fits_parquet
from steadygaze.data.tables import READERS
from steadygaze.report.page import DRAWN, write_explanations
from steadygaze.results.explanation import Explanation
from steadygaze.results.health import Health
from steadygaze.serve.jobs import Job, stored_bytes
from steadygaze.serve.upload_size import check_size

BATCH = 32
"""Texts that a job sends to the model at a time."""
MOST_CHARACTERS = 20_000
"""Of one text."""
MOST_WRITTEN = 2 << 30
"""Bytes of the files of one job."""

Explain = Callable[[Sequence[Any]], list[Explanation]]


@dataclass(frozen=True)
class ServedTask(BulkTask):
    """A task whose texts share the queue of the server's requests."""

    call: Explain = field(kw_only=True)
    job: Job = field(kw_only=True)
    total: int = field(kw_only=True)
    drawn: list[Explanation] = field(default_factory=list)
    """The first explanations, for the page."""

    def results(self, chunks: Iterator[list[Any]]) -> Iterator[Row]:
        done = 0
        for chunk in chunks:
            for start in range(0, len(chunk), BATCH):
                self.job.on_progress("explaining", done, self.total)
                explanations = self.call(chunk[start : start + BATCH])
                self.drawn.extend(explanations[: DRAWN - len(self.drawn)])
                done += len(explanations)
                yield from map(explanation_columns, explanations)
        self.job.on_progress("explaining", done, self.total)


@dataclass(frozen=True)
class Tables:
    """The same parts in several formats."""

    parts: Sequence[Parts]

    def finished(self) -> dict[int, tuple[int, Path]]:
        return {}

    def write(self, part: int, rows: Sequence[Row]) -> None:
        for table in self.parts:
            table.write(part, rows)
        if stored_bytes(self.parts[0].folder.parent) > MOST_WRITTEN:
            raise UserError(f"the results exceed {MOST_WRITTEN >> 20:,} MiB: split the file")

    def merge(self, health: Health) -> None:
        for table in self.parts:
            table.merge(health)


def upload_path(folder: Path, name: str) -> Path:
    """The path of an uploaded file: only the suffix of its name is used."""
    suffix = Path(name).suffix.lower()
    if suffix not in READERS:
        raise UserError(f"the file name must end with {', '.join(READERS)}; found {suffix or 'no suffix'!r:.20}")
    return folder / f"upload{suffix}"


def check_upload(source: Source, pair: bool | None) -> None:
    """Refuse a file without rows, without the text columns, or that would need much more memory than its size."""
    if pair is not None and len(source.text) != 1 + pair:
        wanted = "two text columns: text and question" if pair else "one text column"
        raise UserError(f"the model needs {wanted}; found {len(source.text)}")
    path = source.files[0]
    if not path.stat().st_size:
        raise UserError("the file is empty")
    check_size(path)
    columns = list(source.types)
    if missing := [name for name in source.text if name not in columns]:
        raise UserError(f"the file has no column {missing[0]!r:.80}; its columns: {', '.join(columns):.300}")


def explain_file(job: Job, source: Source, task: BulkTask, call: Explain) -> int:
    """Write result.csv, result.html and, if the columns allow it, result.parquet; return the number of rows.

    Formulas of the csv file are escaped, because browsers open it in a spreadsheet.
    """
    total = _check_rows(job, source)
    added = task.types(pair=len(source.text) == 2)
    if clash := [name for name in added if name in source.types]:
        raise UserError(f"the file has a column {clash[0]!r:.80}, which the result would add: rename it in the file")
    types = {**source.types, **added}
    has_parquet = fits_parquet(types) and not any(map(pa.types.is_null, types.values()))
    suffixes = [".csv", *([".parquet"] if has_parquet else [])]
    parts = Tables([Parts(job.folder / f"result{suffix}", types, suffix == ".csv") for suffix in suffixes])
    for table in parts.parts:
        table.folder.mkdir()
    served = ServedTask(task.adapter, task.request, call=call, job=job, total=total)
    BulkRun(source, parts, job.on_progress).write(served)  # type: ignore[arg-type]
    parts.merge(task.health)
    notes = [
        f"File: {job.name}.",
        *([f"The page shows the first {DRAWN:,} of {total:,} texts."] if total > DRAWN else []),
    ]
    write_explanations(job.folder / "result.html", iter(served.drawn), job.model, notes)
    return total


def _check_rows(job: Job, source: Source) -> int:
    """Read the whole file once, and count its rows."""
    rows = 0
    for _, texts, _ in source.chunks():
        for position, item in enumerate(texts):
            if max(map(len, [item] if isinstance(item, str) else item)) > MOST_CHARACTERS:
                raise UserError(f"text {rows + position + 1} has more than {MOST_CHARACTERS:,} characters")
        rows += len(texts)
        job.on_progress("checking", rows, 0)
    if not rows:
        raise UserError("the file has no rows")
    return rows
