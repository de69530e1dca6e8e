"""Hyper-parameter search with Optuna; the same call resumes an interrupted search and gives the same result.

Trials are proposed in rounds of `parallel`.  The proposals of a round depend on the seed of the search and on the
results of earlier rounds, never on the order in which trials end.  The records of the trials therefore determine the
state of the sampler.  A search that is killed and resumed continues as if it had not been, with any number of workers.
On a GPU, one program trains the trials of a round whose models have the same architecture and batch size.

settings.json              everything that the trials depend on, except their number
cells/trial-<n>/           a trial: record.json, and model/ unless it was pruned
model/                     the model of the best trial
tuning.json, tuning.html   the result
optuna.log                 all trials as a journal for Optuna's own tools
"""

import shlex
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import steadygaze
from steadygaze.core.atomic_files import FolderBusy, new_file, new_folder
from steadygaze.core.errors import RecoveryWarning, UserError
from steadygaze.core.random_key import derive_seed
from steadygaze.core.search_space import SearchRange, SearchSpace
from steadygaze.core.settings import field_names
from steadygaze.core.untrusted_files import digest_json
from steadygaze.data.corpora import load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.label_checks import count_labels, near_duplicates
from steadygaze.data.splits import hold_out
from steadygaze.estimator.model_folder import load
from steadygaze.models.inference import best_device
from steadygaze.properties import own_properties
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.health import Health
from steadygaze.results.tuning import Trial, Tuning
from steadygaze.study.cell_record import Cell, CellRecord, cell_folder, gpu_share, read_record
from steadygaze.study.code_version import property_sources, technique_source
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.engine import POLL, choose_executor, run_round
from steadygaze.study.executor import InProcess
from steadygaze.study.study_data import file_digest, training_inputs
from steadygaze.study.study_folder import StudyFolder
from steadygaze.study.track_study import track_search
from steadygaze.study.trial import MODEL, STARTUP, TrialResult, TuneJob, quiet_optuna, run_trial, train_round
from steadygaze.study.tune_config import TuneConfig, default_values, objectives, search_spaces
from steadygaze.techniques import own_modules, own_techniques
from steadygaze.training.tracking import check_track

INSTALL = "tune needs the package optuna: pip install 'steadygaze[tune]'"


def tune(config: TuneConfig, runtime: StudyRuntime) -> Tuning:
    """Search; write tuning.json, tuning.html and the best model to `runtime.out`."""
    spaces = search_spaces(config)
    objectives(config)
    check_optuna()
    check_track(runtime.track)
    folder = StudyFolder(runtime.out)
    folder.refuse_foreign("search")
    job = load_job(config, runtime)
    identity = _identity(job, spaces)
    folder.begin(identity, "search")
    trials = _search(job, spaces, identity, runtime)
    tuning = _result(job, spaces, trials, runtime)
    _save_best(tuning, runtime.out)
    write_journal(runtime.out / "optuna.log", config, spaces, trials)
    tuning.to_json(runtime.out / "tuning.json", replace=True)
    tuning.to_html(runtime.out / "tuning.html", replace=True)
    if runtime.track is not None:
        track_search(runtime.track, config, folder, trials)
    return tuning


def check_optuna() -> None:
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise UserError(INSTALL) from None


def load_job(config: TuneConfig, runtime: StudyRuntime) -> TuneJob:
    """The training and validation texts; other splits are dropped."""
    corpus = load_corpus(config.data, **config.labeled_columns, data_dir=runtime.data_dir)
    runtime.on_corpus(corpus)
    splits = {"train": corpus.training}
    if "validation" in corpus.splits:
        splits["validation"] = validation = corpus.splits["validation"]
    else:  # the same texts that training holds out
        train = corpus.training
        rows = hold_out(len(train), [example.label for example in train])[1]
        validation = [train[row] for row in sorted(rows)]
    if config.limit is not None:
        validation = validation[: config.limit]
    kept = Corpus(corpus.name, splits, corpus.dropped, corpus.source)
    device = runtime.resolved_device
    own = own_techniques([config.technique])
    return TuneJob(config, kept, validation, runtime.out, device, own, own_properties())


def _identity(job: TuneJob, spaces: Mapping[str, SearchSpace]) -> dict[str, Any]:
    config = job.config
    return {
        **training_inputs(config, job.device),
        "data": {"corpus": job.corpus.name, "read": job.corpus.fingerprint},
        "technique": config.technique,
        **technique_source(config.technique),
        **property_sources(),
        "settings": config.settings,
        "epochs": config.epochs,
        "batch_size": config.batch_size,
        "spaces": {name: str(space) for name, space in spaces.items()},
        "objectives": list(config.objectives),
        "seed": config.seed,
        "vary_seed": config.vary_seed,
        "parallel": config.parallel,
        "prune": config.prune,
        "audit": {
            "synonyms": file_digest(config.synonyms),
            "texts": len(job.validation),
            **{name: getattr(config, name) for name in field_names(ProbeConfig)},
        },
    }


def _search(
    job: TuneJob, spaces: dict[str, SearchSpace], identity: dict[str, Any], runtime: StudyRuntime
) -> list[TrialResult]:
    """All rounds."""
    config, trials = job.config, list[TrialResult]()
    with choose_executor(
        runtime.engine, runtime.workers, runtime.device, min(config.trials, config.parallel)
    ) as workers:
        uses_stacks = isinstance(workers, InProcess) and best_device(job.device).type == "cuda"
        while len(trials) < config.trials:
            first = len(trials)
            proposals = propose(config, spaces, trials)[: config.trials - first]
            cells = [_cell(job, identity, number, values, trials) for number, values in enumerate(proposals, first)]

            def on_progress(activity: str, done: int, total: int, first: int = first) -> None:
                runtime.on_progress(activity, first + done, config.trials)

            if uses_stacks:
                on_progress(f"trials {first} to {first + len(cells) - 1}: training", 0, 0)
                _train_together(job, cells, dict(enumerate(proposals, first)), trials)
            records = run_round(cells, runtime.out, workers, on_progress)
            trials += [
                _read(records[cell.name], number, values, config.seed_of(number))
                for number, (cell, values) in enumerate(zip(cells, proposals, strict=True), first)
            ]
    return trials


def _cell(
    job: TuneJob, identity: dict[str, Any], number: int, values: dict[str, Any], earlier: Sequence[TrialResult]
) -> Cell:
    inputs = {**identity, "number": number, "values": values, "earlier": digest_json(map(_outcome, earlier))}
    work = partial(run_trial, job, number, values, list(earlier))
    return Cell(f"trial-{number}", f"trial {number}", inputs, work, gpus=gpu_share(job.device))


def _outcome(trial: TrialResult) -> list[Any]:
    """The part of a trial that later trials depend on, without the text of an error, which can differ in each run."""
    return [trial.number, trial.settings, trial.state, trial.scores, trial.values]


def _train_together(
    job: TuneJob, cells: Sequence[Cell], values: dict[int, dict[str, Any]], earlier: Sequence[TrialResult]
) -> None:
    """Train the trials of a round that have no record; wait while another driver trains one of them."""
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)  # the engine shows it
            records = [read_record(cell_folder(job.root, cell.name), cell.key) for cell in cells]
        is_finished = [record is not None and record.is_finished for record in records]
        unfinished = {n: values[n] for n, finished in zip(values, is_finished, strict=True) if not finished}
        try:
            train_round(job, unfinished, earlier)
            return
        except FolderBusy:
            time.sleep(POLL)


def _read(record: CellRecord, number: int, values: dict[str, Any], seed: int) -> TrialResult:
    if not record.is_finished:
        return TrialResult(number, values, seed, "failed", {}, error=record.error)
    return TrialResult(**{**record.result, "values": tuple(record.result["values"])})


def propose(config: TuneConfig, spaces: dict[str, SearchSpace], trials: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """The varied settings of the next round; the first trial has the defaults, if they are in the space."""
    import optuna

    with quiet_optuna():
        study = _study(config, optuna.storages.InMemoryStorage(), spaces, trials)
        if not trials and (defaults := default_values(config, spaces)) is not None:
            study.enqueue_trial(defaults)
        distributions = {name: _distribution(space) for name, space in spaces.items()}
        return [dict(study.ask(distributions).params) for _ in range(config.parallel)]


def _study(config: TuneConfig, storage: Any, spaces: Mapping[str, SearchSpace], trials: Sequence[TrialResult]) -> Any:
    """The Optuna study of finished trials, with a sampler for the next round."""
    import optuna

    sampler = optuna.samplers.TPESampler(
        seed=derive_seed(config.seed, len(trials)), n_startup_trials=STARTUP, constant_liar=True
    )
    directions = [objective.direction for objective in objectives(config)]
    study = optuna.create_study(storage=storage, sampler=sampler, directions=directions, study_name=config.technique)
    distributions = {name: _distribution(space) for name, space in spaces.items()}
    states = {
        "complete": optuna.trial.TrialState.COMPLETE,
        "pruned": optuna.trial.TrialState.PRUNED,
        "failed": optuna.trial.TrialState.FAIL,
    }
    for trial in trials:
        study.add_trial(
            optuna.trial.create_trial(
                state=states[trial.state],
                params=trial.settings,
                distributions=distributions,
                values=trial.values or None,
                intermediate_values={int(epoch): score for epoch, score in trial.scores.items()},
            )
        )
    return study


def _distribution(space: SearchSpace) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(space, SearchRange):
        return CategoricalDistribution(space.values)
    if isinstance(space.low, int) and isinstance(space.high, int):
        return IntDistribution(space.low, space.high, log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)


def write_journal(
    path: Path, config: TuneConfig, spaces: Mapping[str, SearchSpace], trials: Sequence[TrialResult]
) -> None:
    """Write all trials as an Optuna journal, whole or not at all."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    with new_file(path) as file, quiet_optuna():
        _study(config, JournalStorage(JournalFileBackend(str(file))), spaces, trials)


def _result(
    job: TuneJob, spaces: Mapping[str, SearchSpace], trials: Sequence[TrialResult], runtime: StudyRuntime
) -> Tuning:
    config = job.config
    tuning = Tuning(
        trials=tuple(Trial(t.number, t.settings, t.seed, t.state, t.values, len(t.scores), t.error) for t in trials),
        objectives=tuple((objective.measure, objective.direction) for objective in objectives(config)),
        spaces={name: str(space) for name, space in spaces.items()},
        facts={
            "data": f"{job.corpus.name}: " + ", ".join(f"{size:,} {name}" for name, size in job.corpus.sizes.items()),
            "technique": config.technique,
            **technique_source(config.technique),
            "encoder": config.encoder,
            "seed": f"{config.seed}, and {'one more for each' if config.vary_seed else 'the same for every'} trial",
        },
        command=runtime.command,
        versions={"steadygaze": steadygaze.__version__, "torch": torch.__version__},
    )
    if tuning.best is None:
        errors = [trial.error for trial in trials if trial.error]
        raise UserError(f"no trial was completed: {errors[0] if errors else 'all were pruned'}")
    health = _health(cell_folder(runtime.out, f"trial-{tuning.best.number}") / MODEL)
    labels = [example.label for split in job.corpus.splits.values() for example in split]
    words = train_command(config, tuning.best, keep_labels=bool(near_duplicates(count_labels(labels))))
    return replace(tuning, train_command=shlex.join(words), health=health)


def _health(folder: Path) -> Health:
    """Known-bad states of the model of a trial."""
    return load(folder).health


def train_command(config: TuneConfig, trial: Trial, keep_labels: bool = False) -> list[str]:
    """The command that trains the model of a trial."""
    words = ["steadygaze", "train", config.data, "--technique", config.technique, "--encoder", config.encoder]
    for module in own_modules([config.technique]):
        words += ["--import", module]
    for column in config.text if config.text != ("text",) else ():
        words += ["--text", column]
    options = {
        "--label": None if config.label == "label" else config.label,
        "--vectors": config.vectors,
        "--epochs": config.epochs,
        "--batch-size": config.batch_size,
        "--synonym-groups": config.synonym_groups,
    }
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    words += [*(["--drop-empty"] if config.drop_empty else []), *(["--keep-labels"] if keep_labels else [])]
    for name, value in {**config.settings, **trial.settings}.items():
        words += ["--set", f"{name}={value}"]
    return [*words, "--seed", str(trial.seed), "--out", "MODEL"]


def _save_best(tuning: Tuning, out: Path) -> None:
    """Copy the model of the best trial."""
    assert tuning.best is not None
    with new_folder(out / MODEL) as folder:
        shutil.copytree(cell_folder(out, f"trial-{tuning.best.number}") / MODEL, folder, dirs_exist_ok=True)
