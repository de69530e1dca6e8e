"""--config and --save-config: options in a TOML file."""

import json
import os
import re
import subprocess
import sys
import tomllib
from functools import partial
from importlib import import_module

import pytest
from typer.main import get_group

import commands
from estimator.tiny import write_csv
from steadygaze.cli import COMMANDS, app
from steadygaze.cli.config_files import config_key
from steadygaze.cli.shared_options import CLASSIFIER
from steadygaze.core.errors import UserError


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "films.csv")
    return lambda *arguments: commands.run(capsys, *arguments)


TRAIN = """data = "films.csv"
out = "m"
encoder = "average"
epochs = 1
device = "cpu"
quiet = true
text = "text"
[set]
hidden = 4
dimension = 6
attention = "sparsemax"
"""


def test_a_file_has_the_options_of_a_command(run, tmp_path):
    (tmp_path / "train.toml").write_text(TRAIN)
    ended = run("train", "--config", "train.toml", "--json")
    assert ended.code == 0, ended.err
    config = json.loads((tmp_path / "m/config.json").read_text())
    assert (config["encoder"], config["architecture"]["hidden"]) == ("average", 4)
    assert (config["architecture"]["attention"], config["training"]["epochs"]) == ("sparsemax", 1)


def test_the_command_line_takes_precedence(run, tmp_path):
    (tmp_path / "train.toml").write_text(TRAIN)
    options = ["--epochs", "2", "--set", "hidden=3", "--out", "n"]
    assert run("train", "films.csv", "--config", "train.toml", *options).code == 0
    config = json.loads((tmp_path / "n/config.json").read_text())
    assert (config["training"]["epochs"], config["architecture"]["hidden"]) == (2, 3)
    assert config["architecture"]["attention"] == "softmax"  # --set replaces the whole table
    assert not (tmp_path / "m").exists()


def test_saved_options_repeat_the_call(run, tmp_path):
    options = [
        "--encoder",
        "average",
        "--epochs",
        "1",
        "--set",
        "hidden=4",
        "--set",
        "synonyms=None",
        "--device",
        "cpu",
    ]
    assert run("train", "films.csv", "-o", "m", *options, "--save-config", "saved.toml", "-q").code == 0
    assert (tmp_path / "saved.toml").read_text().startswith("# Options of steadygaze train.")
    assert tomllib.loads((tmp_path / "saved.toml").read_text()) == {
        "data": "films.csv", "out": "m", "encoder": "average", "epochs": 1, "set": ["hidden=4", "synonyms=None"],
        "device": "cpu", "quiet": True,
    }  # fmt: skip
    first = (tmp_path / "m/model.safetensors").read_bytes()
    assert run("train", "--config", "saved.toml", "--out", "n", "--save-config", "saved.toml").code == 0
    assert (tmp_path / "n/model.safetensors").read_bytes() == first
    assert tomllib.loads((tmp_path / "saved.toml").read_text())["out"] == "n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("epoch = 3", "unknown option 'epoch': did you mean 'epochs'"),
        ("config = 'other.toml'", "unknown option 'config'"),
        ("max_length = 3", "unknown option 'max_length': did you mean 'max-length'"),
        ("epochs = [3]", r"epochs must be a string, a number, true or false, found \[3\]"),
        ("epochs = 'many'", "--epochs"),
        ("set = [[1]]", "set must be a string, a number or a list of them"),
        ("epochs = ", "train.toml is not valid TOML"),
        ("epochs = 0", "--epochs"),
    ],
)
def test_a_wrong_file_is_named_with_the_fix(run, tmp_path, content, message):
    (tmp_path / "train.toml").write_text(content)
    ended = run("train", "films.csv", "--out", "m", "--config", "train.toml")
    assert ended.code == 2
    assert re.search(message, ended.err), ended.err
    assert not (tmp_path / "m").exists()


def test_a_missing_file_and_a_foreign_output_are_refused(run, tmp_path):
    assert "nowhere.toml" in run("list", "techniques", "--config", "nowhere.toml").err
    (tmp_path / "mine.toml").write_text("years = 5")
    ended = run("list", "techniques", "--save-config", "mine.toml")
    assert (ended.code, "exists: --replace overwrites it" in ended.err) == (2, True)
    assert (tmp_path / "mine.toml").read_text() == "years = 5"


def model_parameters():
    """Command and file key of every parameter that takes MODULE:NAME."""
    for name, (module, _) in COMMANDS.items():
        import_module(f"steadygaze.cli.{module}")
        command = get_group(app).commands[name]
        for parameter in getattr(command, "params", []):
            if getattr(parameter, "help", None) == CLASSIFIER or parameter.name == "other_seeds":
                yield name, config_key(parameter)


def test_a_file_cannot_name_code(run, tmp_path):
    (tmp_path / "evil_model.py").write_text("open('imported', 'w').close()\ndef predict(texts): return [[1, 0]]\n")
    result = list(model_parameters())
    assert {"predict", "evaluate", "explain", "certify", "word-weights", "fit-explainer", "audit", "serve"} == {
        command for command, _ in result
    }
    needs = {"fit-explainer": {"out": "o"}, "certify": {"radius": 0.1}}
    for command, key in result:
        values = {"data": "films.csv", key: "evil_model:predict", **needs.get(command, {})}
        if command in ("predict", "explain"):
            del values["data"]
        if key == "other-seed":
            values["model"] = "m"
        (tmp_path / "run.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
        ended = run(command, "--config", "run.toml")
        assert ended.code == 2, (command, key)
        fix = f"{key} = 'evil_model:predict' would import code: type MODULE:NAME on the command line"
        assert fix in " ".join(ended.err.split()), (command, key, ended.err)
    assert not (tmp_path / "imported").exists()


def test_code_named_on_the_command_line_takes_precedence_over_the_file(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "typed_model.py").write_text("def predict(texts): return [[0.9, 0.1] for _ in texts]\n")
    (tmp_path / "run.toml").write_text("model = 'evil_model:predict'\nclasses = 'bad,good'\ntexts = ['a film']\n")
    ended = run("predict", "typed_model:predict", "--config", "run.toml")
    assert (ended.code, "bad" in ended.out) == (0, True), ended.err


def test_the_saved_options_are_no_other_output_and_no_input(run, tmp_path):
    for options, message in (
        (["--html", "same.out", "--save-config", "same.out"], "same path as"),
        (["--out", "m", "--save-config", "m/saved.toml"], "--save-config m/saved.toml is inside --out m"),
        (["--file", "saved.toml", "--save-config", "saved.toml"], "saved.toml is an input of this command"),
    ):
        (tmp_path / "saved.toml").write_text("# Options of steadygaze explain.\n")
        command = ["train", "films.csv"] if "m" in options else ["explain", "nowhere", "a film"]
        ended = run(*command, *options)
        assert (ended.code, message in ended.err) == (2, True), ended.err
        assert not (tmp_path / "same.out").exists()
        assert not (tmp_path / "m").exists()
        assert (tmp_path / "saved.toml").read_text() == "# Options of steadygaze explain.\n"


@pytest.mark.slow
def commands_with_options():
    """Name -> the command, with those of `synonyms`."""
    for name in COMMANDS:
        import_module(f"steadygaze.cli.{COMMANDS[name][0]}")
    for name, command in get_group(app).commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {key}", value) for key, value in inner.items()) if inner else [(name, command)]


def test_no_command_silently_uses_the_last_of_repeated_values():
    checked = 0
    for name, command in commands_with_options():
        for option in command.params:
            if option.param_type_name == "argument" or option.multiple or option.name in ("help", "config"):
                continue
            if option.is_flag and not option.secondary_opts:
                continue
            words = [option.opts[0]] if option.is_flag else [option.opts[0], *["1"] * option.nargs]
            other = [option.secondary_opts[0]] if option.is_flag else words
            with pytest.raises(UserError, match=f"{max(option.opts, key=len)}.* is given 2 times"):
                command.make_context(name, [*words, *other])
            checked += 1
    assert checked > 100


def test_repeated_explainers_of_a_comparison_are_refused_and_commas_are_named(capsys):
    run = partial(commands.run, capsys, override=False)
    words = ("compare", "films.csv", "--techniques", "vanilla,word-at", "--out", "c")
    ended = run(*words, "--explainer", "lime", "--explainer", "gradient")
    assert (ended.code, ended.err) == (2, "error: --explainer is given 2 times, and takes one value: give it once\n")
    ended = run(*words, "--techniques", "vanilla,seat")
    assert "give it once, as in --techniques A,B" in ended.err


@pytest.mark.slow
def test_every_command_has_both_options(run):
    for name in {*COMMANDS, "synonyms build"} - {"synonyms"}:
        ended = run(*name.split(), "--help")
        assert "--config" in ended.out, name
        assert "--save-config" in ended.out, name


@pytest.mark.slow
def test_the_shell_completes_commands_and_options():
    def complete(words, position):
        variables = {"COMP_WORDS": words, "COMP_CWORD": str(position), "_STEADYGAZE_COMPLETE": "complete_bash"}
        code = "from steadygaze.cli import main; main()"
        script = f"import sys; sys.argv[0] = 'steadygaze'; {code}"
        ended = subprocess.run([sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True)
        return ended.stdout.decode().split()

    assert complete("steadygaze tr", 1) == ["train"]
    assert "--techniques" in complete("steadygaze compare --tech", 2)


def test_the_script_for_the_shell_is_shown(run):
    assert "--install-completion" in run("--help").out
