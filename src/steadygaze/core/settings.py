"""Settings: frozen dataclasses with validation, from a dict or from `--set key=value`.

`@settings` makes a frozen pydantic dataclass, which checks types and ranges on construction.
Keys are flat: `{"hidden": 64, "epsilon": 0.5}` is distributed to the classes that have a field of that name.
"""

import ast
import dataclasses
import inspect
import itertools
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from types import MappingProxyType
from typing import Annotated, Any, TypeVar, cast, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic import Field as Field
from pydantic.dataclasses import dataclass, is_pydantic_dataclass

from steadygaze.core.errors import UserError, unknown

S = TypeVar("S")
LARGEST = (1 << 31) - 1
"""Largest integer setting that torch supports."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: type[S]) -> type[S]:
    """Make a frozen, keyword-only dataclass with validated fields.

    Parameters
    ----------
    cls : type
        A class with annotated fields.  The docstring below a field is its help; `Annotated[float, Field(ge=0)]` sets
        its limits.

    Returns
    -------
    type
        The class as a dataclass.  Its constructor raises a `UserError` for an unknown field and for an invalid value.

    Examples
    --------
    >>> from typing import Annotated
    >>> @settings
    ... class Noise:
    ...     scale: Annotated[float, Field(ge=0)] = 0.1
    >>> Noise(scale=2)
    Noise(scale=2.0)
    """
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    for name, kind in vars(cls).get("__annotations__", {}).items():
        own, *limits = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        if own in (int, int | None):  # the limits of the field come last and take precedence
            cls.__annotations__[name] = Annotated[(own, Field(le=LARGEST), *limits)]
    made = dataclass(frozen=True, kw_only=True, config=config)(cls)
    made.__init__ = _with_user_errors(made.__init__)  # type: ignore[method-assign]
    return made  # type: ignore[return-value]


def _with_user_errors(init: Callable[..., None]) -> Callable[..., None]:
    @wraps(init)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        for key in values:
            if key not in (names := field_names(type(self))):
                raise unknown("setting", key, names)
        try:
            init(self, *args, **values)
        except ValidationError as error:
            raise UserError(sentence(error)) from None

    return checked


@cache
def descriptions(cls: type[Any]) -> Mapping[str, str]:
    """The docstring of each field, own or inherited.  Read from the source, because Python does not keep it."""
    texts: dict[str, str] = {}
    for base in reversed([base for base in cls.__mro__ if is_pydantic_dataclass(base)]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in itertools.pairwise(body.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = inspect.cleandoc(text)
    return MappingProxyType(texts)


@cache
def _validator(cls: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


def build(cls: type[S], values: Mapping[str, Any]) -> S:
    """Return cls(**values), validated; raise a UserError instead of a ValidationError."""
    for key in values:
        if key not in field_names(cls):
            raise unknown("setting", key, field_names(cls))
    plain = dataclasses.is_dataclass(cls) and not bool(is_pydantic_dataclass(cls))  # does not validate its fields
    try:
        return cls(**values) if not plain else cast(S, _validator(cast(Any, cls)).validate_python(dict(values)))
    except ValidationError as error:
        raise UserError(sentence(error)) from None


def distribute_settings(values: Mapping[str, Any], *classes: type[Any]) -> list[Any]:
    """Build one instance of each class from a flat dict; raise for an unknown key, with the nearest name."""
    known = [name for cls in classes for name in field_names(cls)]
    for key in values:
        if key not in known:
            raise unknown("setting", key, known)
    return [build(cls, {k: v for k, v in values.items() if k in field_names(cls)}) for cls in classes]


def field_names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def non_default(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the defaults of cls."""
    defaults = {field.name: field.default for field in dataclasses.fields(cls)}
    return {key: value for key, value in values.items() if key not in defaults or value != defaults[key]}


def difference(then: Mapping[str, Any], now: Mapping[str, Any], first: str = "") -> tuple[str, str] | None:
    """Return the first setting that differs, by name, and both values; `first` is compared first.

    >>> difference({"training": {"epochs": 8}, "seed": 0}, {"training": {"epochs": 9}, "seed": 0})
    ('training.epochs', '8, now 9')
    """
    before, after = (dict(flat(json.loads(json.dumps(values)))) for values in (then, now))
    for key in sorted({*before, *after}, key=lambda key: (key != first, key)):
        if before.get(key) != after.get(key):
            return key, ", now ".join(
                f"{values[key]!r:.120}" if key in values else "none" for values in (before, after)
            )
    return None


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten nested settings.

    >>> dict(flat({"training": {"epochs": 8}, "seed": 0}))
    {'training.epochs': 8, 'seed': 0}
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse the pairs of `--set`.  Values are JSON, None, or strings; never evaluated.

    >>> parse(["hidden=64", "attention=sparsemax", "amsgrad=true", "spans=None"])
    {'hidden': 64, 'attention': 'sparsemax', 'amsgrad': True, 'spans': None}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"--set takes key=value, found {pair!r}; for example: --set hidden=64")
        try:
            values[key.strip()] = json.loads(value)
        except (ValueError, RecursionError):  # not JSON, too many digits, or nested too deeply
            values[key.strip()] = None if value.strip() == "None" else value.strip()  # as settings are listed
    return values


def sentence(error: ValidationError) -> str:
    """Return the first error of a ValidationError as one sentence."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["type"] == "missing":
        return f"setting {name!r} is missing."
    requirement = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"setting {name!r}: found {first['input']!r:.80}; it {requirement}."
