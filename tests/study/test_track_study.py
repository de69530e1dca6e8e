"""A finished study in a tracking service: a run per model."""

from pathlib import Path

import pytest

from steadygaze.core.errors import UserError
from steadygaze.estimator.text_classifier import load_classifier
from steadygaze.results.report import Report
from steadygaze.study import track_study
from steadygaze.study.study_folder import StudyFolder
from steadygaze.study.trial import TrialResult
from steadygaze.study.tune_config import TuneConfig
from study.tiny import config_with, run


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple]:
    """Run -> its configuration and steps."""
    runs: dict[str, tuple] = {}
    monkeypatch.setattr(track_study, "log_run", lambda track, run, *what: runs.update({f"{track}/{run}": what}))
    return runs


@pytest.mark.slow
def test_every_model_of_a_comparison_is_a_run_with_its_epochs_and_audit(whole: Path, logged, monkeypatch):
    monkeypatch.setattr("steadygaze.training.tracking.find_spec", lambda name: True)
    run(whole, config_with(epochs=2), track="wandb")
    assert list(logged) == ["wandb/whole-vanilla-seed0", "wandb/whole-word-at-seed0"]
    settings, steps = logged["wandb/whole-word-at-seed0"]
    assert settings == {**settings, "technique": "word-at", "seed": 0, "encoder": "average", "hidden": 4}
    history = load_classifier(whole / "cells" / "word-at-0" / "model", "cpu").history_
    assert [step["train/macro-f1"] for step in steps] == [epoch["macro-f1"] for epoch in history]
    report = Report.from_json(whole / "cells" / "word-at-0" / "report.json")
    assert steps[-1]["audit/accuracy"] == report.find("accuracy").value
    assert not any(name.startswith("audit/") for name in steps[0])


def test_every_trial_of_a_search_is_a_run_with_its_scores_and_objectives(logged, tmp_path):
    trials = [
        TrialResult(0, {"weight": 0.5}, 3, "complete", {"2": 0.7, "10": 0.8, "1": 0.6}, (0.8,)),
        TrialResult(1, {"weight": 1.0}, 4, "pruned", {"1": 0.4}),
        TrialResult(2, {"weight": 1.0}, 0, "failed", {}, error="no memory"),
    ]
    track_study.track_search("mlflow", TuneConfig(data="d", technique="word-at"), StudyFolder(tmp_path / "s"), trials)
    steps = {run: what[1] for run, what in logged.items()}
    score, objective = "validation/macro-f1", "objective/macro-f1"
    assert steps["mlflow/s-trial-0"] == [{score: 0.6}, {score: 0.7}, {score: 0.8, objective: 0.8}]
    assert steps["mlflow/s-trial-1"] == [{score: 0.4}]
    assert steps["mlflow/s-trial-2"] == []
    assert logged["mlflow/s-trial-1"][0]["state"] == "pruned"
    assert logged["mlflow/s-trial-1"][0]["weight"] == 1.0


def test_an_unknown_service_is_refused_before_training(tmp_path):
    with pytest.raises(UserError, match="unknown service 'tensorbord'"):
        run(tmp_path / "c", track="tensorbord")
    assert not (tmp_path / "c").exists()
