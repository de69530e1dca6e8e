"""Checks for the arguments of public functions, and options of commands.

@validated(radius=number(above=0), norm=choice("l2", "linf"), k=integer(1))
def certify(clf, texts, radius=0.01, norm="linf", k=7): ...

A check takes the argument's name and its value.  It returns the value as a plain Python type, or raises UserError.
"""

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from steadygaze.core.errors import UserError, unknown

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[str, Any], Any]
LARGEST = 2**63 - 1
LONGEST_NAME, LONGEST_PATH = 255, 4095
"""Maximum bytes of a file name and of a path on common systems."""
OBJECT = re.compile(r"(?!\d)[\w.]+:(?!\d)\w+")
"""A Python object, MODULE:NAME."""


def names_object(value: Any) -> bool:
    """True if a string is MODULE:NAME and not the path of a file or folder.

    >>> names_object("my_models:predict"), names_object("org/model"), names_object("model")
    (True, False, False)
    """
    return isinstance(value, str) and OBJECT.fullmatch(value) is not None and not Path(value).exists()


def validated(**checks: Check) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check these arguments before the function runs, and refuse names of arguments that it does not have.

    Arguments that are left out are not checked.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        assert checks.keys() <= signature.parameters.keys(), function
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
        names = () if takes_any else tuple(name for name in signature.parameters if name != "self")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if misspelled := [name for name in kwargs if names and name not in names]:
                raise unknown("argument", misspelled[0], names)
            bound = signature.bind(*args, **kwargs)
            for name, check in checks.items():
                if name in bound.arguments:
                    bound.arguments[name] = check(name, bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return call

    return decorate


def argument_error(name: str, wanted: str, value: Any) -> UserError:
    """
    >>> str(argument_error("k", "a whole number", "x"))
    "k must be a whole number, found 'x'"
    """
    return UserError(f"{name} must be {wanted}, found {_shorten(value)}")


def optional(check: Check) -> Check:
    """None, or a value that passes the check."""
    return lambda name, value: None if value is None else check(name, value)


def integer(least: int, most: int = LARGEST) -> Check:
    """A whole number between two bounds, both included."""
    expected = f"a whole number from {least:,} {'up' if most == LARGEST else f'to {most:,}'}"

    def check(name: str, value: Any) -> int:
        integer_value = least - 1 if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
        if not least <= integer_value <= most:
            raise argument_error(name, expected, value)
        return integer_value

    return check


def number(*, least: float = -math.inf, above: float = -math.inf) -> Check:
    """A finite number."""
    bound = f" above {above:g}" if above > -math.inf else f" from {least:g} up" if least > -math.inf else ""

    def check(name: str, value: Any) -> float:
        try:
            finite = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
        except OverflowError:
            finite = math.inf
        if not (math.isfinite(finite) and finite >= least and finite > above):
            raise argument_error(name, f"a finite number{bound}", value)
        return finite

    return check


def choice(*names: str) -> Check:
    """One of these names."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise unknown(name, value, names)
        return str(value)

    return check


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool):
        return value
    import numpy as np

    if not isinstance(value, np.bool_):
        raise argument_error(name, "True or False", value)
    return bool(value)


def text(name: str, value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise argument_error(name, "a string that is not empty", value)
    return str(value)


def text_columns(name: str, value: Any) -> tuple[str, ...]:
    """The name of a column, or a list of names."""
    columns = [value] if isinstance(value, str) else sequence_of(name, value)
    return tuple(text(name, column) for column in columns)


def path(name: str, value: Any) -> Path:
    """The name of a file or folder."""
    if not isinstance(value, str | os.PathLike) or not (written := os.fspath(value)) or not isinstance(written, str):
        raise argument_error(name, "the path of a file or folder", value)
    try:
        encoded = os.fsencode(written)
    except UnicodeEncodeError:
        raise argument_error(name, "a path that the file system can encode", value) from None
    if b"\0" in encoded:
        raise argument_error(name, "a path without null characters", value)
    if len(encoded) > LONGEST_PATH or max(map(len, encoded.split(b"/"))) > LONGEST_NAME:
        raise argument_error(name, f"a path of names of at most {LONGEST_NAME} bytes", value)
    return Path(written)


def path_or_name(name: str, value: Any) -> Any:
    """A path, or a name that is not a path; returned unchanged."""
    path(name, value)
    return value


def sequence_of(name: str, value: Any) -> Any:
    """A list, a tuple or an array."""
    if (
        isinstance(value, str | bytes | Mapping | Set)
        or not isinstance(value, Iterable)
        or not hasattr(value, "__len__")
    ):
        raise argument_error(name, "a list", value)
    return value


def instance(kind: type | tuple[type, ...], described: str) -> Check:
    """An object of this class."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise argument_error(name, described, value)
        return value

    return check


def function(name: str, value: Any) -> Any:
    """A callable."""
    if not callable(value):
        raise argument_error(name, "a function", value)
    return value


def _shorten(value: Any) -> str:
    """Return the beginning of a value; its `repr` can be long, and can fail."""
    try:
        return f"{value!r:.80}"
    except Exception:
        return f"a value of type {type(value).__name__}"


@dataclass(frozen=True)
class Option:
    """Metadata of a field of a configuration: its option on the command line.  Importing it does not load pydantic."""

    panel: str
    help: str
    metavar: str | None = None
    default: str | None = None
    """Description of a default that is None or empty."""
    name: str = ""
    """The name of the option, if it is not that of the field."""
    comma: bool = False
    """True if one value lists all items, separated by commas; otherwise the option is repeated."""


def options(config: type[Any]) -> dict[str, tuple[Any, Option, float | None]]:
    """Field -> its type, its option and its minimum; only fields with an option."""
    hints = {name: get_args(hint) for name, hint in get_type_hints(config, include_extras=True).items()}
    fields = {}
    for name, (kind, *metadata) in ((name, parts) for name, parts in hints.items() if parts):
        if option := next((item for item in metadata if isinstance(item, Option)), None):
            fields[name] = kind, option, next((item.ge for item in metadata if hasattr(item, "ge")), None)
    return fields


def option_name(config: type[Any], field: str) -> str:
    """
    >>> Example = type("Example", (), {"__annotations__": {"drop_empty": bool}})
    >>> option_name(Example, "drop_empty")
    '--drop-empty'
    """
    listed = options(config)
    return listed[field][1].name if field in listed and listed[field][1].name else f"--{field.replace('_', '-')}"
