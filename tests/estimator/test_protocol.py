"""The scikit-learn protocol, by a battery of our own: `check_estimator` has no checks for text."""

import copy
import inspect

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from estimator.tiny import LABELS, NOUNS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.encoders import ENCODERS
from steadygaze.techniques.vanilla import Vanilla

OTHER = {  # a value of each parameter that is not its default
    "encoder": "cnn",
    "technique": Vanilla(),
    "seed": 7,
    "epochs": 3,
    "vectors": "glove.txt",
    "settings": {"hidden": 3},
    "batch_size": 5,
    "max_length": 9,
    "class_weight": {"pos": 2.0},
    "synonym_groups": {"good": ["fine"]},
    "device": "cpu",
    "random_state": 3,
    "verbose": False,
    "n_seeds": 2,
    "track": "wandb",
}


def test_the_constructor_stores_its_parameters_and_nothing_else():
    clf = TextClassifier(**OTHER)
    assert vars(clf) == OTHER
    assert all(getattr(clf, name) is value for name, value in OTHER.items())
    assert set(inspect.signature(TextClassifier).parameters) == set(OTHER)


def test_nothing_is_checked_before_fit():
    assert TextClassifier("no such encoder", epochs=-1).epochs == -1


def test_parameters_make_the_round_trip():
    clf = TextClassifier()
    assert clf.set_params(**OTHER) is clf
    assert clf.get_params(deep=False) == OTHER
    assert clone(clf).get_params(deep=False) == OTHER
    with pytest.raises(ValueError, match="unknown parameter 'epoch': did you mean 'epochs'"):
        clf.set_params(epoch=1)


def test_only_encoder_and_technique_may_be_given_by_position():
    assert TextClassifier("cnn", "vanilla").encoder == "cnn"
    with pytest.raises(TypeError, match="positional"):
        TextClassifier("cnn", "vanilla", 0)


def test_fit_returns_the_estimator_and_keeps_its_parameters():
    clf = tiny()
    before = copy.deepcopy(clf.get_params())
    assert clf.fit(TEXTS, LABELS) is clf
    assert clf.get_params() == before


def test_what_is_learned_ends_in_an_underscore():
    learned = set(vars(fitted())) - set(OTHER)
    assert learned == {"classes_", "history_", "other_seeds_", "seed_", "stored_"}


def test_the_third_argument_of_fit_is_the_sample_weight():
    assert list(inspect.signature(TextClassifier.fit).parameters)[1:4] == ["X", "y", "sample_weight"]


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "explain"])
def test_before_fit_there_is_a_not_fitted_error(verb):
    with pytest.raises(NotFittedError):
        getattr(tiny(), verb)(TEXTS)
    with pytest.raises(NotFittedError):
        tiny().score(TEXTS, LABELS)


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        tiny().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_clone_of_a_fitted_estimator_is_unfitted():
    check_is_fitted(fitted())
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(fitted()))


def test_a_failed_fit_leaves_the_earlier_model():
    clf = tiny().fit(TEXTS, LABELS)
    before = clf.predict_proba(TEXTS)
    with pytest.raises(ValueError, match="pass one label for each text"):
        clf.fit(TEXTS, LABELS[:-1])
    assert np.array_equal(clf.predict_proba(TEXTS), before)


def test_fitting_again_forgets_the_first_fit():
    clf = tiny().fit(TEXTS[::-1], ["x", "y"] * 12)
    assert clf.fit(TEXTS, LABELS).classes_.tolist() == ["neg", "pos"]
    assert np.array_equal(clf.predict_proba(TEXTS), tiny().fit(TEXTS, LABELS).predict_proba(TEXTS))


def test_the_tags_are_those_of_a_text_classifier():
    tags = get_tags(TextClassifier())
    assert is_classifier(TextClassifier())
    assert tags.input_tags.string
    assert tags.input_tags.one_d_array
    assert not tags.input_tags.two_d_array
    assert tags.classifier_tags.multi_class
    assert not tags.classifier_tags.multi_label
    assert tags.target_tags.required


def test_the_repr_shows_what_was_changed():
    assert repr(TextClassifier("cnn", epochs=3)) == "TextClassifier(encoder='cnn', epochs=3)"
    assert "TextClassifier" in fitted()._repr_html_()


def test_classes_are_sorted_and_probabilities_stand_in_their_order():
    clf = fitted()
    assert clf.classes_.tolist() == ["neg", "pos"]
    probabilities = clf.predict_proba(TEXTS)
    assert probabilities.shape == (24, 2)
    assert probabilities.dtype == np.float64
    assert np.allclose(probabilities.sum(1), 1)
    assert np.array_equal(clf.predict(TEXTS), clf.classes_[probabilities.argmax(1)])
    assert clf.score(TEXTS, LABELS) == (clf.predict(TEXTS) == np.array(LABELS)).mean() == 1.0


def test_score_weighs_its_texts():
    wrong = ["neg", *LABELS[1:]]
    weights = [9.0, *[1.0] * 23]
    assert fitted().score(TEXTS, wrong) == pytest.approx(23 / 24)
    assert fitted().score(TEXTS, wrong, sample_weight=weights) == pytest.approx(23 / 32)


@pytest.mark.sweep
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("X", [TEXTS, PAIRS], ids=["single", "pair"])
def test_every_encoder_fits_and_predicts(encoder, X):
    probabilities = tiny(encoder).fit(X, LABELS).predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert np.ptp(probabilities[:, 0]) > 0


def test_a_prediction_depends_neither_on_its_company_nor_on_the_order():
    texts = [*TEXTS, "good " * 40, "bad"]
    whole = fitted().predict_proba(texts)
    some = [25, 3, 24, 0]
    assert np.allclose(fitted().predict_proba([texts[i] for i in some]), whole[some], rtol=0, atol=1e-5)
    assert np.allclose([fitted().predict_proba([text])[0] for text in texts], whole, rtol=0, atol=1e-5)
    assert np.allclose(fitted().predict_proba(texts[::-1])[::-1], whole, rtol=0, atol=1e-5)


def test_a_prediction_of_a_pair_depends_on_the_question_alone_of_its_company():
    whole = fitted_pair().predict_proba(PAIRS)
    assert np.allclose([fitted_pair().predict_proba([pair])[0] for pair in PAIRS], whole, rtol=0, atol=1e-5)
    other = fitted_pair().predict_proba([(text, "dull bad music") for text, _ in PAIRS])
    assert np.abs(other - whole).max() > 1e-6


def test_the_seed_determines_the_model_and_random_state_is_its_alias():
    first = tiny(seed=3).fit(TEXTS, LABELS).predict_proba(TEXTS)
    assert np.array_equal(tiny(seed=3).fit(TEXTS, LABELS).predict_proba(TEXTS), first)
    assert np.array_equal(tiny(seed=8, random_state=3).fit(TEXTS, LABELS).predict_proba(TEXTS), first)
    assert not np.array_equal(tiny(seed=4).fit(TEXTS, LABELS).predict_proba(TEXTS), first)


def test_a_random_state_object_gives_the_seed():
    seeds = [tiny(random_state=np.random.RandomState(s)).fit(TEXTS, LABELS).stored_.description.seed for s in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_fitting_and_predicting_leave_the_global_generators_alone():
    import torch

    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    tiny().fit(TEXTS, LABELS).predict(TEXTS)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_a_pipeline_hands_texts_on_and_passes_weights_through():
    def shout(texts):
        return [text.upper() for text in texts]

    pipe = make_pipeline(FunctionTransformer(shout), tiny())
    pipe.fit(TEXTS, LABELS, textclassifier__sample_weight=np.arange(1.0, 25.0))
    alone = tiny().fit(TEXTS, LABELS, sample_weight=np.arange(1.0, 25.0))  # case is folded, so shouting changes nothing
    assert np.array_equal(pipe.predict_proba(TEXTS), alone.predict_proba(TEXTS))
    assert pipe.classes_.tolist() == ["neg", "pos"]


@pytest.mark.parametrize("X", [TEXTS, np.array(TEXTS), PAIRS, np.array(PAIRS)], ids=["list", "array", "pairs", "2-d"])
def test_cross_validation_scores_every_fold(X):
    scores = cross_val_score(tiny(), X * 2 if isinstance(X, list) else np.concatenate([X, X]), LABELS * 2, cv=2)
    assert scores.shape == (2,)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.slow
def test_grid_search_over_epochs_and_settings_with_weights():
    grid = {"epochs": [1, 2], "settings": [SMALL, {**SMALL, "attention": "sparsemax"}]}
    search = GridSearchCV(tiny(batch_size=8), grid, cv=2, error_score="raise")
    search.fit(TEXTS * 2, LABELS * 2, sample_weight=np.ones(48))
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.get_params()["epochs"] == search.best_params_["epochs"]
    assert search.best_estimator_.stored_.description.training["epochs"] == search.best_params_["epochs"]
    assert search.predict(TEXTS).shape == (24,)


def test_weights_change_the_model_and_constant_weights_do_not():
    quick = tiny("average", settings={**SMALL, "learning_rate": 0.01})
    plain, fives, uneven = (
        clone(quick).fit(TEXTS, LABELS, weights).predict_proba(TEXTS)
        for weights in (None, [5] * 24, np.array([9] * 12 + [1] * 12))
    )
    assert np.allclose(fives, plain, rtol=0, atol=1e-6)
    assert (uneven[:, 1] - plain[:, 1]).mean() > 0.01  # more of what weighs more


def test_a_text_of_weight_zero_is_as_if_it_were_not_there():
    weights = np.array([1.0, 0.0] + [1.0] * 11 + [0.0] + [1.0] * 10)
    kept = np.flatnonzero(weights)
    weighted = tiny().fit(TEXTS, LABELS, sample_weight=weights)
    without = tiny().fit([TEXTS[i] for i in kept], [LABELS[i] for i in kept])
    assert np.array_equal(weighted.predict_proba(TEXTS), without.predict_proba(TEXTS))


def test_a_class_weight_is_the_sample_weight_of_its_texts():
    X, y = TEXTS[4:], LABELS[4:]  # 8 and 12
    validation = (TEXTS[:4], ["pos"] * 4)

    def fit(sample_weight=None, **parameters):
        return tiny(**parameters).fit(X, y, sample_weight, validation=validation).predict_proba(X)

    by_hand = fit([20 / (2 * 8)] * 8 + [20 / (2 * 12)] * 12)
    assert np.allclose(fit(class_weight="balanced"), by_hand, rtol=0, atol=1e-6)
    assert np.allclose(fit(class_weight={"pos": 3, "neg": 2}), by_hand, rtol=0, atol=1e-6)
    assert not np.allclose(fit(), by_hand, rtol=0, atol=1e-5)
    assert np.allclose(fit([2] * 8 + [1] * 12, class_weight={"neg": 2}), fit(), rtol=0, atol=1e-6)


def test_a_given_validation_set_chooses_the_epoch():
    clf = tiny(epochs=3).fit(TEXTS[1:-1], LABELS[1:-1], validation=([TEXTS[0], TEXTS[-1]], ["pos", "neg"]))
    assert [record["epoch"] for record in clf.history_] == [1, 2, 3]
    assert all(record["accuracy"] in (0.0, 0.5, 1.0) for record in clf.history_)


def test_few_texts_are_trained_on_whole_with_a_warning():
    with pytest.warns(UserWarning, match="4 texts are too few to hold any out"):
        clf = tiny().fit(TEXTS[10:14], LABELS[10:14])
    assert clf.score(TEXTS[10:14], LABELS[10:14]) in (0.0, 0.25, 0.5, 0.75, 1.0)


def test_a_class_of_one_text_is_learned_not_set_aside():
    for seed in range(6):
        clf = tiny("average", seed=seed).fit([*TEXTS, f"odd {NOUNS[0]}"], [*LABELS, "rare"])
        assert clf.classes_.tolist() == ["neg", "pos", "rare"]


def test_a_technique_may_be_given_ready_made():
    by_name = tiny(technique="vanilla").fit(TEXTS, LABELS)
    ready = tiny(technique=Vanilla()).fit(TEXTS, LABELS)
    assert np.array_equal(by_name.predict_proba(TEXTS), ready.predict_proba(TEXTS))
    assert ready.stored_.description.technique == "vanilla"


def test_a_fitted_estimator_can_be_copied():
    assert np.array_equal(copy.deepcopy(fitted()).predict_proba(TEXTS), fitted().predict_proba(TEXTS))
