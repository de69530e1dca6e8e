"""The notebooks of docs/notebooks: they run, contain their outputs, and become pages of the site."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from printed_pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def runner() -> Any:
    return import_module("studies.figures.notebooks")


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kinds(notebook: dict[str, Any]) -> list[list[object]]:
    """What each cell puts out, without the values."""
    return [
        [output.get("name") or sorted(output["data"]) for output in cell["outputs"]] for cell in code_cells(notebook)
    ]


def cell(kind: str, source: str) -> dict[str, Any]:
    return {"cell_type": kind, "source": source.splitlines(keepends=True), "outputs": [], "execution_count": None}


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["audit-a-given-model", "explain-a-black-box", "train-and-audit"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_contains_its_outputs(path: Path, runner: Any) -> None:
    cells = code_cells(runner.read(path))
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 1
    assert "text/html" in json.dumps(cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default::UserWarning")
def test_a_notebook_runs_and_puts_out_what_it_contains(path: Path, runner: Any) -> None:
    stored = runner.read(path)
    assert kinds(runner.run_cells(stored, path.name)) == kinds(stored)


def test_outputs_are_prints_warnings_and_the_last_value(runner: Any) -> None:
    source = "import warnings\nprint('a')\nwarnings.warn('b', stacklevel=1)\n1 + 1"
    done = runner.run_cells({"cells": [cell("markdown", "# T"), cell("code", source), cell("code", "x = 1")]}, "n")
    first, second = code_cells(done)
    assert [output.get("text") for output in first["outputs"]] == [["a\n"], ["UserWarning: b\n"], None]
    assert first["outputs"][2]["data"] == {"text/plain": ["2"]}
    assert second["outputs"] == []
    with pytest.raises(ZeroDivisionError):
        runner.run_cells({"cells": [cell("code", "1 / 0")]}, "n")


def test_a_notebook_becomes_a_page(tmp_path: Path) -> None:
    shown = {"output_type": "display_data", "data": {"text/plain": ["2"], "text/html": ["<b>2\n", "\n</b>"]}}
    printed = {"output_type": "stream", "name": "stdout", "text": ["a  \n"]}
    cells = [cell("markdown", "# T\n\n[n](m.ipynb)"), cell("code", "1 + 1") | {"outputs": [printed, shown]}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    page = import_module("notebook_pages").page(tmp_path / "n.ipynb")
    assert page.startswith("# T\n\n[n](m.md)\n\n[Download this notebook](n.ipynb)")
    assert page.endswith('```python\n1 + 1\n```\n\n```text\na\n```\n\n<div class="output"><b>2 </b></div>\n')
