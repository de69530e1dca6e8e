"""Round numbers for people: one rule for decimals and for percentages.

A number is rounded as it is written, half away from zero.  The formats of Python round the binary value: 69 of 80 texts
would be 0.863, but 86.2 %.
"""

import math
from decimal import ROUND_HALF_UP, Context, Decimal


def decimals(value: float, digits: int) -> str:
    """
    >>> decimals(69 / 80, 3), decimals(5 / 16, 3), decimals(-2.5, 0)
    ('0.863', '0.313', '-3')
    """
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    return format(Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP), "f")


def significant(value: float, digits: int) -> str:
    """
    >>> significant(0.9125, 3), significant(0.000012345, 3), significant(1.0, 3)
    ('0.913', '1.23e-05', '1')
    """
    number = Context(digits, ROUND_HALF_UP).create_decimal(repr(float(value)))
    return format(float(number), f".{digits}g")


def percent(share: float, digits: int = 0, unit: str = " %") -> str:
    """A share as a percentage.

    >>> percent(69 / 80, 1), percent(0.2), percent(float("nan"))
    ('86.3 %', '20 %', 'nan %')
    """
    number = float(share)
    if not math.isfinite(number):
        return f"{number}{unit}"
    return f"{format((Decimal(repr(number)) * 100).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP), 'f')}{unit}"
