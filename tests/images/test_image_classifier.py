"""ImageClassifier: scikit-learn's manners, the same for the same seed, a folder that is whole or not at all."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from images.toys import planted
from steadygaze.adapters.fit_explainer import fit_explainer
from steadygaze.core.errors import UserError
from steadygaze.images.image_classifier import ImageClassifier

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")
IMAGES, LABELS = planted(120)
NAMES = np.array(["dark", "bright"])[LABELS]


def tiny(**changes):
    return ImageClassifier(**{"epochs": 4, "batch_size": 16, "device": "cpu", **changes})


@pytest.fixture(scope="module")
def fitted():
    return tiny().fit(IMAGES, NAMES)


def test_it_learns_what_decides(fitted):
    images, labels = planted(100, seed=1)
    assert fitted.score(images, np.array(["dark", "bright"])[labels]) > 0.9
    assert fitted.classes_.tolist() == ["bright", "dark"]
    probabilities = fitted.predict_proba(images)
    assert probabilities.shape == (100, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (fitted.predict(images) == fitted.classes_[probabilities.argmax(1)]).all()
    assert [record["epoch"] for record in fitted.history_] == [1, 2, 3, 4]
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]


def test_the_same_seed_gives_the_same_classifier_and_leaves_the_callers_random_state_alone(fitted):
    before = torch.get_rng_state()
    again = clone(fitted).fit(IMAGES, NAMES)
    assert (torch.get_rng_state() == before).all()
    assert (again.predict_proba(IMAGES) == fitted.predict_proba(IMAGES)).all()
    assert (tiny(seed=1, epochs=1).fit(IMAGES, NAMES).predict_proba(IMAGES) != fitted.predict_proba(IMAGES)).any()


def test_a_prediction_does_not_depend_on_the_batch_or_the_way_an_image_is_given(fitted):
    whole = fitted.predict_proba(IMAGES[:9])
    np.testing.assert_allclose(
        np.concatenate([fitted.predict_proba([image]) for image in IMAGES[:9]]), whole, atol=1e-5
    )
    np.testing.assert_allclose(fitted.predict_proba(IMAGES[:9] / 255), whole, atol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(IMAGES[:9, ..., None]), whole, atol=1e-5)


def test_colors_and_more_classes():
    images = np.random.default_rng(0).random((30, 9, 7, 3))
    clf = tiny(epochs=1).fit(images, np.arange(30) % 3)
    assert clf.predict_proba(images).shape == (30, 3)
    assert set(clf.predict(images)) <= {0, 1, 2}


def test_parameters_are_kept_as_they_were_given():
    clf = tiny(seed=3, learning_rate=0.5)
    assert clone(clf).get_params() == clf.get_params()
    assert clf.set_params(epochs=9).epochs == 9
    with pytest.raises(NotFittedError):
        clf.predict(IMAGES)


def test_it_explains_itself(fitted):
    (first, *_) = fitted.explain(IMAGES[:5], k=3)
    assert first.mask.sum() == 3
    assert first.explainer == "gradient"
    assert fitted.explain(IMAGES[:5], "leave-one-out", 2, patch=4, fill="zero")[0].mask.sum() == 32
    with pytest.raises(UserError, match="setting 'fill'"):
        fitted.explain(IMAGES[:5], fill="red")


@pytest.mark.parametrize("explainer", ["gradient", "leave-one-out", "lime", "random"])
def test_an_image_is_explained_alike_in_batches_of_one_two_and_seven(fitted, explainer):
    """Whatever stands beside it: seven others have another mean."""
    alone, pair, seven = (fitted.explain(IMAGES[:many], explainer, 1, patch=4)[0] for many in (1, 2, 7))
    assert alone.weights.any()
    np.testing.assert_allclose(pair.weights, alone.weights, atol=1e-6)
    np.testing.assert_allclose(seven.weights, alone.weights, atol=1e-6)


def test_patches_are_filled_with_the_mean_of_the_images_it_was_trained_on(fitted, tmp_path):
    """In whole numbers, as those images are.  What is lost is p(image) − p(image with the mean in a corner)."""
    mean = np.rint(IMAGES.mean(0)).astype(np.uint8)
    filled = IMAGES[:1].copy()
    filled[:, :4, :4] = mean[:4, :4]
    (whole,), (without,) = fitted.predict_proba(IMAGES[:1]), fitted.predict_proba(filled)
    lost = (whole - without)[whole.argmax()]
    fitted.save(tmp_path / "model")
    for clf in (fitted, ImageClassifier.load(tmp_path / "model", device="cpu")):
        (explanation,) = clf.explain(IMAGES[:1], "leave-one-out", 1, patch=4)
        np.testing.assert_allclose(explanation.weights[0, 0], lost, atol=1e-6)
        (same,) = clf.explain(IMAGES[:1], "leave-one-out", 1, patch=4, fill="mean")
        (gray,) = clf.explain(IMAGES[:1], "leave-one-out", 1, patch=4, fill="gray")
        assert (same.weights == explanation.weights).all()
        assert (gray.weights != explanation.weights).any()


def test_a_fitted_explainer_explains_the_classifier_it_was_fitted_to(fitted):
    own = {"epochs": 1, "batch_size": 16, "hidden": 8, "approximator": "simple", "patch": 4}
    l2x = fit_explainer(fitted, IMAGES, k=1, settings=own, device="cpu")
    result = fitted.explain(IMAGES[:3], explainer=l2x)
    assert [explanation.to_dict() for explanation in result] == [
        explanation.to_dict() for explanation in l2x.explain(IMAGES[:3])
    ]
    assert result[0].mask.sum() == 16
    for changes in ({"k": 2}, {"patch": 2}, {"fill": "zero"}):
        with pytest.raises(UserError, match="has the k, patch and fill of its fit"):
            fitted.explain(IMAGES[:3], l2x, **changes)
    with pytest.raises(UserError, match="fitted to another model than ImageClassifier"):
        tiny(seed=1, epochs=1).fit(IMAGES, NAMES).explain(IMAGES[:3], l2x)
    with pytest.raises(
        UserError, match=r"the classes \['bright', 'dark'\] in this order; ImageClassifier has \[0, 1\]"
    ):
        tiny(epochs=1).fit(IMAGES, LABELS).explain(IMAGES[:3], l2x)


@pytest.mark.parametrize("strange", [["gradient"], {"gradient": 1}, None, 3])
def test_what_is_no_explainer_gets_a_sentence(fitted, strange):
    with pytest.raises(UserError, match="unknown explainer of images"):
        fitted.explain(IMAGES[:3], strange)


@pytest.mark.parametrize("k", [2.5, "5", True, [3], 0, -1])
def test_k_is_a_whole_number(fitted, k):
    with pytest.raises(UserError, match=r"k is .*; it must be a whole number, 1 or more"):
        fitted.explain(IMAGES[:3], k=k)
    (explanation,) = fitted.explain(IMAGES[:1], k=np.int64(3))
    assert json.loads(json.dumps(explanation.to_dict()))["k"] == 3


@pytest.mark.parametrize(
    ("changes", "X", "y", "sentence"),
    [
        ({}, IMAGES[:-1], NAMES, "found 119 images and 120 labels"),
        ({}, IMAGES, np.zeros(120, int), "have 1 class"),
        ({}, IMAGES, np.linspace(0, 1, 120), "not regressions"),
        ({}, IMAGES[:, :5], NAMES, "images of 5 × 8 pixels are too small"),
        ({}, [*IMAGES[:-1], IMAGES[0][:7]], NAMES, "one size"),
        ({"epochs": 0}, IMAGES, NAMES, "setting 'epochs'"),
        ({"seed": -1}, IMAGES, NAMES, "setting 'seed'"),
        ({"learning_rate": 0}, IMAGES, NAMES, "setting 'learning_rate'"),
        ({"device": "gpu"}, IMAGES, NAMES, "unknown device 'gpu'"),
    ],
)
def test_what_cannot_be_trained_on(changes, X, y, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny(**changes).fit(X, y)


def test_what_cannot_be_predicted_or_scored(fitted):
    with pytest.raises(UserError, match="this classifier has images of 8 × 8 pixels with 1 channels"):
        fitted.predict(IMAGES[:, :7])
    with pytest.raises(UserError, match="unknown label 'brigth': did you mean 'bright'"):
        fitted.score(IMAGES[:1], ["brigth"])
    with pytest.raises(UserError, match="found 2 images and 1 labels"):
        fitted.score(IMAGES[:2], ["dark"])


def test_a_folder_gives_back_the_same_classifier(fitted, tmp_path):
    folder = tmp_path / "model"
    fitted.save(folder)
    fitted.save(folder)  # over itself
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors"]
    loaded = ImageClassifier.load(folder, device="cpu")
    assert (loaded.predict_proba(IMAGES) == fitted.predict_proba(IMAGES)).all()
    assert loaded.get_params() == fitted.get_params()
    assert loaded.history_ == fitted.history_
    assert loaded.predict(IMAGES[:3]).tolist() == fitted.predict(IMAGES[:3]).tolist()


def test_a_folder_that_is_not_ours_is_left_alone(fitted, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="is not a steadygaze model; choose another folder"):
        fitted.save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not JSON"),
        (lambda folder: (folder / "config.json").write_text("[]"), "does not describe an image classifier"),
        (lambda folder: changed(folder, schema=2), "has schema 2"),
        (lambda folder: changed(folder, shape=[1, 8]), "is damaged: setting 'shape"),
        (lambda folder: changed(folder, shape=[1, 8, 10**9]), "is damaged"),
        (lambda folder: changed(folder, shape=[1, 8, 12]), "does not match the network"),
        (
            lambda folder: changed(folder, shape=[1, 16000, 16000]),
            "does not match the network",
        ),  # 2 TB, if it were made
        (lambda folder: halved(folder), "does not match the network"),
        (lambda folder: changed(folder, classes=["one"]), "is damaged: setting 'classes'"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "damaged or cut short"),
        (lambda folder: (folder / "model.safetensors").unlink(), "there is no file"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_sentence(fitted, tmp_path, damage, sentence):
    fitted.save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(UserError, match=sentence):
        ImageClassifier.load(tmp_path / "model", device="cpu")


def changed(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def halved(folder):
    """The same weights in half precision."""
    file = folder / "model.safetensors"
    save_file({name: value.half() for name, value in load_file(file).items()}, file)
