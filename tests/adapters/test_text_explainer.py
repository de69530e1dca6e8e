"""A fitted explainer of texts in its folder: it explains the same after loading, and belongs to one black box."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import steadygaze as sg
from estimator import tiny
from opinions import CLASSES, QUICK, lexicon, texts
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.fit_explainer import fit_explainer, load_explainer
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.core.errors import UserError
from steadygaze.estimator.explain_texts import ResolvedRequest, explain_texts
from steadygaze.explainers.learned.text_inputs import Vocabulary

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")


@pytest.fixture(scope="module")
def fitted() -> TextExplainer:
    return fit_explainer(lexicon, texts(60), "l2x", k=2, classes=CLASSES, settings={**QUICK, "epochs": 1})


@pytest.mark.slow
def test_an_explainer_loaded_from_its_folder_explains_the_same(fitted: TextExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    again = load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)
    inputs = ["never seen superb words at all", *texts(5, seed=4)]
    assert again.explain(inputs) == fitted.explain(inputs)
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
        ("settings", {"k": 2, "hidden": 17}, "does not match the networks that config.json describes"),
        ("settings", {"k": 2, "hidden": 8192, "dimension": 4096}, "does not match the networks"),
        ("kind_of_tokens", "pieces", "reads pieces; this one reads words"),
        ("inputs", "images", "config.json is damaged: it has no canvas"),
        ("rows", 5, "config.json is damaged: it has no rows"),
        ("rows", [{"measure": "x"}], "row 'x'"),
        ("history", None, "it has no history"),
        ("inputs", "sounds", "explains sounds; use an explainer of texts or images"),
        ("schema", 9, "has schema 9"),
        ("kind", "a model", "is not a fitted explainer"),
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


@pytest.mark.slow
def test_an_explainer_of_other_weights_is_refused(tmp_path: Path) -> None:
    model, other = tiny.tiny("bilstm"), tiny.tiny("bilstm", seed=1)
    for clf in (model, other):
        clf.fit(tiny.TEXTS, tiny.LABELS)
    fit_explainer(model, tiny.TEXTS, k=2, settings={**QUICK, "epochs": 1}).save(tmp_path / "l2x")
    load_explainer(tmp_path / "l2x", model)
    with pytest.raises(UserError, match="fitted to another model, 'model', or to other weights of it"):
        load_explainer(tmp_path / "l2x", other)
    with pytest.raises(UserError, match="is a fitted explainer; load it with load_explainer"):
        sg.load(tmp_path / "l2x")


def test_a_word_can_be_taken_out_only_in_ways_that_are_known(fitted: TextExplainer) -> None:
    with pytest.raises(UserError, match="unknown removal 'mask'"):
        fitted.measure(texts(20), removal="mask")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="lexicon reads text, which has no padding"):
        fitted.measure(texts(20), removal="pad")
    with pytest.raises(UserError, match="lexicon reads text"):
        fit_explainer(lexicon, texts(40), "cxplain", k=2, classes=CLASSES, settings={"removal": "pad"})
    ids = fit_explainer(tiny.fitted(), tiny.TEXTS, k=2, settings={**QUICK, "epochs": 1})
    assert ids.measure(tiny.TEXTS, removal="pad")[0].settings["removal"] == "pad"


def test_a_signature_has_all_that_a_number_depends_on(fitted: TextExplainer) -> None:
    own = fitted.rows[0].settings
    assert own["settings"] == "batch_size=16,dimension=12,hidden=16,learning_rate=0.005"
    assert (own["seed"], own["epochs"], own["approximator"]) == (0, 1, "simple")
    here, there = (fitted.measure(texts(20, seed=seed)) for seed in (1, 2))
    assert here[0].settings["data"] != there[0].settings["data"]
    assert {**here[0].settings, "data": own["data"]} == own
    other = fit_explainer(lexicon, texts(60, seed=1), k=2, seed=3, classes=CLASSES, settings={**QUICK, "epochs": 1})
    changed = {key for key, value in other.rows[0].settings.items() if value != own[key]}
    assert changed == {"seed", "fitted-to", "data"}


def test_nothing_is_drawn_where_an_explainer_is_read(fitted: TextExplainer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "l2x")
    before = torch.get_rng_state()
    load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_is_not_made_anew_for_every_text_and_new_words_are_added(
    fitted: TextExplainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[int] = []
    own = Vocabulary.token_ids

    def counted(self: Vocabulary, tokens: list[str]) -> torch.Tensor:
        queries.append(len(tokens))
        return own(self, tokens)

    again = replace(fitted)
    known = len(again.black_box.tokens.vocabulary)
    monkeypatch.setattr(Vocabulary, "token_ids", counted)
    first = again.explain("superb novelties word1 word2")  # the last word of a text has no space behind it
    assert queries == [known, len(again.black_box.tokens.vocabulary) - known]
    assert again.explain("superb novelties word1 word2") == first == replace(fitted).explain(first.text)
    assert len(queries) == 3, "once more for the other one alone"


@pytest.mark.usefixtures("fewer_protocols")
def test_an_audit_and_a_classifier_take_what_was_fitted(tmp_path: Path) -> None:
    clf, other = (tiny.tiny("bilstm", seed=seed).fit(tiny.TEXTS, tiny.LABELS) for seed in (0, 1))
    own = fit_explainer(clf, tiny.TEXTS, k=2, settings={**QUICK, "epochs": 1})
    assert clf.explain(tiny.TEXTS[:3], explainer=own) == own.explain(tiny.TEXTS[:3])
    report = sg.audit(clf, tiny.TEXTS, tiny.LABELS, explainers=[own])
    assert "l2x" in {row.settings.get("explainer") for row in report.rows}
    for query in (
        lambda: other.explain(tiny.TEXTS, explainer=own),
        lambda: sg.audit(other, tiny.TEXTS, explainers=[own]),
    ):
        with pytest.raises(UserError, match="l2x was fitted to another model"):
            query()


def test_of_a_function_the_words_are_found_whatever_their_ids(fitted: TextExplainer) -> None:
    """An audit reads the texts anew, and gives them ids of its own."""
    strange = as_adapter(lexicon, classes=CLASSES)
    inputs = ["zebras were superb and word1 was not", *texts(5, seed=4)]
    request = ResolvedRequest(fitted.for_adapter(strange), "l2x")
    arguments = strange.model, strange.tokens, strange.classes, inputs, None
    assert [explanation.weights for explanation in explain_texts(*arguments, request)] == [
        explanation.weights for explanation in fitted.explain(inputs)
    ]


@pytest.mark.parametrize("name", ["fit_explainer", "load_explainer", "load", "load_images", "ImageClassifier"])
def test_a_public_name_is_the_same_however_often_it_is_used(name: str) -> None:
    """A module of that name would take its place once it is imported."""
    assert callable(getattr(sg, name))
    assert getattr(sg, name) is getattr(sg, name)
