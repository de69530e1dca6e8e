"""Docstrings as a user reads them: completed by a decorator, or inherited; mkdocstrings reads the source alone."""

import inspect
from pkgutil import resolve_name
from typing import Any

import griffe


class CompletedDocstrings(griffe.Extension):
    """mkdocstrings loads it, see mkdocs.yml."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        inherits = func.docstring is None and func.is_public and isinstance(func.parent, griffe.Class)
        if inherits or any(str(decorator.value) == "documented" for decorator in func.decorators):
            func.docstring = griffe.Docstring(inspect.getdoc(resolve_name(func.path)) or "", parent=func)
