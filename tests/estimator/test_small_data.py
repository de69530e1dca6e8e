"""Defaults below 2,000 texts."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from steadygaze.core.errors import UserError
from steadygaze.data import word_vectors
from steadygaze.estimator import small_data
from steadygaze.estimator.inputs import Split, read_split
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.estimator.train_config import train_config

FILLER = ["the", "plot", "of", "this", "film", "and", "its", "music", "was", "a"]
POSITIVE, NEGATIVE = ["good", "fine", "great", "lovely"], ["bad", "dull", "poor", "weak"]


def corpus(n, seed=0):
    """The deciding word is anywhere: with a fixed place attention would follow the position."""
    random = np.random.default_rng(seed)
    labels = (np.arange(n) % 2).tolist()
    texts = []
    for y in labels:
        words = random.choice(FILLER, 12).tolist()
        words.insert(random.integers(len(words) + 1), str(random.choice(POSITIVE if y else NEGATIVE)))
        texts.append(" ".join(words))
    return texts, labels


def classifier_of(**parameters):
    return train_config(TextClassifier(**parameters).get_params())


@pytest.fixture(autouse=True)
def no_packaged_vectors(monkeypatch):
    monkeypatch.setattr(word_vectors, "PACKAGE", "no_such_package_at_all")


def is_small(n, **parameters):
    return small_data.resolve(classifier_of(**parameters), read_split(*corpus(n))).text.small_data


@pytest.mark.slow
def test_the_number_of_texts_decides():
    assert is_small(small_data.SMALL - 1)
    assert is_small(100)
    assert not is_small(small_data.SMALL)
    assert not is_small(99)
    assert is_small(small_data.SMALL, settings={"small_data": True})
    assert is_small(150, settings={"small_data": False}) is False


def test_an_order_for_many_texts_does_not_change():
    plain = classifier_of()
    assert small_data.resolve(plain, read_split(*corpus(small_data.SMALL))) is plain


def test_an_explicit_setting_is_kept():
    result = small_data.resolve(classifier_of(settings={"min_df": 4, "select": "best"}), read_split(*corpus(140)))
    assert (result.text.min_df, result.training.select) == (4, "best")
    assert (result.training.schedule, result.architecture.word_dropout) == ("linear", 0.3)
    assert (result.training.batch_size, result.architecture.hidden) == (8, 64)
    result = small_data.resolve(classifier_of(), read_split(*corpus(small_data.FEW)))
    assert (result.training.batch_size, result.architecture.hidden) == (32, 128)
    result = small_data.resolve(classifier_of(batch_size=32, settings={"hidden": 128}), read_split(*corpus(140)))
    assert (result.training.batch_size, result.architecture.hidden) == (32, 128)


@pytest.mark.parametrize("technique", ["rnp", "a2r"])
def test_rationalizers_and_pairs_keep_the_usual_defaults(technique):
    assert not is_small(140, technique=technique)
    with pytest.raises(UserError, match="small_data=true does not support the technique"):
        is_small(140, technique=technique, settings={"small_data": True})
    pairs = Split(*[corpus(140)[0]] * 2, corpus(140)[1])
    assert small_data.resolve(classifier_of(), pairs) == classifier_of()


def test_installed_vectors_are_used_if_they_have_the_words(monkeypatch):
    split = read_split(*corpus(140))
    assert small_data.resolve(classifier_of(), split).vectors is None  # the package is not installed
    for share, vectors in ((0.79, None), (0.8, "glove-50d")):
        monkeypatch.setattr(small_data, "packaged_coverage", lambda frequency, share=share: share)
        assert small_data.resolve(classifier_of(), split).vectors == vectors
    assert small_data.resolve(classifier_of(settings={"small_data": True}), split).vectors is None
    assert small_data.resolve(classifier_of(vectors="own.txt"), split).vectors == "own.txt"
    assert small_data.resolve(classifier_of(settings={"small_data": False}), split).vectors is None


@pytest.mark.parametrize("share", [0.79, 0.8])
def test_vectors_that_the_user_did_not_name_are_announced(monkeypatch, share):
    split, lines = read_split(*corpus(140)), []
    monkeypatch.setattr(small_data, "packaged_coverage", lambda frequency: share)
    watcher = SimpleNamespace(say=lines.append, detail=lambda line: None)
    small_data.announce(small_data.resolve(classifier_of(), split), split, watcher)
    announced = (
        "word vectors: glove-50d, because the extra glove is installed (--set small_data=true trains without them)"
    )
    assert (announced in lines) == (share == 0.8)
    named = small_data.resolve(classifier_of(vectors="glove-50d"), split)
    lines.clear()
    small_data.announce(named, split, watcher)
    assert lines
    assert announced not in lines


@pytest.mark.slow
def test_a_small_dataset_is_learned_reported_saved_and_reproduced(tmp_path, capsys):
    texts, labels = corpus(120)
    texts[0] += " once"
    settings = {"hidden": 16, "learning_rate": 1e-2, "min_df": 2}  # min_df as in large datasets
    fitted = TextClassifier("average", settings=settings, epochs=12, device="cpu", verbose=True).fit(texts, labels)
    shown = " ".join(capsys.readouterr().err.split())
    assert "fewer than 2,000 texts: training uses the settings for small datasets (-v lists them" in shown
    assert "the model of the last epoch is saved, if it is not degenerate: the validation texts are too few" in shown
    assert "select=last" not in shown, "only -v lists the settings"
    assert fitted.score(*corpus(60, seed=1)) > 0.9
    description = fitted.stored_.description
    assert description.text["small_data"] is True
    assert description.text["label_vectors"] is True
    assert description.architecture.dimension == 100
    assert description.best_epoch["epoch"] == len(fitted.history_) == 12
    fitted.save(tmp_path / "model")
    loaded = load_classifier(tmp_path / "model", device="cpu")
    assert "'small_data': True" in repr(loaded)
    repeated = clone(loaded).fit(texts, labels)
    assert repeated.stored_.description.text["min_df"] == 2
    np.testing.assert_array_equal(repeated.predict_proba(texts), fitted.predict_proba(texts))


def test_a_score_near_a_guess_brings_the_commands_of_pretrained_models():
    split = read_split(*corpus(140))
    assert "--encoder transformer:minilm" in small_data.advice(classifier_of(), split, 0.55, 2)
    assert small_data.advice(classifier_of(), split, 0.65, 2) is None
    advice = small_data.advice(classifier_of(), split, 0.55, 2)
    assert "macro-F1 of 0.55 is near that of a guess, 0.50." in advice
    assert "guess, 0.33." in small_data.advice(classifier_of(), split, 0.35, 4), "two of the four classes are here"
    assert "training with 100 to 1,999 texts then uses them by default, other trainings with --vectors" in advice
    assert "--vectors" not in small_data.advice(classifier_of(vectors="own.txt"), split, 0.4, 2)
    assert small_data.advice(classifier_of(encoder="transformer:minilm"), split, 0.4, 2) is None
    for encoder, name in (("bilstm", "learning_rate"), ("transformer:minilm", "encoder_learning_rate")):
        stalled = small_data.advice(classifier_of(encoder=encoder), split, 0.4, 2, stalled=True)
        assert f"loss hardly changed: try a higher {name} (--set)" in stalled
    skewed = Split(["a"] * 10, None, [0] * 9 + [1])
    assert small_data.advice(classifier_of(), skewed, 0.59, 2) is not None  # all 0: F1 of 18/19 and 0, macro-F1 9/19
    assert small_data.advice(classifier_of(), skewed, 0.61, 2) is None
