"""sg.fit_explainer on images: dispatched by what they are, measured, saved and read back with the black box."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import steadygaze as sg
from images.toys import PLACE, knows, planted, straight
from opinions import lexicon, texts
from steadygaze.adapters import text_explainer
from steadygaze.adapters.fit_explainer import are_images, fit_explainer, load_explainer
from steadygaze.core.errors import UserError
from steadygaze.explainers.learned.fit_config import fit_config
from steadygaze.images.image_black_box import ImageBlackBox
from steadygaze.images.image_explainer import ImageExplainer, image_fit_config

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_reader_in_module", "short_probe_training")
CLASSES = ["dark", "bright"]
IMAGES, TEST = planted(400)[0], planted(40, seed=1)[0]
QUICK = {"epochs": 4, "batch_size": 32, "hidden": 32, "approximator": "simple", "patch": 2, "reader": True}
WORTH = {"epochs": 4, "batch_size": 16, "hidden": 16, "members": 2, "learning_rate": 3e-3, "patch": 2, "fill": "gray"}
ONCE = {**QUICK, "epochs": 1}


@pytest.fixture(scope="module")
def fitted() -> ImageExplainer:
    return fit_explainer(knows, IMAGES, k=1, classes=CLASSES, settings=QUICK)


@pytest.fixture(scope="module")
def worth() -> ImageExplainer:
    return fit_explainer(knows, IMAGES[:100], "cxplain", k=1, classes=CLASSES, settings=WORTH)


def dicts_of(fitted: ImageExplainer, images: Any = TEST) -> list[dict[str, Any]]:
    return [explanation.to_dict() for explanation in fitted.explain(images)]


@pytest.mark.slow
def test_the_patch_that_decides_is_found_by_either_kind(fitted: ImageExplainer, worth: ImageExplainer) -> None:
    for explainer, name in ((fitted, "l2x"), (worth, "cxplain")):
        explained = explainer.explain(TEST)
        assert (explainer.name, explained[0].explainer) == (name, name)
        assert np.mean([each.top()[0][0] == PLACE for each in explained]) > 0.95
        assert [each.label for each in explained] == [CLASSES[i] for i in knows(TEST).argmax(1)]


@pytest.mark.slow
def test_how_well_it_does_is_measured_on_images_it_was_not_fitted_to(
    fitted: ImageExplainer, worth: ImageExplainer
) -> None:
    rows = {row.measure: row for row in fitted.rows}
    assert {"fidelity", "probe-loss", "independent-reader-accuracy", "leakage-gap"} < set(rows)
    assert rows["post-hoc-accuracy"].n == 40
    assert rows["post-hoc-accuracy"].value > 0.95 > 0.75 > rows["post-hoc-accuracy/unselected"].value
    known = {"explainer": "l2x", "black-box": "knows", "k": 1, "conditioned": 0, "mitigation": "none", "patch": 2}
    assert known.items() <= rows["fidelity"].settings.items()
    assert rows["fidelity"].settings["fill"] == "mean"
    assert {row.measure for row in worth.rows} == {"post-hoc-accuracy", "post-hoc-accuracy/unselected"}
    assert worth.rows[0].settings["fill"] == "gray"
    again = {row.measure: row.value for row in fitted.measure(TEST)}
    assert again["post-hoc-accuracy"] > 0.95
    assert fitted.warnings == worth.warnings == []


@pytest.mark.parametrize(
    ("inputs", "images"),
    [
        (IMAGES, True),
        (np.zeros((4, 6, 6, 3)), True),
        (list(IMAGES[:3]), True),
        (tuple(IMAGES[:3]), True),
        (torch.zeros(4, 6, 6), True),
        (np.array([*IMAGES[:2], None], object)[:2], True),
        (np.zeros((6, 6)), True),  # one image: a sentence about images is what helps
        (["a text"], False),
        ([], False),
        (np.array(["a", "b"]), False),
        (np.array([["a", "why?"]]), False),
        (np.array([("a", "why?"), None], object), False),
        ([("a", "why?")], False),
        (np.zeros(3), False),
    ],
)
def test_images_are_distinguished_from_texts(inputs: Any, images: bool) -> None:
    assert are_images(inputs) == images


def test_defaults_are_those_of_the_papers() -> None:
    nothing = None, None, None, None
    how, canvas = image_fit_config("l2x", *nothing)
    assert (how.k, how.approximator, how.epochs, canvas.patch, canvas.fill) == (25, "cnn", 12, 1, "mean")
    assert image_fit_config("cxplain", *nothing)[0].k == 25
    assert [fit_config(name, *nothing).k for name in ("l2x", "vibi", "ail", "cxplain")] == [10] * 4
    assert image_fit_config("l2x", 3, None, None, {"approximator": "simple"})[0].k == 3


def test_images_in_a_list_and_images_for_validation() -> None:
    fitted = fit_explainer(knows, list(IMAGES[:30]), k=1, classes=CLASSES, settings=ONCE, validation=TEST)
    assert fitted.rows[0].n == len(TEST)
    assert dicts_of(fitted, list(TEST)) == dicts_of(fitted)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", ["l2x", "conditioned", "ail", "cxplain"])
def test_an_explainer_loaded_from_its_folder_explains_the_same(kind: str, tmp_path: Path) -> None:
    method = {"conditioned": "vibi"}.get(kind, kind)
    own = {"members": 2, "epochs": 1, "patch": 4} if kind == "cxplain" else {**ONCE, "patch": 4, "fill": "zero"}
    query = True if kind == "conditioned" else None
    fitted = fit_explainer(
        knows,
        IMAGES[:40],
        method,
        k=1,
        conditioned=query,
        classes=CLASSES,
        settings=own,
        seed=3,
        keep=tmp_path / "kept",
    )
    fitted.save(tmp_path / "here")
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["config.json", "model.safetensors"]
    before = torch.get_rng_state()
    again = load_explainer(tmp_path / "here", knows, classes=CLASSES)
    assert torch.equal(torch.get_rng_state(), before)
    assert dicts_of(again) == dicts_of(fitted)
    assert (again.rows, again.facts, again.learned.config) == (fitted.rows, fitted.facts, fitted.learned.config)
    assert again.rows[0].settings.items() >= again.facts.items() >= {"seed": 3}.items()
    assert again.measure(TEST) == fitted.measure(TEST)
    assert (tmp_path / "kept" / "train" / "000000.npy").is_file()


def test_an_image_classifier_is_saved_loaded_and_explained(tmp_path: Path) -> None:
    images, labels = planted(60)
    clf = sg.ImageClassifier(epochs=1, batch_size=16).fit(images, labels)
    clf.save(tmp_path / "model")
    again = sg.load(tmp_path / "model")
    assert isinstance(again, sg.ImageClassifier)
    assert np.array_equal(again.predict_proba(TEST), clf.predict_proba(TEST))
    fitted = fit_explainer(tmp_path / "model", images, k=1, settings=ONCE)
    assert fitted.black_box.classes == (0, 1)
    fitted.save(tmp_path / "l2x")
    assert dicts_of(load_explainer(tmp_path / "l2x", clf)) == dicts_of(fitted)
    other = sg.ImageClassifier(epochs=1, batch_size=16, seed=1).fit(images, labels)
    with pytest.raises(UserError, match="fitted to another model, 'ImageClassifier', or to other weights of it"):
        load_explainer(tmp_path / "l2x", other)
    with pytest.raises(UserError, match="is a fitted explainer; load it with load_explainer"):
        sg.load(tmp_path / "l2x")


def test_cached_answers_of_one_network_are_not_used_for_another(tmp_path: Path) -> None:
    """Both are called Sequential, or have another common name: their weights distinguish them."""
    arguments = {"inputs": IMAGES[:30], "k": 1, "classes": CLASSES, "keep": tmp_path, "validation": TEST}
    network = straight(side=8).float()
    for explainer, own in (("l2x", ONCE), ("cxplain", {"members": 1, "epochs": 1, "patch": 4})):
        fit_explainer(network, explainer=explainer, settings=own, **arguments)
    other = straight(side=8).float()
    torch.nn.init.zeros_(next(other.parameters()))
    with pytest.raises(UserError, match="has answers of another black box, or of other weights of it"):
        fit_explainer(other, settings=ONCE, **arguments)
    shutil.rmtree(tmp_path / "train")
    shutil.rmtree(tmp_path / "held-out")
    with pytest.raises(UserError, match="train-effects has answers of another black box"):
        fit_explainer(other, explainer="cxplain", settings={"members": 1, "epochs": 1, "patch": 4}, **arguments)


def test_a_network_is_a_black_box() -> None:
    fitted = fit_explainer(straight(side=8).float(), IMAGES[:40], k=1, classes=CLASSES, settings=ONCE)
    assert isinstance(fitted.black_box, ImageBlackBox)
    assert len(fitted.explain(TEST)) == len(TEST)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("shape", [1, 8], "config.json is damaged: channels, height and width"),
        *(("shape", [side, 8, 8], "config.json is damaged: channels, height and width") for side in (True, 1.0, "1")),
        ("shape", [1, 8, 10], "does not match the networks"),
        ("shape", [1, 16000, 16000], "does not match the networks"),
        ("shape", [1, 1 << 40, 8], "config.json is damaged: channels, height and width"),
        ("shape", [1, 9, 8], "config.json is damaged: .* cannot be divided into patches of 2 × 2"),
        ("canvas", {"patch": 0}, "config.json is damaged: setting 'patch'"),
        ("canvas", {"patch": 4, "fill": "mean"}, "does not match the networks"),
        ("canvas", None, "config.json is damaged: it has no canvas"),
        ("settings", {"k": 1, "hidden": 33}, "does not match the networks"),
        ("settings", {"k": 17}, "config.json is damaged: k is 17, but an image"),
        ("classes", ["bright", "dark"], "fitted to a black box with the classes"),
        ("inputs", "texts", r"there is no file .*vocabulary\.json"),
    ],
)
def test_a_damaged_folder_gets_a_sentence(
    fitted: ImageExplainer, tmp_path: Path, key: str, value: Any, why: str
) -> None:
    fitted.save(tmp_path / "l2x")
    file = tmp_path / "l2x" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises(UserError, match=why):
        load_explainer(tmp_path / "l2x", knows, classes=CLASSES)


def test_a_black_box_with_a_constant_prediction_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="predicts the same label for all evaluation texts"):
        result = fit_explainer(
            lambda inputs: np.tile([0.9, 0.1], (len(inputs), 1)), IMAGES[:40], k=1, classes=CLASSES, settings=ONCE
        )
    assert any("predicts the same label for all" in sentence for sentence in result.warnings)


def test_the_wrong_kind_of_thing_gets_a_sentence(fitted: ImageExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    with pytest.raises(UserError, match="explains images; use an explainer of texts"):
        text_explainer.load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)
    with pytest.raises(UserError, match="this explainer has images of 8 × 8 pixels"):
        fitted.explain(np.zeros((2, 9, 9), np.uint8))
    with pytest.raises(UserError, match="images must be arrays"):
        fitted.explain(texts(3))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"inputs": [np.zeros((8, 8)), np.zeros((8, 9))] * 20}, "images must all have one size"),
        ({"inputs": IMAGES[:5]}, "found 5 images; an explainer needs at least 20"),
        ({"inputs": IMAGES[:1], "validation": IMAGES}, "found 1 images; an explainer needs at least 20"),
        ({"validation": (IMAGES[:20], [0] * 20)}, "validation must be images, like the inputs, without labels"),
        ({"inputs": IMAGES[0]}, "put a single image in a list"),
        ({"validation": np.zeros((20, 9, 9), np.uint8)}, "the training set has images of 8 × 8"),
        ({"settings": {"patch": 3}}, "cannot be divided into patches of 3 × 3"),
        ({"settings": {"pach": 2}}, "did you mean 'patch'"),
        ({"settings": {"fill": "blue"}}, "setting 'fill'"),
        ({"settings": {"dimension": 3}}, "setting 'dimension' is for texts"),
        ({"settings": {"removal": "pad"}, "explainer": "cxplain"}, "setting 'removal' is for texts"),
        ({"k": 65}, "k is 65, but an image of 8 × 8 pixels has 64 patches"),
        ({"k": 0}, "setting 'k'"),
        ({"mitigation": "random-query"}, "random-query needs a selector that is conditioned on the prediction"),
        ({"explainer": "cxplain", "conditioned": True}, "cxplain does not select units in training"),
        ({"black_box": "nowhere"}, "nowhere is not an image classifier"),
        ({"black_box": 3}, "cannot explain 3"),
        ({"classes": None}, "pass their names as classes="),
        ({"black_box": lambda inputs: knows(inputs) * np.nan}, "finite"),
    ],
)
def test_bad_input_gets_a_sentence(arguments: dict[str, Any], why: str) -> None:
    usual = {"black_box": knows, "inputs": IMAGES[:40], "classes": CLASSES, "k": 1}
    with pytest.raises(UserError, match=why):
        fit_explainer(**{**usual, **arguments})
