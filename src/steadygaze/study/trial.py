"""A trial of a search: train one model, stop early if it is pruned, and measure the objectives.

Pruning compares a trial only with trials of earlier rounds, which are finished.  A trial therefore ends in the same way
whatever runs beside it, and whenever it is interrupted.

On a GPU, one program first trains the trials of a round (`train_round`).  A trial then loads its model, or learns from
the epochs of its unfinished run that it was pruned.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.core.atomic_files import FolderBusy, remove_folder
from steadygaze.core.errors import UserError
from steadygaze.core.tensor_files import read_metadata
from steadygaze.core.types import Example, OnProgress
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import resumable_training
from steadygaze.estimator.resumable_training import ModelTraining, train_many
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.properties import PROPERTIES
from steadygaze.properties.property import Property
from steadygaze.results.audit_config import Runtime
from steadygaze.study.cell_record import Output, cell_folder
from steadygaze.study.study_options import SCORE
from steadygaze.study.tune_config import TuneConfig, objectives
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import TrainingStopped

MODEL = "model"
STARTUP = 5
"""Finished trials before proposals learn from results."""
PRUNE_AFTER = 2
"""Complete trials before the first trial can be pruned."""


@dataclass(frozen=True)
class TrialResult:
    number: int
    settings: dict[str, Any]
    """The varied settings."""
    seed: int
    state: Literal["complete", "pruned", "failed"]
    scores: dict[str, float]
    """Epoch -> validation macro-F1."""
    values: tuple[float, ...] = ()
    """The objectives of a complete trial."""
    error: str = ""


@dataclass(frozen=True)
class TuneJob:
    """The inputs of every trial; workers receive a copy."""

    config: TuneConfig
    corpus: Corpus
    """Training and validation texts, without the test split."""
    validation: list[Example]
    """The texts on which measures are audited."""
    root: Path
    device: str
    own_techniques: Mapping[str, type[Technique]] = field(default_factory=dict)
    """The technique, if it is the user's; a worker process has to register it."""
    own_properties: Mapping[str, Property] = field(default_factory=dict)
    """The properties of the user."""

    @property
    def teacher_cache(self) -> Path:
        return self.root / resumable_training.TEACHER_CACHE


def run_trial(
    job: TuneJob,
    number: int,
    values: dict[str, Any],
    earlier: Sequence[TrialResult],
    folder: Path,
    on_progress: OnProgress,
) -> Output:
    """Train and measure; `earlier`: the trials of earlier rounds."""
    TECHNIQUES.update(job.own_techniques)
    PROPERTIES.update(job.own_properties)
    on_progress("training", 0, 0)
    trial = _TrialTraining(job, number, values, earlier)
    result = TrialResult(number, values, job.config.seed_of(number), "pruned", trial.scores)
    (clf,) = [None] if trial.is_pruned else _train(job, [trial])
    if clf is None:
        remove_folder(resumable_training.unfinished_folder(folder / MODEL))
        return Output(asdict(result))
    history = [r for r in clf.history_ if r["stage"] == trial.final_stage and SCORE in r]
    scores = {str(r["epoch"]): r[SCORE] for r in history}
    complete = replace(result, state="complete", scores=scores, values=_measure(job, clf, on_progress))
    return Output(asdict(complete))


def train_round(job: TuneJob, round_values: Mapping[int, dict[str, Any]], earlier: Sequence[TrialResult]) -> None:
    """Train trials at the same time where possible; `round_values`: the varied settings of each unfinished trial.

    Raises FolderBusy if another driver trains one of them.
    """
    try:
        trials = [_TrialTraining(job, number, values, earlier) for number, values in round_values.items()]
        waiting = [trial for trial in trials if not trial.is_pruned and not trial.model.out.exists()]
        if len(waiting) > 1:
            _train(job, waiting)
    except FolderBusy:
        raise
    except UserError:
        pass  # the cell of each trial trains its model alone, and reports the error


def _train(job: TuneJob, trials: Sequence["_TrialTraining"]) -> list[TextClassifier | None]:
    """Train the models of trials, resume their training, or load them; None: pruned, or diverged beside others."""
    return train_many([trial.model for trial in trials], job.corpus, True, job.teacher_cache, replace=True)


class _TrialTraining:
    """The training of a trial, with the epochs of its unfinished run."""

    def __init__(self, job: TuneJob, number: int, values: dict[str, Any], earlier: Sequence[TrialResult]) -> None:
        clf, out = job.config.classifier(number, values, job.device), cell_folder(job.root, f"trial-{number}") / MODEL
        self.model = ModelTraining(clf, out, on_epoch=self.observe)
        self.final_stage = job.config.training(number, values).technique.stages(clf.seed)[-1].name
        self.pruner = Pruner(earlier) if _prunes(job.config) else None
        self.scores: dict[str, float] = {}
        """Epoch of the final stage -> validation score."""
        self.is_pruned = False
        with suppress(TrainingStopped):
            for record in _interrupted_history(resumable_training.unfinished_folder(out)):
                self.observe(record)

    def observe(self, record: Mapping[str, Any]) -> None:
        """Keep the score of an epoch of the final stage; stop a trial that is pruned."""
        if record["stage"] != self.final_stage or SCORE not in record:
            return
        epoch, score = record["epoch"], float(record[SCORE])
        self.scores[str(epoch)] = score
        if self.pruner is not None and self.pruner.should_prune(epoch, score):
            self.is_pruned = True
            raise TrainingStopped


def _prunes(config: TuneConfig) -> bool:
    """Pruning needs one objective that every epoch reports."""
    return config.prune and config.objectives == (SCORE,)


def _interrupted_history(run: Path) -> list[Mapping[str, Any]]:
    """The epochs of an interrupted run, which are not trained again."""
    file = run / "checkpoint.safetensors"
    if not file.is_file():
        return []
    history: list[Mapping[str, Any]] = read_metadata(file, "state").get("history", [])
    return history


def _measure(job: TuneJob, clf: TextClassifier, on_progress: OnProgress) -> tuple[float, ...]:
    """The objectives: the score of the selected epoch, and measures of an audit on the validation texts."""
    scores = {SCORE: float(clf.stored_.description.best_epoch[SCORE])}
    if set(job.config.objectives) - {SCORE}:
        runtime = Runtime(on_progress=on_progress)
        request = AuditRequest(
            as_adapter(clf), job.validation, job.config, synonyms=job.config.synonyms, runtime=runtime
        )
        report = run_audit(request).report()
        for name in set(job.config.objectives) - {SCORE}:
            row = report.find(name)
            if row is None or row.value != row.value:
                reason = "it was not measured" if row is None else row.note
                raise UserError(f"the objective {name} has no value: {reason}")
            scores[name] = row.value
    return tuple(scores[objective.measure] for objective in objectives(job.config))


class Pruner:
    """Optuna's median pruner over finished trials."""

    def __init__(self, earlier: Sequence[TrialResult]) -> None:
        import optuna

        with quiet_optuna():
            pruner = optuna.pruners.MedianPruner(n_startup_trials=PRUNE_AFTER)
            study = optuna.create_study(direction="maximize", pruner=pruner)
            complete = optuna.trial.TrialState.COMPLETE
            for trial in earlier:
                if trial.state == "complete":
                    scores = {int(epoch): score for epoch, score in trial.scores.items()}
                    values = {"state": complete, "value": max(scores.values()), "intermediate_values": scores}
                    study.add_trial(optuna.trial.create_trial(**values))
            self._trial = study.ask()

    def should_prune(self, epoch: int, score: float) -> bool:
        with quiet_optuna():
            self._trial.report(score, epoch)
            return bool(self._trial.should_prune())


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
