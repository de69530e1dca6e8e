"""Docstrings that a decorator completes: mkdocstrings reads the source, and this extension what a user reads."""

import inspect
from pkgutil import resolve_name
from typing import Any

import griffe


class CompletedDocstrings(griffe.Extension):
    """mkdocstrings loads it, see mkdocs.yml."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        if any(str(decorator.value) == "documented" for decorator in func.decorators):
            func.docstring = griffe.Docstring(inspect.getdoc(resolve_name(func.path)) or "", parent=func)
