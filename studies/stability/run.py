"""Stability of attention: every technique on real data, many seeds, hyper-parameters selected on validation data alone.

One job trains the models of a row and setting, on a GPU as one program; one job measures one model; one compares the
seeds of a row.  A run can be stopped and resumed.  `python -m studies run held_out_synonyms` makes the tables of
`--synonyms`.

Hyper-parameters are selected first, on the validation splits of SST-2 and Rotten Tomatoes with two seeds, by one rule:
the smallest shift of attention (geometric mean over the probes SELECTION_PROBES of plan.py) among configurations
within 0.005 of vanilla's macro-F1.  Published techniques are also selected by macro-F1 alone, as in their papers.
`--selection` takes the records of an earlier selection instead.
"""

import dataclasses
import json
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

from studies import jobs
from studies.stability.models import ModelOptions, train
from studies.stability.plan import (
    BOTH_RULES,
    GRID,
    MARGIN,
    SELECTION_PROBES,
    Config,
    Job,
    jobs_of,
    row_groups,
    selection_groups,
    with_needs,
)
from studies.stability.probe import compare_seeds, measure
from studies.stability.records import Record, read


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    selection: Path | None = dataclasses.field(default=None, metadata={"help": "records of an earlier selection"})


def run(options: Options) -> None:
    """`--only` also runs the jobs that matching ones need."""
    warnings.simplefilter("ignore")
    everything = dataclasses.replace(options, only="")
    run_job = partial(run_one, options)
    if options.selection is None:
        jobs.run(everything, lambda: jobs_of(selection_groups()), run_job, needs=Job.needs)
    selected = select_configurations(read(options.selection or options.out / "records"))
    test_jobs = with_needs(jobs_of(row_groups(selected)), options.only)
    jobs.run(everything, lambda: test_jobs, run_job, needs=Job.needs)


def run_one(options: Options, job: Job) -> Record:
    """Rows of the same configuration share the models, and the measures, of one."""
    if job.kind == "train":
        return train(options, job)
    if job.kind == "seeds":
        return compare_seeds(options, job)
    if job.source:
        name = job.sibling(job.source).model_name(job.seed)
        record: dict[str, Any] = json.loads((options.out / "records" / f"{name}.json").read_text(encoding="utf-8"))
        return record | {"same-as": name}
    return measure(options, job, job.seed)


def select_configurations(records: Iterable[Record]) -> dict[str, Config]:
    """Row -> the configuration that the validation splits select."""
    scores: dict[str, dict[int, list[Record]]] = {}
    for record in records:
        config, row = record.get("config", {}), record["row"]
        if record["phase"] == "select" and (row == "vanilla" or config in GRID.get(row, [])):
            index = 0 if row == "vanilla" else GRID[row].index(config)
            scores.setdefault(row, {}).setdefault(index, []).append(record)
    floor = mean(record["macro-f1"] for record in scores["vanilla"][0]) - MARGIN
    configs: dict[str, Config] = {}
    for row, grid in GRID.items():
        f1 = {index: mean(record["macro-f1"] for record in runs) for index, runs in scores[row].items()}
        accurate = [index for index in f1 if f1[index] >= floor]
        best = max(f1, key=lambda index: f1[index])
        # If no configuration is accurate enough, the most accurate one.
        rule = min(accurate, key=lambda index: _shift(scores[row][index])) if accurate else best
        if row in BOTH_RULES:
            configs |= {f"{row}-by-f1": grid[best], f"{row}-by-rule": grid[rule]}
        else:
            configs[row] = grid[rule]
    return configs


def _shift(records: list[Record]) -> float:
    return geometric_mean(record[f"jensen-shannon/{probe}"] for record in records for probe in SELECTION_PROBES)
