"""Settings: frozen dataclasses that check themselves, from a dict or from `--set key=value`.

A settings class is written with `@settings`: a frozen pydantic dataclass, so types and ranges are checked however it
is built.
Keys are flat: `{"hidden": 64, "epsilon": 0.5}` is dealt out to the classes that own a field of that name.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin

from pydantic import ConfigDict, ValidationError
from pydantic import Field as Field
from pydantic.dataclasses import dataclass

from steadygaze.core.errors import UserError, unknown

S = TypeVar("S")
LARGEST = (1 << 31) - 1
"""Of a whole number among the settings: one that torch can count to."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def settings(cls: type[S]) -> type[S]:
    """A frozen, keyword-only dataclass whose fields are checked on construction; the text under a field is its help."""
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True, arbitrary_types_allowed=True)
    for name, kind in vars(cls).get("__annotations__", {}).items():
        own, *limits = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        if own in (int, int | None):  # the limits of the field come last: they replace the general one
            cls.__annotations__[name] = Annotated[(own, Field(le=LARGEST), *limits)]
    made = dataclass(frozen=True, kw_only=True, config=config)(cls)
    for base in made.__mro__[1:]:  # pydantic reads the help of inherited fields from the class they are not written in
        for name, field in getattr(base, "__pydantic_fields__", {}).items():
            made.__pydantic_fields__[name].description = made.__pydantic_fields__[name].description or field.description
    return made  # type: ignore[return-value]


def build(cls: type[S], values: Mapping[str, Any]) -> S:
    """cls(**values), with a sentence instead of a ValidationError."""
    for key in values:
        if key not in field_names(cls):
            raise unknown("setting", key, field_names(cls))
    try:
        return cls(**values)
    except ValidationError as error:
        raise UserError(sentence(error)) from None


def distribute_settings(values: Mapping[str, Any], *classes: type[Any]) -> list[Any]:
    """One instance of each class from a flat dict; a key that none of them owns is refused, naming the nearest."""
    known = [name for cls in classes for name in field_names(cls)]
    for key in values:
        if key not in known:
            raise unknown("setting", key, known)
    return [build(cls, {k: v for k, v in values.items() if k in field_names(cls)}) for cls in classes]


def field_names(cls: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls))


def non_default(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are not the defaults of cls: what must be said to get the same again."""
    usual = {field.name: field.default for field in dataclasses.fields(cls)}
    return {key: value for key, value in values.items() if key not in usual or value != usual[key]}


def difference(then: Mapping[str, Any], now: Mapping[str, Any], first: str = "") -> tuple[str, str] | None:
    """The first setting, by name, that is another now, and both values in words; `first` is asked before all.

    >>> difference({"training": {"epochs": 8}, "seed": 0}, {"training": {"epochs": 9}, "seed": 0})
    ('training.epochs', '8, now 9')
    """
    before, after = (dict(flat(json.loads(json.dumps(one)))) for one in (then, now))
    for key in sorted({*before, *after}, key=lambda key: (key != first, key)):
        if before.get(key) != after.get(key):
            return key, ", now ".join(f"{one[key]!r:.120}" if key in one else "none" for one in (before, after))
    return None


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings within settings, by one name each.

    >>> dict(flat({"training": {"epochs": 8}, "seed": 0}))
    {'training.epochs': 8, 'seed': 0}
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def parse(pairs: Iterable[str]) -> dict[str, Any]:
    """What `--set` was given.  Values are JSON where they can be, None, or words; never evaluated.

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
        except (
            ValueError,
            RecursionError,
        ):  # not JSON, a number of more digits than Python reads, or nested too deeply
            values[key.strip()] = None if value.strip() == "None" else value.strip()  # as settings are listed
    return values


def sentence(error: ValidationError) -> str:
    """The first complaint of a ValidationError as one sentence: which setting, what was found, what would be right."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    if first["type"] == "missing":
        return f"setting {name!r} is missing."
    wanted = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    return f"setting {name!r}: found {first['input']!r:.80}; it {wanted}."
