"""A trial of a search: train one model, stop early if it is pruned, and measure the objectives.

Pruning compares a trial only with trials of earlier rounds, which are finished.  A trial therefore ends in the same way
whatever runs beside it, and whenever it is interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.audit.audit import run_audit
from steadygaze.audit.prepare_case import AuditRequest
from steadygaze.core.atomic_files import remove_folder
from steadygaze.core.errors import UserError
from steadygaze.core.tensor_files import read_metadata
from steadygaze.core.types import Example
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import resumable_training
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.audit_config import Runtime
from steadygaze.study.cell_record import Output, Watch
from steadygaze.study.tune_config import SCORE, TuneConfig, objectives
from steadygaze.training.progress import SilentWatcher, Watcher

MODEL = "model"
STARTUP = 5
"""Finished trials before the first is pruned, and before proposals learn from results."""


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
    """What every trial needs; workers receive a copy."""

    config: TuneConfig
    corpus: Corpus
    """Training and validation texts, without the test split."""
    validation: list[Example]
    """The texts on which measures are audited."""
    root: Path
    device: str


def run_trial(
    job: TuneJob, number: int, values: dict[str, Any], earlier: Sequence[TrialResult], folder: Path, watch: Watch
) -> Output:
    """Train and measure; `earlier`: the trials of earlier rounds."""
    clf = TrialClassifier.of(job.config.classifier(number, values, job.device))
    final_stage = job.config.training(number, values).technique.stages(clf.seed)[-1].name
    watcher = PruningWatcher(final_stage, Pruner(earlier) if _prunes(job.config) else None)
    clf.watcher = watcher
    result = TrialResult(number, values, clf.seed, "pruned", watcher.scores)
    watch("training", 0, 0)
    unfinished = resumable_training.unfinished_folder(folder / MODEL)
    try:
        for record in _interrupted_history(unfinished):
            watcher.epoch(record)
        cache = job.root / resumable_training.TEACHER_CACHE
        trained = resumable_training.train(clf, job.corpus, folder / MODEL, True, teacher_cache=cache, replace=True)
    except Pruned:
        remove_folder(unfinished)
        return Output(asdict(result))
    scores = {str(r["epoch"]): r[SCORE] for r in trained.history_ if r["stage"] == final_stage and SCORE in r}
    measured = _measure(job, trained, watch)
    return Output(asdict(TrialResult(number, values, clf.seed, "complete", scores, measured)))


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


def _measure(job: TuneJob, clf: TextClassifier, watch: Watch) -> tuple[float, ...]:
    """The objectives: the score of the selected epoch, and measures of an audit on the validation texts."""
    scores = {SCORE: float(clf.stored_.description.best_epoch[SCORE])}
    if set(job.config.objectives) - {SCORE}:
        runtime = Runtime(watch=watch)
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


class Pruned(Exception):
    """The trial is stopped: its score is below the median of earlier trials."""


class Pruner:
    """Optuna's median pruner over finished trials."""

    def __init__(self, earlier: Sequence[TrialResult]) -> None:
        import optuna

        with quiet_optuna():
            pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP)
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


class PruningWatcher(SilentWatcher):
    """Keeps the score of every epoch of the final stage, and raises `Pruned`."""

    def __init__(self, stage: str, pruner: Pruner | None) -> None:
        self.stage, self.pruner = stage, pruner
        self.scores: dict[str, float] = {}

    def epoch(self, record: Mapping[str, Any]) -> None:
        if record["stage"] != self.stage or SCORE not in record:
            return
        epoch, score = record["epoch"], float(record[SCORE])
        self.scores[str(epoch)] = score
        if self.pruner is not None and self.pruner.should_prune(epoch, score):
            raise Pruned


class TrialClassifier(TextClassifier):
    """A classifier that reports its epochs to the watcher of a trial."""

    watcher: Watcher

    @classmethod
    def of(cls, clf: TextClassifier) -> "TrialClassifier":
        return cls(**clf.get_params(deep=False))

    def _watcher(self) -> Watcher:
        return self.watcher


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
