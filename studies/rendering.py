"""Pages from templates: Jinja with the numbers of studies, and filters that write numbers as pages do.

{{ number("score.sst2.200.default") | plus_minus }}      0.610 ± 0.023
{{ number("flips.consensus") | with_interval(2) }}       0.64 [0.61, 0.67]
{{ number("flips.consensus") | percent }}                64 %
{{ number("score", corpus, 200, row) | decimals }}       0.610; the parts of a name are joined by dots
{{ number("shift") | scientific }}                       8 × 10⁻⁶
{{ numbers("loss.*.default") | span }}                   0.001 to 0.013: of all numbers whose names match
{{ numbers("loss.*.default") | length | in_words }}      seven
{{ each("*.seat.shift", places) | changes }}             −5…−17: ratios of the named places, as changes in %
{{ number("f1.a2r", study="movies") | decimals(1) }}     a number of another study
{{ claim(lower | length == 7, "seven are lower") }}      nothing; an error if a sentence of the page no longer holds
{{ data_table("stability.csv", "All results") }}         a link, which the site shows as a table to sort and filter
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from statistics import mean
from typing import Any, SupportsFloat

import jinja2

from studies.numbers import Number, Numbers

WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
Read = Callable[[str], Numbers]
"""The numbers of a study by its name."""


def render(template: str, study: str, read: Read) -> str:
    """A page from its template and the numbers of studies; `study`: the one that is meant if none is named."""

    def number(*parts: Any, study: str = study) -> Number:
        name = ".".join(map(str, parts))
        if name not in (known := read(study)):
            raise KeyError(f"the study {study!r} has no number {name!r}")
        return known[name]

    def numbers(*parts: Any, study: str = study) -> list[Number]:
        pattern = ".".join(map(str, parts))
        matches = [entry for name, entry in read(study).items() if fnmatchcase(name, pattern)]
        if not matches:
            raise KeyError(f"the study {study!r} has no number like {pattern!r}")
        return matches

    def each(pattern: str, values: Iterable[str], study: str = study) -> list[Number]:
        return [number(pattern.replace("*", value), study=study) for value in values]

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False, trim_blocks=True
    )
    environment.filters |= {function.__name__: function for function in FILTERS}
    environment.tests["excluding_zero"] = excludes_zero
    environment.globals |= {
        "number": number,
        "numbers": numbers,
        "each": each,
        "claim": claim,
        "data_table": data_table,
    }
    return environment.from_string(template).render()


def decimals(value: SupportsFloat, digits: int = 3, sign: str = "") -> str:
    """A number with a fixed number of decimals, a minus sign, and no sign of zero.

    >>> decimals(-0.0305), decimals(0.2, 2, "+"), decimals(-0.0001), decimals(1e-4, 3, "+"), decimals(1234.5, 1)
    ('−0.030', '+0.20', '0.000', '0.000', '1,234.5')
    """
    text = f"{float(value):{sign},.{digits}f}"
    return re.sub(r"^[-+](?=0(\.0+)?$)", "", text).replace("-", "−")


def percent(value: SupportsFloat, digits: int = 0, sign: str = "") -> str:
    """A share in %.

    >>> percent(0.643), percent(-0.021, 1)
    ('64 %', '−2.1 %')
    """
    return f"{decimals(100 * float(value), digits, sign)} %"


def scientific(value: SupportsFloat) -> str:
    """One digit and a power of ten.

    >>> scientific(8.2e-06), scientific(3e4)
    ('8 × 10⁻⁶', '3 × 10⁴')
    """
    digit, exponent = f"{float(value):.0e}".split("e")
    return f"{digit} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def plus_minus(number: Number, digits: int = 3, sign: str = "") -> str:
    """The value ± half the width of its interval; a number without interval alone."""
    if number.interval is None:
        return decimals(number, digits, sign)
    low, high = number.interval
    return f"{decimals(number, digits, sign)} ± {decimals((high - low) / 2, digits)}"


def interval(number: Number, digits: int = 3, sign: str = "") -> str:
    """The interval alone: [low, high]."""
    if number.interval is None:
        raise ValueError(f"{number.name!r} has no interval")
    return "[" + ", ".join(decimals(end, digits, sign) for end in number.interval) + "]"


def with_interval(number: Number, digits: int = 3, sign: str = "") -> str:
    """The value and its interval: 0.64 [0.61, 0.67]."""
    return f"{decimals(number, digits, sign)} {interval(number, digits, sign)}"


def span(values: Iterable[SupportsFloat], digits: int = 3, sign: str = "", scale: float = 1.0) -> str:
    """The smallest and the largest value, or one if they are written alike.

    >>> span([0.2, 0.1, 0.15], 1), span([0.1, 0.1]), span([0.5, 0.6], 0, scale=100)
    ('0.1 to 0.2', '0.100', '50 to 60')
    """
    known = [scale * float(value) for value in values]
    ends = [decimals(end, digits, sign) for end in (min(known), max(known))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def change(ratio: SupportsFloat, digits: int = 0) -> str:
    """A ratio as a change in %, without the sign of %.

    >>> change(0.39), change(1.16), change(0.999)
    ('−61', '+16', '0')
    """
    return decimals(100 * (float(ratio) - 1), digits, "+")


def changes(ratios: Iterable[SupportsFloat]) -> str:
    """Ratios as changes in %, from the smallest effect to the largest.

    >>> changes([0.47, 0.31, 0.42]), changes([0.4, 1.16]), changes([0.5, 0.5])
    ('−53…−69', '+16…−60', '−50')
    """
    known = sorted(map(float, ratios))
    texts = [change(ratio) for ratio in (known if mean(known) >= 1 else known[::-1])]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]}…{texts[-1]}"


def spread(values: Iterable[SupportsFloat], digits: int = 3, sign: str = "+") -> str:
    """The smallest and the largest difference.

    >>> spread([0.02, -0.01])
    '−0.010…+0.020'
    """
    return span(values, digits, sign).replace(" to ", "…")


def in_words(count: SupportsFloat) -> str:
    """A count up to twelve as a word."""
    return WORDS[int(float(count))] if float(count) < len(WORDS) else decimals(count, 0)


def claim(holds: bool, sentence: str) -> str:
    """Nothing; an error if numbers no longer support what the page says in words."""
    if not holds:
        raise ValueError(f"no longer true: {sentence}")
    return ""


def excludes_zero(number: Number) -> bool:
    """Whether the interval lies on one side of 0."""
    if number.interval is None:
        raise ValueError(f"{number.name!r} has no interval")
    return not number.interval[0] <= 0 <= number.interval[1]


def data_table(file: str, caption: str) -> str:
    """A link to a CSV file of docs/results/data; docs/hooks/data_tables.py shows it as a table below the link."""
    return f"[{caption}](data/{file}){{ .data-table }}"


FILTERS: tuple[Callable[..., Any], ...] = (
    decimals,
    percent,
    scientific,
    plus_minus,
    interval,
    with_interval,
    span,
    change,
    changes,
    spread,
    in_words,
)
