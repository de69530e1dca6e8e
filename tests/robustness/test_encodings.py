"""Standard output that cannot encode every character: it is replaced, and the command succeeds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from robustness.harness import assert_clean, run_case
from robustness.small import Small

ENCODINGS = ["cp1252", "latin-1", "ascii", "cp437"]
COMMANDS = {
    "help": ["audit", "--help"],
    "list measures": ["list", "measures"],
    "list explainers": ["list", "explainers"],
    "list as JSON": ["list", "measures", "--json"],
    "predict": ["predict", "MODEL", "日本語 → café"],
    "predict as JSON": ["predict", "MODEL", "日本語 → café", "--json"],
    "explain": ["explain", "MODEL", "日本語 → café"],
    "explain as JSON": ["explain", "MODEL", "日本語 → café", "--json"],
    "certify": ["certify", "MODEL", "--data", "DATA", "--radius", "0.01"],
    "audit": ["audit", "MODEL", "--data", "DATA", "--sample", "2", "--limit", "4", "-v"],
    "error": ["predict", "日本語 →", "a text"],
}


@pytest.mark.sweep
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_succeeds_whatever_the_encoding_of_its_output(made: Small, command: str, encoding: str) -> None:
    values = {"MODEL": made.model, "DATA": made.data}
    arguments = [values.get(word, word) for word in COMMANDS[command]]
    result = run_case(arguments, encoding=encoding, watch=[made.model.parent])
    assert_clean(result, codes=(2,) if command == "error" else (0,))
    if "--json" in arguments:
        assert json.loads(result.stdout.decode("utf-8"))
    elif command != "error":
        assert result.stdout.decode(encoding).strip()


@pytest.mark.slow
def test_a_process_with_another_encoding_prints_a_table() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-m", "steadygaze", "list", "measures"]
    ended = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "comprehensiveness" in ended.stdout.decode("cp1252")


@pytest.mark.usefixtures("fewer_protocols")
def test_a_written_bundle_is_followed_by_its_table(made: Small, tmp_path: Path) -> None:
    audit = ["audit", made.model, "--data", made.data, "--sample", "2", "--limit", "4"]
    result = run_case([*audit, "--bundle", tmp_path / "bundle"], encoding="ascii")
    assert_clean(result, codes=(0,))
    assert (tmp_path / "bundle" / "report.json").is_file()
    assert result.stdout
