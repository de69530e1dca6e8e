"""How numbers and answers are said to people, on a page, in a terminal and in a notebook alike."""

import math

from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer, Better, Fact

ICONS: dict[Answer, str] = {"yes": "✓", "partly": "~", "no": "✗", "not asked": "–"}
"""Beside the word: an answer must be seen without colour too."""
ARROWS: dict[Better, str] = {"higher": "↑", "lower": "↓", "neither": ""}
PREDICTION = "the prediction itself"
"""Whose number it is, where it is no explainer's."""


def number(value: float) -> str:
    """Three decimals; two figures where those would hide the number, none where they would drown it.

    >>> number(0.98765), number(-0.00001234), number(12345.6), number(float("nan"))
    ('0.988', '−1.2e-05', '12,346', 'not defined')
    """
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    style = ",.0f" if abs(value) >= 1000 else ".1e" if 0 < abs(value) < 0.001 else ".3f"
    return ("−" if value < 0 else "") + format(abs(value), style)


def short_number(value: float) -> str:
    """A limit or a bound, with no more figures than it has.

    >>> short_number(0.05), short_number(1.0), short_number(0.6931471805599453), short_number(-1)
    ('0.05', '1', '0.693', '−1')
    """
    return format(value, ".3g").replace("-", "−") if math.isfinite(value) else number(value)


def count_text(number: int, what: str) -> str:
    """
    >>> count_text(1, "text"), count_text(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def answer_text(note: str) -> Answer | None:
    """The answer whose sign a note begins with.

    >>> answer_text("✓ It would not lock."), answer_text("Four texts are long.")
    ('yes', None)
    """
    return next((answer for answer, icon in ICONS.items() if note.startswith(f"{icon} ")), None)


def flag_text(note: str) -> str:
    """With a sign before it: a warning's, where it has none of its own.

    >>> flag_text("✓ It would not lock."), flag_text("Four texts are long.")
    ('✓ It would not lock.', '! Four texts are long.')
    """
    return f"! {note}" if answer_text(note) is None else note


def measure_noun(explainer: str) -> str:
    """What an explanation puts on words, named for what the model shows.

    >>> measure_noun("attention"), measure_noun("rationale"), measure_noun("gradient")
    ('attention', 'selection', 'weight')
    """
    return {"attention": "attention", "rationale": "selection"}.get(explainer, "weight")


def interval(row: Row) -> str:
    return "no interval" if row.interval is None else f"{number(row.interval[0])} to {number(row.interval[1])}"


def explainer_name(row: Row) -> str:
    return str(row.settings.get("explain", PREDICTION))


def span(fact: Fact) -> str:
    """Between which numbers a measure lies.

    >>> span(Fact("How much.", 0, float("inf")))
    '0 or more'
    >>> span(Fact("How much.", 0, 0.6931471805599453))
    '0 to 0.693'
    """
    if math.isinf(fact.low) and math.isinf(fact.high):
        return "any number"
    if math.isinf(fact.high):
        return f"{short_number(fact.low)} or more"
    return (
        f"at most {short_number(fact.high)}"
        if math.isinf(fact.low)
        else f"{short_number(fact.low)} to {short_number(fact.high)}"
    )


def direction(better: Better) -> str:
    r"""
    >>> direction("lower"), direction("neither")
    ('↓\xa0lower is better', 'neither end is better by itself')
    """
    return (
        "neither end is better by itself"
        if better == "neither"
        else f"{ARROWS[better]}\N{NO-BREAK SPACE}{better} is better"
    )
