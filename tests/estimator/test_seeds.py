"""Several seeds in one fit: each model equals its own fit, and an audit compares them."""

import json
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import steadygaze as sg
from estimator.tiny import diverge
from steadygaze.core.errors import SeedWarning, UserError
from steadygaze.training.technique_loop import TrainingJob

pytestmark = pytest.mark.filterwarnings("ignore:there is no table of synonyms")
TEXTS = [f"{word} film number {i}" for i in range(24) for word in ("good", "bad")]
LABELS = ["yes", "no"] * 24
SETTINGS = {"hidden": 4, "dimension": 6, "min_df": 1}


def classifier(**parameters) -> sg.TextClassifier:
    return sg.TextClassifier(epochs=2, settings=SETTINGS, device="cpu", **parameters)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("technique", ["vanilla", "anchored"])
def test_each_model_equals_its_own_fit(technique):
    together = classifier(technique=technique, seed=3, n_seeds=3).fit(TEXTS, LABELS)
    assert [other.seed for other in together.other_seeds_] == [4, 5]
    for model in (together, *together.other_seeds_):
        alone = classifier(technique=technique, seed=model.seed).fit(TEXTS, LABELS)
        assert np.array_equal(alone.predict_proba(TEXTS), model.predict_proba(TEXTS))
        assert json.dumps(alone.history_) == json.dumps(model.history_)


@pytest.mark.slow
def test_stacked_seeds_are_ordinary_models(monkeypatch, tmp_path):
    monkeypatch.setattr(TrainingJob, "uses_stacks", property(lambda _: True))
    together = classifier(n_seeds=2, technique="consensus").fit(TEXTS, LABELS)
    (other,) = together.other_seeds_
    alone = classifier(technique="consensus", seed=1).fit(TEXTS, LABELS)
    assert np.allclose(alone.predict_proba(TEXTS), other.predict_proba(TEXTS), atol=1e-6)
    other.save(tmp_path / "m")
    assert np.array_equal(sg.load(tmp_path / "m").predict_proba(TEXTS), other.predict_proba(TEXTS))


def test_an_audit_has_a_row_about_seeds_without_further_training(monkeypatch):
    fitted = classifier(n_seeds=2).fit(TEXTS, LABELS)
    monkeypatch.setattr(sg.TextClassifier, "fit", None)
    report = sg.audit(fitted, TEXTS[:8], LABELS[:8], sample=8)
    rows = [row for row in report.rows if row.measure.endswith("/seeds")]
    assert rows
    assert all(np.isfinite(row.value) for row in rows)


def test_save_warns_about_the_models_of_other_seeds(tmp_path):
    fitted = classifier(n_seeds=2).fit(TEXTS, LABELS)
    with pytest.warns(SeedWarning, match="this model has 1: save each of other_seeds_ separately") as caught:
        fitted.save(tmp_path / "m")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.other_seeds_[0].save(tmp_path / "n")


def test_a_first_seed_that_diverges_is_named_and_the_next_is_kept(monkeypatch):
    diverge(monkeypatch, {3})
    message = "seed 3 diverged: this classifier has the model of seed 4"
    with pytest.warns(SeedWarning, match=message) as caught, pytest.warns(UserWarning, match="seed 3: training"):
        fitted = classifier(encoder="average", seed=3, n_seeds=2).fit(TEXTS, LABELS)
    assert [item.filename for item in caught if item.category is SeedWarning] == [__file__]
    assert (fitted.seed_, fitted.stored_.description.seed, fitted.other_seeds_) == (4, 4, [])


def test_a_fit_whose_seeds_all_diverge_is_an_error(monkeypatch):
    diverge(monkeypatch, {0, 1})
    with pytest.warns(UserWarning, match="training diverged"), pytest.raises(UserError, match="training diverged"):
        classifier(encoder="average", n_seeds=2).fit(TEXTS, LABELS)


@pytest.mark.slow
def test_an_interrupted_fit_of_several_seeds_is_resumed(tmp_path):
    expected = classifier(n_seeds=2).fit(TEXTS, LABELS)
    fitted = classifier(n_seeds=2).fit(TEXTS, LABELS, checkpoint=tmp_path / "run")
    again = classifier(n_seeds=2).fit(TEXTS, LABELS, checkpoint=tmp_path / "run", resume=True)
    for model in (fitted, again):
        for own, right in zip(model.other_seeds_, expected.other_seeds_, strict=True):
            assert np.array_equal(own.predict_proba(TEXTS), right.predict_proba(TEXTS))


@pytest.mark.parametrize("n_seeds", [0, -1, 2.0, True, "3"])
def test_a_wrong_number_of_seeds_is_refused(n_seeds):
    with pytest.raises(UserError, match="n_seeds must be a whole number from 1 up"):
        classifier(n_seeds=n_seeds).fit(TEXTS, LABELS)


def test_clones_keep_the_number_of_seeds():
    assert clone(classifier(n_seeds=4)).n_seeds == 4


def test_the_messages_of_a_seed_name_it():
    with pytest.warns(UserWarning, match="The model of seed 1 predicts the label"):
        classifier(n_seeds=2, seed=0, vectors=None).set_params(learning_rate=1e-9).fit(TEXTS, LABELS)
