"""Reproduce a published table: run the missing cells, and put the paper's numbers beside ours."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import steadygaze
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.results.comparison import Comparison
from steadygaze.results.intervals import Interval, bootstrap_means
from steadygaze.results.report import Report
from steadygaze.results.reproduction import ReproducedValue, Reproduction
from steadygaze.study.cell_record import Watch
from steadygaze.study.cells import REPORT, VALUES, StudyCell
from steadygaze.study.compare import StudyRuntime, compare
from steadygaze.study.published_tables import AXES, Entry, PublishedTable
from steadygaze.study.seed_statistics import mean
from steadygaze.study.study_folder import StudyFolder, read_arrays
from steadygaze.study.table_blocks import Block, ReproduceOptions, blocks


def reproduce(table: PublishedTable, options: ReproduceOptions, runtime: StudyRuntime) -> Reproduction:
    """Run the missing cells of a table, and write table.json, table.md and table.html to its folder."""
    if table.needs_synonyms and options.synonyms is None and blocks(table):
        raise UserError(f"{table.key} substitutes words: --synonyms FILE names the table of synonyms")
    folder, chosen = runtime.out / table.key, blocks(table, options.only)
    values: list[ReproducedValue] = []
    for number, block in enumerate(chosen, 1):
        place, watch = folder / block.folder, _named(runtime.watch, f"{block.folder} ({number} of {len(chosen)})")
        comparison = compare(block.config(options), replace(runtime, out=place, watch=watch))
        values += _values(table, block, comparison, place, options)
    if not options.only:
        values += [_without(table, entry) for entry in table.entries() if table.absent(entry)]
    reproduction = _reproduction(table, options, values, runtime.command)
    folder.mkdir(parents=True, exist_ok=True)
    reproduction.to_json(folder / "table.json", replace=True)
    reproduction.to_html(folder / "table.html", replace=True)
    write_text(folder / "table.md", reproduction.to_markdown())
    return reproduction


def _named(watch: Watch, block: str) -> Watch:
    """Name the block in every message."""
    return lambda activity, done, total: watch(f"{block}: {activity}", done, total)


def _reproduction(
    table: PublishedTable, options: ReproduceOptions, values: Sequence[ReproducedValue], command: tuple[str, ...]
) -> Reproduction:
    facts = {
        name: str(value) for name in ("epochs", "limit", "vectors", "synonyms") if (value := getattr(options, name))
    }
    facts |= {"command of the table": table.command} if table.command else {}
    facts |= {"results": table.results} if table.results else {}
    extra = [f"Setting {key} = {value}." for key, value in options.settings.items()]
    limits = [f"Only {options.limit:,} test texts."] if options.limit else []
    limits += [f"At most {options.epochs} epochs."] if options.epochs else []
    return Reproduction(
        table.key,
        table.title,
        table.citation,
        table.url,
        tuple(values),
        table.claim,
        (*table.used_departures(), *limits, *extra),
        tuple(range(options.seed, options.seed + options.seeds)),
        facts,
        command,
        {"steadygaze": steadygaze.__version__, "torch": torch.__version__},
    )


def _labels(entry: Entry) -> tuple[str, ...]:
    return tuple(entry.label(axis) for axis in AXES)


def _without(table: PublishedTable, entry: Entry) -> ReproducedValue:
    return ReproducedValue(_labels(entry), entry.value, note=table.absent(entry))


def _values(
    table: PublishedTable, block: Block, comparison: Comparison, place: Path, options: ReproduceOptions
) -> Iterator[ReproducedValue]:
    folder = StudyFolder(place)
    seeds = range(options.seed, options.seed + options.seeds)
    cells = {name: [_read(folder.cell(name, seed), name, seed) for seed in seeds] for name in block.names}
    for entry in block.entries:
        measure, name = table.counterpart(entry, "measures"), block.techniques[entry.label("techniques")].name
        value, interval, note = _score(measure.name, comparison, name, cells[name])
        if value is not None:
            value = value * measure.scale
            interval = None if interval is None else (interval[0] * measure.scale, interval[1] * measure.scale)
        yield ReproducedValue(
            _labels(entry), entry.value, measure.name, value, interval, options.seeds, note if value is None else ""
        )


def _read(folder: Path, technique: str, seed: int) -> StudyCell:
    return StudyCell(technique, seed, read_arrays(folder / VALUES), Report.from_json(folder / REPORT))


def _score(
    measure: str, comparison: Comparison, technique: str, cells: Sequence[StudyCell]
) -> tuple[float | None, Interval | None, str]:
    """The mean over seeds and texts with its interval, or the reason why there is none."""
    if (entry := comparison.find(technique).entries.get(measure)) is not None:
        known = np.isfinite(entry.row.value)
        return (entry.row.value, entry.row.interval, "") if known else (None, None, entry.row.note)
    arrays = [cell.values_of(measure) for cell in cells]
    for values in arrays:
        if isinstance(values, str):
            return None, None, values
    matrix = np.stack([values for values in arrays if not isinstance(values, str)])
    interval = bootstrap_means(matrix[None])[0] if matrix.size > 1 else None
    return mean(matrix), interval, ""
