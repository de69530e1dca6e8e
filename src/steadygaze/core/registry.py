"""Registry: names -> classes, each imported when it is first used."""

from collections import UserDict
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Self, TypeVar

T = TypeVar("T")


class Registry(UserDict[str, T]):
    """A dict whose values may be given as "module:name" and are imported on first use.

    >>> registry: Registry = Registry.of({"floor": "math:floor"})
    >>> registry["floor"](2.5), "ceil" in registry
    (2, False)
    """

    @classmethod
    def of(cls, references: Mapping[str, str]) -> Self:
        """A registry of "module:name" by name."""
        registry = cls()
        registry.data.update(references)  # type: ignore[arg-type]
        return registry

    def __getitem__(self, name: str) -> T:
        value = super().__getitem__(name)
        if isinstance(value, str):
            value = self.data[name] = resolve_name(value)
        return value
