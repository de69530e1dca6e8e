"""Options that commands share: a command offers those that it reads, and no others."""

from dataclasses import fields
from importlib import import_module
from types import SimpleNamespace
from typing import ClassVar, Literal, get_args, get_origin, get_type_hints

import pytest

from commands import run
from estimator.tiny import TEXTS, write_csv
from steadygaze.cli import command_options, demo, serve_command
from steadygaze.cli.command_options import Common, option_words
from steadygaze.core.errors import UserError
from steadygaze.results.model_options import OPTIONAL, ModelOptions

SIZES: list[int] = []
"""Texts of each call of `model`."""
MODEL = ["cli.test_common_options:model", "--classes", "neg,pos"]
DATA = ["--data", "films.csv"]
COMMANDS = {
    "train": ["films.csv", "--out", "m", "--encoder", "average", "--epochs", "1", "--set", "hidden=4"],
    "predict": [*MODEL, "--file", "films.csv"],
    "explain": [*MODEL, "--file", "films.csv", "--explainer", "leave-one-out"],
    "evaluate": [*MODEL, *DATA],
    "word-weights": [*MODEL, *DATA, "--explainer", "leave-one-out", "--min-texts", "1"],
    "fit-explainer": [*MODEL, *DATA, "--out", "l2x"],
    "audit": [*MODEL, *DATA, "--explainer", "leave-one-out"],
    "certify": [*MODEL, *DATA, "--substitutions", "table.jsonl", "--samples", "2"],
    "compare": ["films.csv", "--techniques", "vanilla", "--out", "c"],
    "tune": ["films.csv", "--technique", "word-at", "--out", "t"],
    "reproduce": ["seat/table1", "--out", "r"],
    "serve": [*MODEL, *DATA, "--port", "0"],
    "list": ["measures"],
    "demo": ["--out", "d"],
    "synonyms build": ["table.jsonl", *DATA, "--out", "merged.jsonl"],
    "synonyms show": ["table.jsonl", "good"],
    "synonyms check": ["table.jsonl", *DATA],
}
LONG = {
    "fit-explainer": "steadygaze.adapters.resumable_fit.fit_explainer_resumable",
    "compare": "steadygaze.study.compare.compare",
    "tune": "steadygaze.study.tune.tune",
    "reproduce": "steadygaze.study.reproduce.reproduce",
}
"""Functions that the test does not run; their commands have read the options before."""


def model(texts):
    SIZES.append(len(texts))
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]


class RecordingCommon(Common):
    """Remembers the names of the options that a command reads."""

    names: ClassVar[set[str]] = set()

    def __getattribute__(self, name):
        RecordingCommon.names.add(name)
        return super().__getattribute__(name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "films.csv")
    (tmp_path / "table.jsonl").write_text('{"word": "good", "synonyms": ["fine"]}\n')
    return tmp_path


def refuse(*_, **__):
    raise UserError("the test does not run this")


@pytest.mark.sweep(keep=5)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_offers_the_common_options_that_it_reads(command, folder, capsys, monkeypatch):
    if command in LONG:
        monkeypatch.setattr(LONG[command], refuse)
    monkeypatch.setattr(demo, "load_corpus", refuse)
    monkeypatch.setattr(serve_command, "uvicorn_server", lambda app: SimpleNamespace(run=lambda sockets: None))
    collect = command_options.check_outputs

    def start_recording(values, data_dir):
        collect(values, data_dir)
        RecordingCommon.names.clear()

    monkeypatch.setattr(command_options, "Common", RecordingCommon)
    monkeypatch.setattr(command_options, "check_outputs", start_recording)
    ended = run(capsys, *command.split(), *COMMANDS[command])
    assert ended.code == 0 or "the test does not run this" in ended.err, ended.err
    used = RecordingCommon.names & {field.name for field in fields(Common)}
    monkeypatch.undo()
    monkeypatch.setenv("COLUMNS", "200")
    words = set(run(capsys, *command.split(), "--help").out.split())
    offered = {field.name for field in fields(Common) if f"--{field.name.replace('_', '-')}" in words}
    always = {"config", "save_config", "quiet", "json"}  # a command that prints JSON reads it after its work
    assert offered - always == used - always
    assert ("json" in offered) == (command != "serve")


MODEL_COMMANDS = [name for name, words in COMMANDS.items() if words[0] == MODEL[0]]
EXAMPLES = {bool: True, str: "Review: {text}", float: 0.25, int: 3, tuple: ("neg= bad", "pos= good")}
"""A value of each type of an option."""


def example(kind):
    """A value of the type of a field, such as str | None or tuple[str, ...]."""
    if get_origin(kind) is Literal:
        return get_args(kind)[-1]
    return next(EXAMPLES[part] for part in (get_origin(kind), kind, *get_args(kind)) if part in EXAMPLES)


SHARED = {name: example(kind) for name, kind in get_type_hints(ModelOptions).items() if name not in OPTIONAL}
"""Options of ModelOptions that every command with a model has, with a value of each."""


def test_a_command_chooses_among_optional_options_and_has_the_others():
    assert {*OPTIONAL} < {field.name for field in fields(ModelOptions)}
    assert {"classes", "prompt", "label_words"} <= SHARED.keys()
    assert not [name for name, value in SHARED.items() if value == getattr(ModelOptions, name)]


@pytest.mark.parametrize("command", MODEL_COMMANDS)
def test_every_command_with_a_model_passes_the_shared_options_to_its_loader(command, folder, capsys, monkeypatch):
    calls = []

    def load_named(name, options, device, *, import_objects):
        calls.append({name: getattr(options, name) for name in SHARED})
        raise UserError("the model is loaded")

    for module in ("steadygaze.adapters.as_adapter", "steadygaze.bundle.loaded_audit"):
        monkeypatch.setattr(f"{module}.load_named", load_named)
    ended = run(capsys, *command.split(), *COMMANDS[command], *option_words(ModelOptions, SHARED))
    assert "the model is loaded" in ended.err
    assert calls == [SHARED]


BATCHED = ("predict", "explain", "evaluate", "word-weights", "audit", "certify")


@pytest.fixture
def sizes():
    """Texts of each call of the model, in the module that the command imports."""
    return import_module(MODEL[0].partition(":")[0]).SIZES


@pytest.mark.sweep(keep=("predict",))
@pytest.mark.parametrize("command", BATCHED)
def test_a_smaller_batch_size_passes_fewer_texts_to_the_model(command, folder, capsys, sizes):
    largest = []
    for more in ([], ["--batch-size", "1"]):
        sizes.clear()
        ended = run(capsys, command, *COMMANDS[command], *more)
        assert ended.code == 0, ended.err
        largest.append(max(sizes))
    assert largest[1] < largest[0]


@pytest.mark.parametrize(("size", "largest"), [(None, len(TEXTS)), (5, 5)])
def test_the_batch_size_of_serve_is_that_of_its_models(size, largest, sizes):
    (served,) = serve_command.load_models(
        MODEL[:1], None, ModelOptions(classes=("neg", "pos")), Common(batch_size=size)
    )
    sizes.clear()
    served.predict(TEXTS)
    assert max(sizes) == largest


def test_an_option_without_effect_is_refused(capsys):
    ended = run(capsys, "demo", "--batch-size", "8")
    assert ended.code == 2
    assert "No such option" in ended.err
