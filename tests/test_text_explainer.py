"""A fitted explainer of texts in its folder: read back it says the same, and goes with no other black box."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import steadygaze as sg
from estimator import tiny
from opinions import CLASSES, QUICK, lexicon, texts
from steadygaze import UserError, explain_fit, load_explainer
from steadygaze.text_explainer import TextExplainer


@pytest.fixture(scope="module")
def fitted() -> TextExplainer:
    return explain_fit(lexicon, texts(60), "l2x", k=2, classes=CLASSES, settings={**QUICK, "epochs": 1})


def test_an_explainer_read_from_its_folder_says_the_same(fitted: TextExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    again = load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)
    given = ["never seen superb words at all", *texts(5, seed=4)]
    assert again.explain(given) == fitted.explain(given)
    assert again.rows == fitted.rows


def test_an_explainer_of_other_classes_is_refused(fitted: TextExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    with pytest.raises(UserError, match="fitted to a black box with the classes"):
        load_explainer(tmp_path / "l2x", lexicon, classes=["yes", "no"])


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("explainer", "l3x", "unknown explainer 'l3x'"),
        ("settings", {"k": 0}, r"config.json is damaged: setting 'k'"),
        ("settings", None, "config.json is damaged: it has no settings"),
        ("settings", {"k": 2, "hidden": 17}, "does not hold the weights of the networks that config.json describes"),
        ("settings", {"k": 2, "hidden": 8192, "dimension": 4096}, "does not hold the weights"),
        ("kind_of_tokens", "pieces", "reads pieces; this one reads words"),
        ("inputs", "images", "config.json is damaged: it has no canvas"),
        ("rows", 5, "config.json is damaged: it has no rows"),
        ("rows", [{"measure": "x"}], "row 'x'"),
        ("history", None, "it has no history"),
        ("inputs", "sounds", "explains sounds, and texts or images are asked about"),
        ("schema", 9, "has schema 9"),
        ("kind", "a model", "is no fitted explainer"),
    ],
)
def test_a_damaged_folder_gets_a_sentence(
    fitted: TextExplainer, tmp_path: Path, key: str, value: Any, why: str
) -> None:
    fitted.save(tmp_path / "l2x")
    file = tmp_path / "l2x" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises(UserError, match=why):
        load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)


def test_an_explainer_of_other_weights_is_refused(tmp_path: Path) -> None:
    one, other = tiny.tiny(), tiny.tiny(seed=1)
    for clf in (one, other):
        clf.fit(tiny.TEXTS, tiny.LABELS)
    explain_fit(one, tiny.TEXTS, k=2, settings={**QUICK, "epochs": 1}).save(tmp_path / "l2x")
    load_explainer(tmp_path / "l2x", one)
    with pytest.raises(UserError, match="fitted to another model, 'model', or to other weights of it"):
        load_explainer(tmp_path / "l2x", other)
    with pytest.raises(UserError, match="is a fitted explainer: load_explainer"):
        sg.load(tmp_path / "l2x")


def test_nothing_is_drawn_where_an_explainer_is_read(fitted: TextExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    before = torch.get_rng_state()
    load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["explain_fit", "load_explainer", "load", "load_images", "ImageClassifier"])
def test_a_public_name_is_the_same_however_often_it_is_used(name: str) -> None:
    """A module of that name would take its place once it is imported."""
    assert callable(getattr(sg, name))
    assert getattr(sg, name) is getattr(sg, name)
