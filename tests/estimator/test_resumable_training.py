"""Runs that were interrupted, finished or started twice: nothing is lost, deleted or revived by surprise."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import commands
import steadygaze as sg
from estimator.model_folder.compare import contents
from estimator.tiny import LABELS, TEXTS, fitted, tiny, write_csv
from images.toys import planted
from opinions import lexicon
from opinions import texts as opinions
from robustness.harness import snapshot
from steadygaze.adapters import streaming
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli import demo
from steadygaze.core import atomic_files
from steadygaze.core.errors import UserError
from steadygaze.estimator import resumable_training
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.images.image_classifier import ImageClassifier
from study.tiny import config_with as comparison_order
from study.tiny import run as run_comparison

QUICK = ["--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--device", "cpu", "--encoder", "average"]
Run = Callable[..., commands.Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: commands.run(capsys, *arguments)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "films.csv")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_train_refuses_the_folder_it_runs_in_before_training(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty" / "below").mkdir(parents=True)
    monkeypatch.setattr(resumable_training, "train", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.chdir(tmp_path / "empty" / "below")
    for out in (".", "..", tmp_path / "empty", "../below"):
        ended = run("train", data, "--out", out, *QUICK)
        assert (ended.code, "is the folder that the command runs in" in ended.err) == (2, True), ended.err
    assert names(tmp_path) == ["empty", "films.csv"]


@pytest.mark.parametrize("name", ["*", "m[0-9]", "?"])
def test_an_output_named_as_a_pattern_deletes_no_other_run(run: Run, data: Path, tmp_path: Path, name: str) -> None:
    others = [".m1.0123abcd.tmp", ".a.0123abcd.tmp", ".a.unfinished.0123abcd.old", "a.unfinished"]
    for other in others:
        (tmp_path / other).mkdir()
        (tmp_path / other / "checkpoint.safetensors").write_text("theirs")
    assert run("train", data, "--out", tmp_path / name, *QUICK).code == 0
    assert names(tmp_path) == sorted([*others, "films.csv", name])


def test_leftovers_never_block_replace(run: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    assert run("train", data, "--out", out, *QUICK).code == 0
    whole = contents(out)
    for left in (".m.0123abcd.tmp", ".m.456789ab.old", ".m.unfinished.0123abcd.old", "m/.README.md.0123abcd.tmp"):
        (tmp_path / left).mkdir()
        (tmp_path / left / "config.json").write_text("half")
    (tmp_path / "m.unfinished").mkdir()
    (tmp_path / "m.unfinished" / "checkpoint.safetensors").write_bytes(b"of another run")
    blocked = run("train", data, "--out", out, *QUICK)
    assert (blocked.code, "start over with --replace" in blocked.err) == (2, True)
    ended = run("train", data, "--out", out, *QUICK, "--replace")
    assert ended.code == 0, ended.err
    assert names(tmp_path) == ["films.csv", "m"]
    assert contents(out) == whole


def test_a_folder_that_only_looks_like_a_run_is_left_alone(run: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "m.unfinished").mkdir()
    (tmp_path / "m.unfinished" / "thesis.txt").write_text("years of work")
    for more in ([], ["--resume"], ["--replace"]):
        ended = run("train", data, "--out", tmp_path / "m", *QUICK, *more)
        assert (ended.code, "contains other files than an interrupted run" in ended.err) == (2, True)
    assert (tmp_path / "m.unfinished" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize("more", [[], ["--resume"], ["--replace"]])
def test_a_run_of_a_live_process_is_left_alone(run: Run, data: Path, tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "m.unfinished").mkdir()
    with atomic_files.exclusive(tmp_path / "m.unfinished", "training"):
        ended = run("train", data, "--out", tmp_path / "m", *QUICK, *more)
        assert (ended.code, f"process {os.getpid()} is training in" in ended.err) == (2, True)
    assert names(tmp_path) == ["films.csv", "m.unfinished"]


def test_a_model_that_was_deleted_is_not_revived(tmp_path: Path) -> None:
    fitted().save(tmp_path / ".m.0123abcd.old")
    with pytest.raises(UserError, match="m: no such folder"):
        sg.load(tmp_path / "m")
    assert names(tmp_path) == [".m.0123abcd.old"]


def test_a_comparison_killed_while_it_writes_its_first_file_goes_on(tmp_path: Path) -> None:
    (tmp_path / ".settings.json.0123abcd.tmp").mkdir()
    (tmp_path / ".settings.json.0123abcd.tmp" / "settings.json").write_text("{")
    with pytest.raises(UserError, match="nowhere-at-all"):  # past the check of the folder
        run_comparison(tmp_path, comparison_order(data="nowhere-at-all"))
    (tmp_path / "comparison.html").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="is not a comparison"):
        run_comparison(tmp_path)


FOREIGN = {
    "report.html": "exists: --replace overwrites it",
    "synonyms.jsonl": "exists: --replace overwrites it",
    "vanilla": "is not a steadygaze model",
    "consensus.unfinished": "contains other files than an interrupted run",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_the_demonstration_checks_before_it_writes(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "CORPUS", "planted-reviews:sizes=[40,8,8]")
    monkeypatch.setattr(demo, "train", lambda *_, **__: pytest.fail("began"))
    out = tmp_path / "demo"
    if "." in name and name != "consensus.unfinished":
        out.mkdir()
        (out / name).write_text("mine")
    else:
        (out / name).mkdir(parents=True)
        (out / name / "mine.txt").write_text("mine")
    before = snapshot([out])
    ended = run("demo", "--out", out)
    assert (ended.code, FOREIGN[name] in ended.err) == (2, True), ended.err
    assert snapshot([out]) == before


def test_the_demonstration_does_not_replace_a_model_of_another_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = sg.load_corpus("planted-reviews:sizes=[40,8,8]")
    fitted().save(tmp_path / "vanilla")
    before = contents(tmp_path / "vanilla")
    with pytest.raises(UserError, match="vanilla contains a model of another training: --replace"):
        demo.check(tmp_path, corpus, 0, False)
    demo.check(tmp_path, corpus, 0, True)
    assert contents(tmp_path / "vanilla") == before


@pytest.mark.slow
def test_a_demonstration_that_is_finished_trains_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = sg.load_corpus("planted-reviews:sizes=[40,8,8]")
    monkeypatch.setattr(demo, "EPOCHS", {"vanilla": 1, "consensus": 1})
    say = Console(quiet=True, file=io.StringIO())
    demo.train(corpus, tmp_path, "cpu", 0, say)
    before = contents(tmp_path / "consensus")
    monkeypatch.setattr(
        "steadygaze.training.technique_loop.TechniqueLoop.train_epoch", lambda *_, **__: pytest.fail("trained again")
    )
    demo.check(tmp_path, corpus, 0, False)
    demo.train(corpus, tmp_path, "cpu", 0, say)
    assert contents(tmp_path / "consensus") == before
    with pytest.raises(UserError, match="another training"):
        demo.check(tmp_path, corpus, 1, False)


SMALL: dict[str, Any] = {"epochs": 1, "hidden": 8, "dimension": 6}


@pytest.mark.slow
@pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")
def test_an_explainer_of_another_model_is_refused_on_every_path(tmp_path: Path) -> None:
    own, other = (tiny("bilstm", seed=seed).fit(TEXTS, LABELS) for seed in (0, 1))
    explainer = sg.fit_explainer(own, TEXTS * 2, k=2, settings=SMALL)
    explainer.save(tmp_path / "own")
    of_a_function = sg.fit_explainer(lexicon, opinions(40), k=2, classes=["neg", "pos"], settings=SMALL)
    of_a_function.save(tmp_path / "function")
    for query in (
        lambda: sg.load_explainer(tmp_path / "own", other),
        lambda: sg.load_explainer(tmp_path / "own", lambda texts: other.predict_proba(texts), classes=["neg", "pos"]),
        lambda: sg.load_explainer(tmp_path / "function", own),
        lambda: other.explain(TEXTS, explainer=explainer),
        lambda: sg.audit(other, TEXTS, explainers=[explainer]),
        lambda: sg.audit(own, TEXTS, explainers=[of_a_function]),
        lambda: list(streaming.explain(other, iter([TEXTS]), ExplainRequest(None, explainer))),
        lambda: list(streaming.explain(as_adapter(other), iter([TEXTS]), ExplainRequest(None, explainer))),
    ):
        with pytest.raises(UserError, match="fitted to another model"):
            query()


@pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")
def test_an_explainer_of_another_classifier_of_images_is_refused() -> None:
    images, labels = planted(60)
    own, other = (ImageClassifier(epochs=1, batch_size=16, seed=seed).fit(images, labels) for seed in (0, 1))
    settings = {"epochs": 1, "batch_size": 32, "hidden": 8, "approximator": "simple", "patch": 2}
    explainer = sg.fit_explainer(own, images, k=1, settings=settings)
    assert len(own.explain(images[:2], explainer=explainer)) == 2
    with pytest.raises(UserError, match="fitted to another model"):
        other.explain(np.asarray(images[:2]), explainer=explainer)


CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], object]] = {
    "contradicts kind 'pieces'": lambda config: config.update(kind="pieces"),
    "best_epoch is not an epoch of history": lambda config: config["best_epoch"].update(epoch=99),
    "not the position of a class": lambda config: config["best_epoch"].update(constant_label=5),
    "class_weight names": lambda config: config.update(class_weight=[["nobody", 1.0]]),
    "technique_settings does not fit": lambda config: config.update(technique_settings={"radius": 0.1}),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_a_model_that_contradicts_itself_is_refused(message: str, tmp_path: Path) -> None:
    fitted().save(tmp_path / "m")
    edit(tmp_path / "m" / "config.json", CONTRADICTIONS[message])
    with pytest.raises(UserError, match=f"contradicts itself: .*{message}"):
        sg.load(tmp_path / "m")


EXPLAINER: dict[str, Callable[[dict[str, Any]], object]] = {
    "k is 5": lambda config: config["settings"].update(k=5),
    "seed is 9": lambda config: config["facts"].update(seed=9),
    "explainer is 'vibi'": lambda config: config.update(explainer="vibi"),
    "inputs is 'texts'": lambda config: config.update(canvas={}),
}


@pytest.fixture(scope="module")
def explainer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explainer") / "own"
    sg.fit_explainer(fitted(), TEXTS * 2, k=2, settings=SMALL).save(folder)
    return folder


@pytest.mark.parametrize("message", EXPLAINER)
def test_an_explainer_that_contradicts_itself_is_refused(message: str, explainer: Path) -> None:
    before = (explainer / "config.json").read_bytes()
    edit(explainer / "config.json", EXPLAINER[message])
    try:
        with pytest.raises(UserError, match=f"contradicts itself: {message}"):
            sg.load_explainer(explainer, fitted())
    finally:
        (explainer / "config.json").write_bytes(before)


def edit(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    config = json.loads(file.read_text())
    change(config)
    file.write_text(json.dumps(config))
