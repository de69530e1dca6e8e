"""Search spaces of settings, declared beside the settings that `tune` can vary.

epsilon: Annotated[float, Field(ge=0), SearchRange(0.01, 10, log=True)] = 0.2
hidden: Annotated[int, Field(ge=2), SearchChoice(64, 128, 256)] = 128
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from steadygaze.core.errors import UserError
from steadygaze.core.settings import parse

RANGE = re.compile(r"([^:]+):([^:]+?)(:log)?")


@dataclass(frozen=True)
class SearchRange:
    """Numbers between two bounds, both included; whole numbers if both bounds are."""

    low: float
    """Lower bound."""
    high: float
    """Upper bound."""
    log: bool = False
    """Uniform in the logarithm."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UserError(f"a range needs a lower and a higher bound, found {self.low}:{self.high}")
        if self.log and self.low <= 0:
            raise UserError(f"a logarithmic range needs a lower bound above 0, found {self.low}:{self.high}:log")

    def __str__(self) -> str:
        return f"{self.low}:{self.high}" + ":log" * self.log


@dataclass(frozen=True, init=False)
class SearchChoice:
    """One of several values."""

    values: tuple[Any, ...]
    """The values."""

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def __str__(self) -> str:
        return ",".join(map(str, self.values))


SearchSpace = SearchRange | SearchChoice


def declared_spaces(cls: type[Any]) -> dict[str, SearchSpace]:
    """The search spaces of the fields of a settings class, by name."""
    hints = get_type_hints(cls, include_extras=True).items()
    metadata = {name: get_args(hint)[1:] for name, hint in hints if get_origin(hint) is Annotated}
    return {name: item for name, items in metadata.items() for item in items if isinstance(item, SearchSpace)}


def parse_space(text: str) -> SearchSpace | None:
    """The search space of a --set value; None for a fixed value.

    >>> parse_space("0.01:10:log"), parse_space("32,64"), parse_space("0.5")
    (SearchRange(low=0.01, high=10, log=True), SearchChoice(values=(32, 64)), None)
    """
    if bounds := RANGE.fullmatch(text.strip()):
        low, high = (parse([f"bound={bound}"])["bound"] for bound in bounds.groups()[:2])
        if all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in (low, high)):
            return SearchRange(low, high, bounds[3] is not None)
    if "," in text:
        return SearchChoice(*(parse([f"value={value}"])["value"] for value in text.split(",")))
    return None
