"""The README's commands and Python run as printed; only the built-in corpus is made smaller, to take seconds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steadygaze.corpus.planted import planted_reviews

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SMALL = '"planted-reviews:sizes=[120,30,30]"'


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader would stand, with a reviews.csv of their own."""
    rows = [f'"{e.text}",{e.label}' for e in planted_reviews(sizes=(120, 0, 0))["train"]]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,verdict", *rows]) + "\n", encoding="utf-8")
    return tmp_path


def test_the_commands_run(folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    commands = "".join(blocks("bash"))
    assert commands.count("steadygaze ") >= 4
    ended = subprocess.run(
        ["bash", "-e", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "saved in model" in ended.stdout
    assert (folder / "why.html").is_file()


def test_the_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(folder)
    (code,) = blocks("python")
    exec(compile(code.replace('"planted-reviews"', SMALL), "README.md", "exec"), {})
    assert "['negative' 'positive']" in capsys.readouterr().out
    assert (folder / "one.html").is_file()
    assert (folder / "model" / "model.safetensors").is_file()


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all(link.startswith("http") or (Path(__file__).parent.parent / link).exists() for link in links), links


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in ("help", "demo", "test", "check", "bench", "clean"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert all(f"make {target}" in README for target in ("demo", "test"))


def test_no_placeholder_is_left() -> None:
    assert not re.findall(r"\b[A-Z]{2,}_[A-Z]{2,}\b", README.replace("STEADYGAZE_DATA", ""))
