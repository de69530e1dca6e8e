"""Reproduce published tables: run the missing cells, and put the papers' numbers beside ours.

One executor runs the cells of all comparisons, so that its workers start once.  If a technique has a `search`, one
model for each value is trained first with the first seed; the best validation macro-F1 chooses the value.

<table>/<block>/           a comparison, see study_folder.py
<table>/<block>_search/    cells that choose settings
<table>/table.json, table.md, table.html, records.jsonl.gz     the result
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import steadygaze
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.estimator import resumable_training
from steadygaze.report.sentences import NOT_APPLICABLE
from steadygaze.results.intervals import Interval, Values
from steadygaze.results.note import Note
from steadygaze.results.report import Report
from steadygaze.results.reproduction import CellScores, ReproducedValue, Reproduction
from steadygaze.results.seed_intervals import by_model, mean_intervals
from steadygaze.study.cell_record import RECORD, Cell, CellRecord, Output, gpu_share
from steadygaze.study.cells import MODEL, REPORT, VALUES, ComparisonJob, StudyCell
from steadygaze.study.compare import StudyRuntime, begin, finish, uses_stacks
from steadygaze.study.compare_config import BETWEEN, CompareConfig, check
from steadygaze.study.comparison_table import MACRO_F1, bounded
from steadygaze.study.engine import check_finished, choose_executor, run_round
from steadygaze.study.executor import Executor
from steadygaze.study.published_tables import AXES, Counterpart, Entry, PublishedTable
from steadygaze.study.seed_statistics import macro_f1_interval, mean, seed_means
from steadygaze.study.study_data import StudyData, cell_inputs, load_study_data
from steadygaze.study.study_folder import StudyFolder, read_arrays
from steadygaze.study.study_options import SCORE, ReproduceOptions
from steadygaze.study.table_blocks import Block, blocks, is_finished
from steadygaze.training.progress import TrainingDiverged

NOT_RUN = "not run"
DIVERGED = "diverged"
RECORDS = "records.jsonl.gz"


@dataclass(frozen=True)
class TableRun:
    """A table, or a part of it, to run."""

    table: PublishedTable
    options: ReproduceOptions


def reproduce(table: PublishedTable, options: ReproduceOptions, runtime: StudyRuntime) -> Reproduction:
    """Run the missing cells of a table, and write its result to its folder."""
    for job in run_missing([TableRun(table, options)], runtime):
        finish(job, runtime)
    return collect(table, options, runtime)


def run_missing(runs: Sequence[TableRun], runtime: StudyRuntime) -> list[ComparisonJob]:
    """Run the missing cells of several tables in one executor; return the comparisons, with finished cells."""
    for table, options in ((run.table, run.options) for run in runs):
        if table.needs_synonyms and options.synonyms is None and blocks(table):
            raise UserError(f"{table.key} substitutes words: --synonyms FILE names the table of synonyms")
    parts = [_Part(run, block, runtime) for run in runs for block in blocks(run.table, run.options.only)]
    cells = sum(len(part.block.cells(part.options)) for part in parts)
    if not parts:
        return []
    with choose_executor(runtime.engine, runtime.workers, runtime.device, cells) as workers:
        stacks = uses_stacks(workers, runtime.device)
        jobs = {part: part.begin(stacks) for part in parts if not part.candidates}
        searched = [part for part in parts if part.candidates]
        records = _run([cell for part in searched for cell in part.search_cells()], jobs, runtime, workers)
        chosen = {part: part.begin(stacks, part.choose(records)) for part in searched}
        _run([], chosen, runtime, workers)
    return [*jobs.values(), *chosen.values()]


def _run(
    cells: Sequence[Cell], jobs: "Mapping[_Part, ComparisonJob]", runtime: StudyRuntime, workers: Executor
) -> dict[str, CellRecord]:
    """Run the cells, and those of the comparisons; return all records."""
    of_jobs = [_inside(part.study, cell) for part, job in jobs.items() for cell in job.cells()]
    records = run_round([*cells, *of_jobs], runtime.out, workers, runtime.on_progress) if cells or of_jobs else {}
    check_finished(records)  # a partial search would choose other settings
    return records


def _inside(study: str, cell: Cell) -> Cell:
    """The cell under the name and label that it has among several studies."""
    needs = tuple(f"{study}/{name}" for name in cell.needs)
    return replace(cell, name=f"{study}/{cell.name}", needs=needs, label=f"{Path(study).name}: {cell.label}")


@dataclass(frozen=True, eq=False)
class _Part:
    """A block of a run."""

    run: TableRun
    block: Block
    runtime: StudyRuntime

    @property
    def options(self) -> ReproduceOptions:
        return self.run.options

    @property
    def study(self) -> str:
        return f"{self.run.table.key}/{self.block.folder}"

    @property
    def candidates(self) -> list[tuple[str, dict[str, Any]]]:
        return [(technique.name, values) for technique in self.block.techniques.values() for values in _grid(technique)]

    def begin(self, stacks: bool, chosen: Mapping[str, Mapping[str, Any]] | None = None) -> ComparisonJob:
        config = self.block.config(self.options, chosen)
        return replace(begin(config, replace(self.runtime, out=self.runtime.out / self.study)), stacks=stacks)

    def search_cells(self) -> Iterator[Cell]:
        """A cell for each value of a searched setting."""
        data, device, seed = None, self.runtime.resolved_device, self.options.seed
        for name, (technique, values) in zip(self.search_names, self.candidates, strict=True):
            config = self.block.config(self.options, {technique: values})
            check(config)
            data = data or load_study_data(config, self.runtime.data_dir)
            inputs = {**cell_inputs(config, data, device, technique, seed), "search": values}
            work = partial(train_candidate, config, data, device, technique, values)
            label = f"{self.block.folder}: {technique} with {values}"
            yield Cell(name, label, inputs, work, gpus=gpu_share(device))

    @property
    def search_names(self) -> list[str]:
        """Names of the cells of the search."""
        study = f"{self.run.table.key}/{self.block.search_folder}"
        return [f"{study}/{technique}-{number}" for number, (technique, _) in enumerate(self.candidates)]

    def choose(self, records: Mapping[str, CellRecord]) -> dict[str, dict[str, Any]]:
        """Technique -> the values with the best validation score; a model that diverged is never chosen."""
        best: dict[str, tuple[float, dict[str, Any]]] = {}
        for name, (technique, values) in zip(self.search_names, self.candidates, strict=True):
            score = records[name].result.get(SCORE, -np.inf)
            if technique not in best or score > best[technique][0]:
                best[technique] = score, values
        for technique, (score, _) in best.items():
            if score == -np.inf:
                raise UserError(f"every model of the search of {technique} diverged: try a lower learning_rate")
        return {technique: values for technique, (_, values) in best.items()}


def _grid(technique: Counterpart) -> list[dict[str, Any]]:
    """All combinations of the searched values; empty without a search."""
    names = list(technique.search)
    return [dict(zip(names, values, strict=True)) for values in product(*technique.search.values())] if names else []


def train_candidate(
    config: CompareConfig,
    data: StudyData,
    device: str,
    technique: str,
    values: dict[str, Any],
    folder: Path,
    on_progress: OnProgress,
) -> Output:
    """Train one model, and return its validation score, or the reason why it diverged."""
    on_progress("training", 0, 0)
    clf = config.classifier(technique, config.seed, device)
    cache = folder / resumable_training.TEACHER_CACHE
    try:
        trained = resumable_training.train(clf, data.corpus, folder / MODEL, True, teacher_cache=cache)
    except TrainingDiverged as error:
        return Output({"technique": technique, "settings": values, DIVERGED: str(error)})
    score = float(trained.stored_.description.best_epoch[SCORE])
    return Output({"technique": technique, "settings": values, SCORE: score})


def collect(
    table: PublishedTable, options: ReproduceOptions, runtime: StudyRuntime, finished: bool = False
) -> Reproduction:
    """Read the cells of a table, and write table.json, table.md, table.html and records.jsonl.gz to its folder.

    `finished`: leave out comparisons that are not finished, whatever their settings, code and machine.
    """
    folder, values, scores = runtime.out / table.key, list[ReproducedValue](), list[CellScores]()
    limits, chosen, origins = list[str](), dict[str, str](), dict[str, list[str]]()
    for block in blocks(table, options.only):
        place, run = folder / block.folder, options
        chosen |= _chosen(block, folder)
        if finished:
            run = _seeds_of(place, options)
        if finished and not all(is_finished(place / "cells" / cell) for cell in block.cells(run)):
            values += [ReproducedValue(_labels(entry), entry.value, note=NOT_RUN) for entry in block.entries]
            continue
        cells = _read_cells(place, block, run)
        values += _values(table, block, cells, place)
        scores += _cell_scores(block, cells, place)
        limits += [limit for limit in _limits(table, block, place) if limit not in limits]
        for name, value in _origin(place).items():
            origins[name] = [*dict.fromkeys([*origins.get(name, []), value])]
    if not options.only:
        values += [_without(table, entry) for entry in table.entries() if table.absent(entry)]
    parts = [entry for block in blocks(table, options.only) for entry in block.entries]
    departures = (
        *table.used_departures(parts if options.only else table.entries()),
        *limits,
        *options.notes,
        *_settings(options),
    )
    versions = {name: ", ".join(different) for name, different in origins.items()}
    reproduction = _reproduction(table, options, values, departures, chosen, runtime.command, versions)
    folder.mkdir(parents=True, exist_ok=True)
    reproduction.to_json(folder / "table.json", replace=True)
    reproduction.to_html(folder / "table.html", replace=True)
    write_text(folder / "table.md", reproduction.to_markdown())
    reproduction.to_records(folder / RECORDS, scores)
    return reproduction


def _reproduction(
    table: PublishedTable,
    options: ReproduceOptions,
    values: Sequence[ReproducedValue],
    departures: tuple[str, ...],
    chosen: Mapping[str, str],
    command: tuple[str, ...],
    versions: Mapping[str, str],
) -> Reproduction:
    facts = {
        name: str(value) for name in ("epochs", "limit", "vectors", "synonyms") if (value := getattr(options, name))
    }
    facts |= {"command of the table": table.command} if table.command else {}
    facts |= {"results": table.results} if table.results else {}
    return Reproduction(
        table.key,
        table.title,
        table.citation,
        table.url,
        tuple(values),
        table.claim,
        departures,
        tuple(range(options.seed, options.seed + options.seeds)),
        {**facts, **chosen},
        command,
        {"steadygaze": steadygaze.__version__, **versions},
    )


def _settings(options: ReproduceOptions) -> list[str]:
    return [f"Setting {key} = {value}." for key, value in options.settings.items()]


def _seeds_of(place: Path, options: ReproduceOptions) -> ReproduceOptions:
    """The options with the seeds of a comparison, from its folder."""
    seeds = read_object_or_empty(place / "settings.json").get("seeds") or [options.seed]
    return replace(options, seed=seeds[0], seeds=len(seeds))


def _origin(place: Path) -> dict[str, str]:
    """The version of torch, the device and the code version of a comparison, from its folder."""
    settings = read_object_or_empty(place / "settings.json")
    return {name: str(settings[name]) for name in ("torch", "device", "code") if name in settings}


def _limits(table: PublishedTable, block: Block, place: Path) -> Iterator[str]:
    """Size of the test and limits of the training of a comparison, from its folder."""
    settings = read_object_or_empty(place / "settings.json")
    data, shared = settings.get("data", {}), settings.get("shared", {})
    parts = [f"{data.get('texts', 0):,} test texts", f"{len(settings.get('seeds', ()))} seeds"]
    if limit := data.get("train_limit"):
        parts.append(f"at most {limit:,} training texts")
    if epochs := shared.get("epochs"):
        parts.append(f"at most {epochs} epochs, patience {shared.get('patience')}")
    split = f", split {block.corpus.split}" if block.corpus.split else ""
    encoder = f", {block.encoder.name}" if len({other.encoder.name for other in blocks(table)}) > 1 else ""
    yield f"{block.corpus.name}{split}{encoder}: {', '.join(parts)}."


def _chosen(block: Block, folder: Path) -> dict[str, str]:
    """Data and technique -> the chosen settings, and the scores of all."""
    tried: dict[str, list[tuple[float, str]]] = {}
    study = folder / block.search_folder / "cells"
    for file in sorted(study.glob(f"*/{RECORD}"), key=lambda file: int(file.parent.name.rpartition("-")[2])):
        result = read_object_or_empty(file).get("result", {})
        if SCORE in result or DIVERGED in result:
            values = ", ".join(f"{key} = {value:g}" for key, value in result["settings"].items())
            tried.setdefault(result["technique"], []).append((result.get(SCORE, -np.inf), values))
    data = next(entry.label("corpora") for entry in block.entries)
    described = {}
    for technique, scores in tried.items():
        best = max(scores, key=lambda pair: pair[0])[1]
        described[f"{data}, {technique}"] = f"{best} (validation macro-F1: " + (
            "; ".join(f"{values}: {DIVERGED if score == -np.inf else f'{score:.4f}'}" for score, values in scores) + ")"
        )
    return described


def _labels(entry: Entry) -> tuple[str, ...]:
    return tuple(entry.label(axis) for axis in AXES)


def _without(table: PublishedTable, entry: Entry) -> ReproducedValue:
    return ReproducedValue(_labels(entry), entry.value, note=table.absent(entry))


def _read_cells(place: Path, block: Block, options: ReproduceOptions) -> dict[str, list[StudyCell]]:
    """Technique -> the cells of all seeds."""
    seeds, folder = range(options.seed, options.seed + options.seeds), StudyFolder(place)
    return {name: [_read(folder.cell(name, seed), name, seed) for seed in seeds] for name in block.names}


def _read(folder: Path, technique: str, seed: int) -> StudyCell:
    return StudyCell(technique, seed, read_arrays(folder / VALUES), Report.from_json(folder / REPORT))


def _values(
    table: PublishedTable, block: Block, cells: Mapping[str, list[StudyCell]], place: Path
) -> Iterator[ReproducedValue]:
    for entry in block.entries:
        measure, name = table.counterpart(entry, "measures"), block.techniques[entry.label("techniques")].name
        value, interval, note = _score(measure.name, cells[name], StudyFolder(place).seeds(name))
        if value is not None:
            value = value * measure.scale
            interval = None if interval is None else (interval[0] * measure.scale, interval[1] * measure.scale)
        yield ReproducedValue(_labels(entry), entry.value, measure.name, value, interval, len(cells[name]), note)


def _score(measure: str, cells: Sequence[StudyCell], between: Path) -> tuple[float | None, Interval | None, str]:
    """The mean over seeds and texts with its interval, or the reason why there is none."""
    matrix = _matrix(measure, cells, between)
    if isinstance(matrix, str):
        return None, None, matrix
    outcomes = [outcome for cell in cells if (outcome := cell.outcomes)] if measure == MACRO_F1 else []
    resampled = len(outcomes) == len(cells)
    interval = macro_f1_interval(outcomes) if resampled else mean_intervals({measure: matrix})[measure]
    return mean(matrix), bounded(measure, interval), ""


def _matrix(measure: str, cells: Sequence[StudyCell], between: Path) -> Values | str:
    """(S,N) for a value per text, (S,1) for one of the whole split; else the reason why there is none."""
    if measure == str(BETWEEN):
        return by_model(_pairs(between), len(cells)) if len(cells) > 1 else "it needs two seeds"
    arrays = [cell.values_of(measure) for cell in cells]
    for values in arrays:
        if isinstance(values, Note):
            return NOT_APPLICABLE.format(values.sentence)
    return np.stack([values for values in arrays if not isinstance(values, Note)])


def _pairs(between: Path) -> dict[tuple[int, int], Values]:
    """The values of each pair of models, from the folder of their comparison."""
    return {key.models: values for key, values in read_arrays(between / VALUES).items() if key.models is not None}


def _cell_scores(block: Block, cells: Mapping[str, list[StudyCell]], place: Path) -> Iterator[CellScores]:
    """The scores of every model, for the records."""
    settings = read_object_or_empty(place / "settings.json")
    for technique, of_seeds in cells.items():
        compared = str(BETWEEN) in block.measures and len(of_seeds) > 1
        pairs = _pairs(StudyFolder(place).seeds(technique)) if compared else {}
        for number, cell in enumerate(of_seeds):
            record = read_object_or_empty(StudyFolder(place).cell(technique, cell.seed) / RECORD)
            arrays = {measure: cell.values_of(measure) for measure in block.measures}
            scores = {
                measure: float(seed_means(values)) for measure, values in arrays.items() if not isinstance(values, Note)
            }
            if own := [values for pair, values in pairs.items() if number in pair]:
                scores[str(BETWEEN)] = mean(np.stack(own))
            yield CellScores(
                block.folder,
                technique,
                cell.seed,
                scores,
                record.get("result", {}).get("validation", {}).get(SCORE),
                settings.get("own", {}).get(technique, {}),
                round(record.get("seconds", 0.0), 1),
            )
