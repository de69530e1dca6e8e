"""Types, errors, settings, files, random keys and ragged arrays; `maths` has pure functions of tensors."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def entry_point(reference: str) -> Any:
    """Import and return "module:name"; for late imports of higher packages.

    >>> entry_point("math:floor")(2.5)
    2
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
