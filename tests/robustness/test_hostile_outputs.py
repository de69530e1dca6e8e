"""Outputs at paths that must not be written: refused in one line before any work, and everything stays as it was."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from robustness.damage import null_device
from robustness.harness import assert_clean, run_case
from robustness.small import Small

FILES = {
    "explain, page": ["explain", "MODEL", "--file", "DATA", "--html", "OUT"],
    "explain, rationales": ["explain", "MODEL", "--file", "DATA", "--eraser", "OUT"],
    "audit, page": ["audit", "MODEL", "--data", "DATA", "--html", "OUT"],
}
FOLDERS = {
    "audit, bundle": ["audit", "MODEL", "--data", "DATA", "--bundle", "OUT"],
    "train": ["train", "DATA", "--out", "OUT"],
    "fit-explainer": ["fit-explainer", "MODEL", "--data", "DATA", "--out", "OUT"],
    "compare": ["compare", "DATA", "--techniques", "vanilla", "--out", "OUT"],
    "demo": ["demo", "--out", "OUT"],
}
PATHS: dict[str, Callable[[Path], object]] = {
    "device": lambda here: null_device(here / "null"),
    "pipe": lambda here: os.mkfifo(here / "out"),
    "link": lambda here: (here / "out").symlink_to(here / "mine"),
    "dangling link": lambda here: (here / "out").symlink_to(here / "nothing"),
    "link loop": lambda here: (here / "out").symlink_to(here / "out"),
    "link to a folder": lambda here: (here / "out").symlink_to(here / "thesis"),
    "data": lambda here: here / "data.csv",
    "inside the model": lambda here: here / "model" / "out",
    "weights": lambda here: here / "model" / "model.safetensors",
    "below a file": lambda here: here / "mine" / "out",
    "long name": lambda here: here / ("x" * 300),
    "null": lambda here: "a\0b",
    "folder of somebody": lambda here: here / "thesis",
}


@pytest.mark.sweep
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("command", [*FILES, *FOLDERS])
def test_an_output_that_would_destroy_something_is_refused(
    command: str, path: str, made: Small, tmp_path: Path
) -> None:
    shutil.copytree(made.model, tmp_path / "model")
    shutil.copy(made.data, tmp_path / "data.csv")
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    if command == "demo" and path == "folder of somebody":
        (tmp_path / "thesis" / "report.html").write_text("mine")  # the demonstration writes beside other files
    inputs = PATHS[path](tmp_path)
    out = inputs if isinstance(inputs, str | Path) else tmp_path / "out"
    words = {"MODEL": tmp_path / "model", "DATA": tmp_path / "data.csv", "OUT": out}
    arguments = [words.get(word, word) for word in (FILES | FOLDERS)[command]]
    for more in [[]] if command == "compare" else [[], ["--replace"]]:
        if more and path == "folder of somebody" and command == "demo":
            continue
        assert_clean(run_case([*arguments, *more], watch=tmp_path), codes=[2])
