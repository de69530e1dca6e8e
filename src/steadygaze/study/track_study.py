"""Log a finished comparison or search to a tracking service: a run per model, with its settings, epochs and scores."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from steadygaze.estimator.text_classifier import load_classifier
from steadygaze.study.cells import MODEL, StudyCell
from steadygaze.study.compare_config import CompareConfig
from steadygaze.study.study_folder import StudyFolder
from steadygaze.study.study_options import SCORE
from steadygaze.study.trial import TrialResult
from steadygaze.study.tune_config import TuneConfig, objectives
from steadygaze.training.tracking import flat_numbers, log_run


def track_comparison(
    track: str, config: CompareConfig, folder: StudyFolder, cells: Mapping[str, Sequence[StudyCell]]
) -> None:
    """Log every epoch of every model, and at the last epoch the rows of its audit."""
    for cell in (cell for seeds in cells.values() for cell in seeds):
        clf = load_classifier(folder.cell(cell.technique, cell.seed) / MODEL, "cpu")
        steps = [flat_numbers(epoch, str(epoch["stage"])) for epoch in clf.history_]
        steps[-1] |= flat_numbers({row.measure: row.value for row in cell.report.rows if isfinite(row.value)}, "audit")
        settings = {"technique": cell.technique, "seed": cell.seed, "data": config.data, "encoder": config.encoder}
        values = {**config.settings, **config.settings_for.get(cell.technique, {})}
        log_run(track, f"{folder.path.name}-{cell.technique}-seed{cell.seed}", {**settings, **values}, steps)


def track_search(track: str, config: TuneConfig, folder: StudyFolder, trials: Sequence[TrialResult]) -> None:
    """Log the validation score of every epoch of every trial, and at the last epoch its objectives."""
    names = [objective.measure for objective in objectives(config)]
    fixed: dict[str, Any] = {"technique": config.technique, "data": config.data, "encoder": config.encoder}
    for trial in trials:
        steps = [{f"validation/{SCORE}": score} for _, score in sorted(trial.scores.items(), key=lambda s: int(s[0]))]
        for name, value in zip(names, trial.values, strict=False):  # a pruned or failed trial has none
            steps[-1][f"objective/{name}"] = value
        settings = {**fixed, "seed": trial.seed, "state": trial.state, **config.settings, **trial.settings}
        log_run(track, f"{folder.path.name}-trial-{trial.number}", settings, steps)
