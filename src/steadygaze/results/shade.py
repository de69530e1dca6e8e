"""Shade: how strongly a weight is drawn.  The scale is absolute: it depends on the unit of the weights alone.

    strength(w) = min(1, √(e / FULL));  0, drawn gray, if e < FLOOR

    unit          e
    probability   |w|              change of the class probability: leave-one-out, LIME, KernelSHAP …
    logit         tanh(|w| / 4)    σ(w/2) − σ(−w/2), the most by which this change of a logit changes its probability
    attention     w                share of the attention; in a long text all shares are small, and so are the strengths
    relative      |w| / Σ|w|       share of all weight: gradients, values of a regression and explainers
                                   of users have no scale of their own
    selection     FULL             a selected word has no weight

FULL is 0.5: a change of the probability by half can reverse a certain prediction of two classes.  The root keeps a
change of 0.05 visible, with a third of the full color.  Does not import torch.
"""

import math
from collections.abc import Iterable
from typing import get_args

from steadygaze.core.rounding import percent
from steadygaze.core.types import Unit

UNITS: tuple[Unit, ...] = get_args(Unit)
FULL, FLOOR = 0.5, 0.01
LEVELS = (0.05, 0.2, FULL)
"""Effects that the legend shows."""
NAMES: dict[Unit, str] = {
    "probability": "change of the probability",
    "logit": "change of the logit",
    "attention": "share of the attention",
    "relative": "share of the sum of all weights",
    "selection": "selected words",
}
REMARKS: dict[Unit, str] = {"attention": ", neither for nor against a class"}
NEGLIGIBLE = "no word matters much"


def effect(weight: float, unit: Unit, total: float = 1.0) -> float:
    """The effect of a weight, from 0 to 1.  `total`: Σ|w| of the text, and of the other text of a pair.

    >>> effect(-0.2, "probability"), effect(0.3, "relative", total=0.6), effect(0.001, "selection")
    (0.2, 0.5, 0.5)
    >>> round(effect(2 * math.log(3), "logit"), 9)
    0.5
    """
    if unit == "selection":
        return FULL if weight else 0.0
    if unit == "logit":
        return math.tanh(abs(weight) / 4)
    return abs(weight) / total if unit == "relative" and total > 0 else abs(weight)


def strength(weight: float, unit: Unit, total: float = 1.0) -> float:
    """The strength of the color, from 0 (gray) to 1.

    >>> strength(0.125, "probability"), strength(0.009, "probability"), strength(0.9, "attention")
    (0.5, 0.0, 1.0)
    """
    size = effect(weight, unit, total)
    return min(1.0, math.sqrt(size / FULL)) if size >= FLOOR else 0.0


def weight_text(weight: float, unit: Unit, total: float = 1.0, digits: int = 3) -> str:
    """A weight as it is printed, in the unit of the shade.

    >>> weight_text(-0.0004, "probability"), weight_text(-0.0006, "probability"), weight_text(-2e-9, "relative", 8e-9)
    ('0.000', '-0.001', '-25.0 %')
    """
    return percent(weight / total, 1) if unit == "relative" and total > 0 else f"{weight:z.{digits}f}"


def level_text(level: float, unit: Unit) -> str:
    """The weight with this effect, as the legend prints it.

    >>> level_text(0.05, "probability"), level_text(0.5, "logit"), level_text(0.2, "attention")
    ('0.05', '2.2', '20 %')
    """
    if unit == "logit":
        return f"{4 * math.atanh(level):.2g}"
    return f"{level:g}" if unit == "probability" else f"{100 * level:g} %"


def meaning(unit: Unit) -> str:
    """What a shade shows."""
    return NAMES[unit] + REMARKS.get(unit, "")


def scale_text(unit: Unit) -> str:
    """The scale in words, for a terminal.

    >>> scale_text("probability")
    'shade: change of the probability; full from 0.5, none below 0.01'
    """
    if unit == "selection":
        return "shade: selected words"
    return f"shade: {meaning(unit)}; full from {level_text(FULL, unit)}, none below {level_text(FLOOR, unit)}"


def negligible_text(weights: Iterable[float], unit: Unit, total: float = 1.0) -> str:
    """The sentence for a text in which every word is gray; '' for other texts."""
    sizes = list(weights)
    if unit == "selection" or not sizes or any(strength(weight, unit, total) for weight in sizes):
        return ""
    if not any(sizes):
        return f"{NEGLIGIBLE}: every weight is 0"
    return f"{NEGLIGIBLE}: every weight is below {level_text(FLOOR, unit)} ({NAMES[unit]})"
