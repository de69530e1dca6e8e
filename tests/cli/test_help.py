"""The help of every command: panels, three examples, exit codes and visible defaults."""

import re
import shlex
from importlib import import_module
from typing import Any

import pytest
from typer.main import get_group

from commands import run
from steadygaze.cli import COMMANDS, CommandSummary, app
from steadygaze.cli.registry_listing import list_registry
from steadygaze.data.synonym_formats import READERS

PANELS = {
    "train": {"Data", "Model", "Training", "Output", "Runtime"},
    "predict": {"Data", "Model", "Output", "Runtime"},
    "explain": {"Data", "Model", "Output", "Runtime"},
    "evaluate": {"Data", "Model", "Output", "Runtime"},
    "word-weights": {"Data", "Model", "Output", "Runtime"},
    "fit-explainer": {"Data", "Model", "Training", "Output", "Runtime"},
    "audit": {"Data", "Model", "Training", "Audit", "Output", "Runtime"},
    "certify": {
        "Data",
        "Model",
        "Attention certificate",
        "Soft stability",
        "Substitution certificate",
        "Output",
        "Runtime",
    },
    "compare": {"Data", "Model", "Training", "Output", "Runtime"},
    "synonyms build": {"Data", "Model", "Output", "Runtime"},
    "synonyms show": {"Output", "Runtime"},
    "synonyms check": {"Data", "Output", "Runtime"},
    "tune": {"Data", "Model", "Training", "Output", "Runtime"},
    "reproduce": {"Data", "Model", "Training", "Output", "Runtime"},
    "serve": {"Data", "Model", "Output", "Runtime"},
    "list": {"Training", "Output", "Runtime"},
    "demo": {"Output", "Runtime"},
}


@pytest.fixture(scope="module")
def commands() -> dict[str, Any]:
    for module, _ in COMMANDS.values():
        import_module(f"steadygaze.cli.{module}")
    return get_group(app).commands


def test_every_command_has_its_panels(commands: dict[str, Any]) -> None:
    names = {
        f"{name} {inner}".strip() for name, command in commands.items() for inner in getattr(command, "commands", [""])
    }
    assert names == set(PANELS)


def test_a_summary_is_the_first_line_of_the_help_of_a_command(commands: dict[str, Any]) -> None:
    assert list(commands) == list(COMMANDS)
    for name, (_, summary) in COMMANDS.items():
        assert not isinstance(commands[name], CommandSummary)
        assert summary == " ".join(commands[name].help.partition("\n\n")[0].split()), name


UNMET = "; 1 a requirement is not met, or --verify finds a difference"
KEPT = ": --html has the finished measures"


@pytest.mark.sweep(keep=5)
@pytest.mark.parametrize("command", PANELS)
def test_help_has_panels_examples_and_exit_codes(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")
    lines = [line.strip() for line in run(capsys, *command.split(), "--help").out.splitlines()]
    panels = {line.strip("╭╮─ ") for line in lines if line.startswith("╭")} - {"Arguments"}
    assert panels == PANELS[command]
    examples = [line for line in lines if line.startswith(f"steadygaze {command}")]
    assert len(examples) == 3
    options = {word for line in lines if line.startswith("│") for word in line.split() if word.startswith("-")}
    for example in examples:
        assert {word for word in shlex.split(example) if word.startswith("-")} <= options
    met, kept = (
        ("; 1 a requirement is not met, or --verify finds a difference", KEPT) if command == "audit" else ("", "")
    )
    assert (
        f"Exit codes: 0 done{met}; 2 wrong input; 70 internal error; 130 interrupted (SIGTERM 143, SIGHUP 129){kept}"
        in lines
    )
    assert any("Random seed. [default: 0]" in line for line in lines) == ("--seed" in options)


@pytest.mark.parametrize("command", ["audit", "compare", "tune", "reproduce", "serve", "certify", "synonyms show"])
def test_the_help_names_the_formats_of_synonym_tables(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "220")
    text = run(capsys, *command.split(), "--help").out
    (formats,) = re.findall(r"Synonym table \((.*)\) or WordNet folder", text)
    assert re.findall(r"\.\w+", formats) == list(READERS)


def test_list_measures_is_short_unless_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    short, full = (run(capsys, "list", "measures", *more).out for more in ([], ["--verbose"]))
    assert len(short.splitlines()) < len(full.splitlines()) / 2
    assert "jensen-shannon/noise" not in short
    assert all(row["name"] in full for row in list_registry("measures"))
