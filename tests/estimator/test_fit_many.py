"""Several classifiers in one call: each equals its own fit, in stacks and one after another."""

from pathlib import Path

import numpy as np
import pytest

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, diverge, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import resumable_training
from steadygaze.estimator.resumable_training import ClassifierFit, ModelTraining, fit_many, train_many
from steadygaze.training import stacked_stages
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.technique_loop import TrainingJob

pytestmark = pytest.mark.filterwarnings("ignore:there is no table of synonyms")


@pytest.fixture
def stacks(monkeypatch) -> list[int]:
    """Use stacks on a CPU; the sizes of the stacks."""
    sizes: list[int] = []

    class Counted(StackedLoop):
        def __init__(self, loops) -> None:
            sizes.append(len(loops))
            super().__init__(loops)

    monkeypatch.setattr(TrainingJob, "uses_stacks", property(lambda _: True))
    monkeypatch.setattr(stacked_stages, "StackedLoop", Counted)
    return sizes


def small(**settings) -> dict:
    return {"hidden": 4, "dimension": 6, "dropout": 0.0, **settings}


def classifiers() -> list[sg.TextClassifier]:
    return [
        tiny("bilstm", seed=0),
        tiny("bilstm", technique="attention-at", seed=1, settings=small(epsilon=0.1)),
        tiny("bilstm", technique="attention-at", seed=1, settings=small(epsilon=2.0)),
        tiny("bilstm", technique="attention-at", seed=2, settings=small(epsilon=2.0, learning_rate=0.01)),
        tiny("bilstm", seed=3, settings=small(hidden=8)),
        tiny("average", seed=4),
        tiny("bilstm", technique="anchored", seed=5, settings=small()),
    ]


def assert_equal_to_own_fits(together: list[sg.TextClassifier | None], tolerance: float) -> None:
    for classifier, alone in zip(together, classifiers(), strict=True):
        assert classifier is not None
        alone.fit(TEXTS, LABELS)
        assert np.allclose(alone.predict_proba(TEXTS), classifier.predict_proba(TEXTS), rtol=0, atol=tolerance)
        assert alone.stored_.description.technique_settings == classifier.stored_.description.technique_settings


@pytest.mark.slow
def test_each_equals_its_own_fit():
    assert_equal_to_own_fits(fit_many([ClassifierFit(c) for c in classifiers()], TEXTS, LABELS), 0.0)


@pytest.mark.slow
def test_each_equals_its_own_fit_in_a_stack(stacks):
    together = fit_many([ClassifierFit(c) for c in classifiers()], TEXTS, LABELS)
    # three of attention-at; both stages of anchored, and each model with another architecture, alone
    assert sorted(stacks) == [1, 1, 1, 1, 1, 3]
    assert_equal_to_own_fits(together, 1e-6)


def corpus() -> Corpus:
    return Corpus("toy", {"train": [Example(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]})


def test_models_are_trained_together_and_found_again(stacks, tmp_path: Path, monkeypatch):
    trainings = [ModelTraining(tiny(seed=seed), tmp_path / f"m{seed}") for seed in range(3)]
    train_many(trainings, corpus(), resume=True)
    assert stacks == [3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m0", "m1", "m2"]
    alone = resumable_training.train(tiny(seed=2), corpus(), tmp_path / "alone" / "m2", False)
    assert np.allclose(alone.predict_proba(TEXTS), sg.load(tmp_path / "m2").predict_proba(TEXTS), rtol=0, atol=1e-6)
    monkeypatch.setattr(resumable_training, "fit_many", None)
    again = train_many(trainings, corpus(), resume=True)
    assert [clf.seed for clf in again] == [0, 1, 2]


def test_a_model_that_diverges_is_left_out_also_if_its_architecture_is_another(monkeypatch):
    diverge(monkeypatch, {1})
    pair = [tiny(seed=0), tiny(seed=1, settings=small(hidden=8))]
    with pytest.warns(UserWarning, match="seed 1: training diverged.*The other models are not affected"):
        fitted = fit_many([ClassifierFit(clf) for clf in pair], TEXTS, LABELS)
    assert fitted == [pair[0], None]
    with pytest.raises(UserError, match="training diverged"):
        fit_many([ClassifierFit(pair[1])], TEXTS, LABELS)


def test_a_model_that_diverged_beside_others_is_left_out_again_on_resume(monkeypatch, tmp_path: Path):
    diverge(monkeypatch, {1})
    trainings = [ModelTraining(tiny(seed=seed), tmp_path / f"m{seed}") for seed in range(2)]
    for text in ("are not affected", "are finished"):
        with pytest.warns(UserWarning, match=f"seed 1: training diverged.*The other models {text}"):
            models = train_many(trainings, corpus(), resume=True)
        assert [model is not None for model in models] == [True, False]
    with pytest.raises(UserError, match="training diverged"):
        train_many(trainings[1:], corpus(), resume=True)


def test_a_classifier_of_several_seeds_is_refused():
    with pytest.raises(UserError, match="one classifier for each seed"):
        fit_many([ClassifierFit(tiny(n_seeds=2))], TEXTS, LABELS)
