"""Run notebooks from top to bottom and write their outputs into them.

    python -m studies.figures notebooks docs/notebooks/*.ipynb

A cell's outputs are what it prints, its warnings and the value of its last expression, as HTML where it has any.
The cells run in this process, in a folder of their own; Jupyter is not needed.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run_cells(notebook: Notebook, name: str) -> Notebook:
    """The notebook with the outputs of its cells; an error of a cell is raised."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                cell = {**cell, "execution_count": count, "outputs": _outputs("".join(cell["source"]), names, name)}
            cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tree = ast.parse(source, name)
    last = tree.body[-1] if tree.body else None
    expression = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    if expression is not None:
        tree.body.pop()
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always", UserWarning)
        exec(compile(tree, name, "exec"), names)
        value = None if expression is None else eval(compile(expression, name, "eval"), names)
    messages = [
        f"{warning.category.__name__}: {warning.message}\n"
        for warning in caught_warnings
        if issubclass(warning.category, UserWarning)
    ]
    streams = {"stdout": printed.getvalue(), "stderr": "".join(messages)}
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "name": stream, "text": text.splitlines(keepends=True)}
        for stream, text in streams.items()
        if text
    ]
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _display(value)})
    return outputs


def _display(value: Any) -> dict[str, list[str]]:
    data = {"text/plain": str(value).splitlines(keepends=True)}
    html = getattr(value, "_repr_html_", None)
    return data | ({} if html is None else {"text/html": html().splitlines(keepends=True)})


def run(notebooks: list[Path]) -> None:
    for path in notebooks:
        text = json.dumps(run_cells(read(path), path.name), indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(f"{path}: {os.times().user:.0f} s CPU so far", file=sys.stderr)
