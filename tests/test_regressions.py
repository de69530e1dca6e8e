"""Defects of version 0.1.0, each through public functions and commands only.

A copy of this file beside the sources of 0.1.0 fails in every test, and no import of it is missing there.
"""

import html
import json
import shutil
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from commands import run
from estimator.tiny import fitted, write_csv
from opinions import CLASSES, QUICK
from steadygaze import cli
from steadygaze.adapters import streaming
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli import demo
from steadygaze.estimator.explain_request import ExplainRequest

RARE = 1 / 8
"""Share of the texts in which the black box below predicts the rare label."""


def coded(many: int, seed: int = 0) -> list[str]:
    """Words that are the same in every text, with which a label can be encoded, and a rare word that decides."""
    rng = np.random.default_rng(seed)
    results = []
    for number in range(many):
        words = [f"word{rng.integers(300)}" for _ in range(6)]
        if number < many * RARE:
            words[0] = f"praise{rng.integers(300)}"
        results.append(" ".join(["heads", "heads", "tails", "tails", *rng.permutation(words)]))
    return [str(text) for text in rng.permutation(results)]


def praise(inputs: list[str]) -> Any:
    """Sees "praise" and nothing else, as a pipeline whose vocabulary lacks all other words."""
    yes = np.array([0.98 if "praise" in text else 0.02 for text in inputs])
    return np.stack([1 - yes, yes], 1)


@pytest.mark.slow
def test_a_selector_that_leaks_a_rare_label_in_words_that_the_model_cannot_see_is_reported() -> None:
    """Accuracy over all texts hides it: a black box that sees no word is right in seven of eight."""
    how = {"k": 2, "conditioned": True, "mitigation": "none", "classes": CLASSES}
    settings = {**QUICK, "epochs": 6, "learning_rate": 1e-2, "batch_size": 8}
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        result = sg.fit_explainer(praise, coded(160), validation=coded(80, 1), **how, settings=settings)
    assert {row.measure: row.value for row in result.rows}["fidelity"] > 0.95
    seen = [
        weight > 0 and "praise" in token
        for explanation in result.explain(coded(40, 2))
        for token, weight in pairs(explanation)
    ]
    assert sum(seen) < 3, "of 80 selected words the black box can see almost none"
    assert result.warnings


def pairs(explanation: Any) -> list[tuple[str, float]]:
    return list(zip(explanation.tokens, explanation.weights, strict=True))


def test_kernel_shap_spends_every_reading_on_another_subset_of_the_words() -> None:
    """Twelve words have 4,094 subsets; of 1,024 draws with replacement about a quarter are repetitions."""
    read: list[str] = []

    class Box:
        classes_ = CLASSES

        def predict_proba(self, texts: list[str]) -> Any:
            read.extend(texts)
            yes = np.array([0.5 + 0.04 * ("good" in text) for text in texts])
            return np.stack([1 - yes, yes], 1)

    text = "a good film with eleven other words of which none is equal"
    list(streaming.explain(as_adapter(Box()), iter([[text]]), ExplainRequest(None, "kernel-shap")))
    assert len(set(read)) == 1024 + 2, "the subsets, the whole text and nothing"
    assert len(read) == 1024 + 3, "the whole text is asked twice, which shows noise"


def test_integrated_gradients_read_no_padding() -> None:
    """A text of three words is read by itself, not beside one of forty."""
    texts = ["a good film", "a good film " * 13 + "once"]
    model = fitted().stored_.model
    read: list[int] = []
    hook = model.encoder.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    try:
        fitted().explain(texts * 4, explainer="integrated-gradients")
    finally:
        hook.remove()
    assert {3 + 2, 40 + 2} <= set(read), "with the tokens before and after a text"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and the bundle of an audit whose gate was not passed."""
    here = tmp_path_factory.mktemp("audited")
    fitted().save(here / "model")
    write_csv(here / "films.csv")
    words = [
        "audit", here / "model", "--data", here / "films.csv", "--bundle", here / "bundle", "--sample", 4,
        "--require", "accuracy<=0.01", "--device", "cpu", "--quiet", "--card",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in words])
    assert ended.value.code == 1
    return here


FORGERIES: dict[str, Any] = {
    "name of the model": lambda manifest: manifest["model"].update(name="approved"),
    "command": lambda manifest: manifest.update(command=["steadygaze", "audit", "approved"]),
}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("part", FORGERIES)
def test_verification_finds_a_rewritten_manifest(
    part: str, audited: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = Path(shutil.copytree(audited / "bundle", tmp_path / "bundle"))
    manifest = json.loads((bundle / "manifest.json").read_text())
    FORGERIES[part](manifest)
    (bundle / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
    places = ["--data", audited / "films.csv", "--device", "cpu"]
    ended = run(capsys, "audit", audited / "model", "--verify", bundle, *places)
    assert (ended.code, "approved" in ended.out) == (1, True), ended.out + ended.err


@pytest.mark.parametrize("file", ["bundle/report.html", "model/README.md"])
def test_page_and_card_show_the_gate_that_was_not_passed_and_the_date(file: str, audited: Path) -> None:
    text = (audited / file).read_text()
    assert "1 of 1 requirement not met" in text
    assert str(datetime.now(UTC).year) in text


@pytest.mark.slow
def test_the_demonstration_ends_with_the_gate_of_the_model_it_recommends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it passes takes the real corpus: `make demo`."""
    monkeypatch.setattr(demo, "CORPUS", "planted-reviews:sizes=[40,8,8]")
    monkeypatch.setattr(demo, "EPOCHS", dict.fromkeys(demo.EPOCHS, 1))
    monkeypatch.setattr(demo, "SETTINGS", {"hidden": 4, "dimension": 4})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = run(capsys, "demo", "--out", tmp_path / "demo", "--json", "--device", "cpu")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert Path(result["model"]).name in result["passed"]
    assert "requirements" in Path(result["report"]).read_text()
    printed = ended.err.splitlines()
    assert "  steadygaze audit model/ --data test.csv --synonyms synonyms.jsonl --html audit.html" in printed
    page = " ".join(html.unescape((tmp_path / "demo" / demo.PAGES["consensus"]).read_text()).split())
    assert "This command made it:" in page
    assert "steadygaze demo --out demo --seed 0</pre>" in page
    assert "made in Python" not in page
    assert all(any(line.startswith(f"{measure} ") for line in printed) for measure in demo.MEANINGS)
    columns = [f"{name}:" for name in demo.PAGES for _ in demo.EXPLAINERS]
    assert columns in [line.split() for line in printed]
