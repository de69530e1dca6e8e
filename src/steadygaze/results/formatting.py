"""Names of measures, numbers and answers for pages, terminals and notebooks."""

import math
import re
from collections.abc import Mapping, Sequence

from steadygaze.core.rounding import decimals, significant
from steadygaze.results.row import Answer, Better, Fact, Row

ICONS: dict[Answer, str] = {"yes": "✓", "undecided": "~", "no": "✗", "not meaningful": "/", "not measured": "–"}
"""Shown beside the answer, so that it is visible without color."""
ARROWS: dict[Better, str] = {"higher": "↑", "lower": "↓", "neither": ""}
PREDICTION = "the prediction"
"""Shown for scores that do not depend on an explainer."""
SHIFT_SCALE = "0: the same words, 0.69: entirely different words"
"""How to read a Jensen–Shannon divergence."""
CONDITION_NAMES = {
    "fgm-label": "FGM",
    "pgd-attention": "PGD",
    "reworded": "random words",
    "reworded-top": "highlighted words",
}
"""Condition -> its name in a sentence, if the literature has another one."""


def number(value: float) -> str:
    """Three decimals; two significant digits for small numbers, no decimals for large ones.

    >>> number(0.98765), number(-0.00001234), number(12345.6), number(float("nan"))
    ('0.988', '−1.2e-05', '12,346', 'not defined')
    """
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    style = ",.0f" if size >= 1000 else ".1e" if 0 < size < 0.001 else ""
    return ("−" if value < 0 else "") + (format(size, style) if style else decimals(size, 3))


def short_number(value: float) -> str:
    """A limit or a bound, with at most three significant digits.

    >>> short_number(0.05), short_number(1.0), short_number(0.6931471805599453), short_number(-1)
    ('0.05', '1', '0.693', '−1')
    """
    return significant(value, 3).replace("-", "−") if math.isfinite(value) else number(value)


def count_text(number: int, noun: str) -> str:
    """
    >>> count_text(1, "text"), count_text(2000, "text")
    ('1 text', '2,000 texts')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def measure_noun(explainer: str) -> str:
    """The noun for the weights of an explainer.

    >>> measure_noun("attention"), measure_noun("rationale"), measure_noun("gradient")
    ('attention', 'selection', 'weight')
    """
    return {"attention": "attention", "rationale": "selection"}.get(explainer, "weight")


def condition_name(condition: str) -> str:
    """The name of a perturbation or comparison in a sentence.

    >>> condition_name("fgm-label"), condition_name("3-synonyms")
    ('FGM', '3 synonyms')
    """
    return CONDITION_NAMES.get(condition, condition.replace("-", " "))


def audit_subject(facts: Mapping[str, str]) -> str:
    """The audited model, explainer and texts, as one line; empty if too little is known.

    >>> audit_subject({"model": "m", "explanation": "attention", "texts": "100 of 400 texts, drawn with seed 0"})
    'Explanation: attention · Model: m · 100 of 400 texts, drawn with seed 0'
    """
    if not {"explanation", "model", "texts"} <= facts.keys():
        return ""
    model = ", ".join(facts[name] for name in ("model", "model type") if name in facts)
    return f"Explanation: {facts['explanation']} · Model: {model} · {facts['texts']}"


def listed(names: Sequence[str]) -> str:
    """
    >>> listed(["stability", "faithfulness", "plausibility"])
    'stability, faithfulness and plausibility'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def interval(row: Row) -> str:
    return "no interval" if row.interval is None else f"{number(row.interval[0])} to {number(row.interval[1])}"


def explainer_name(row: Row) -> str:
    return str(row.settings.get("explainer", PREDICTION))


def span(fact: Fact) -> str:
    """The range of a measure.

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
    ('↓\xa0lower is better', 'neither direction is better')
    """
    return (
        "neither direction is better"
        if better == "neither"
        else f"{ARROWS[better]}\N{NO-BREAK SPACE}{better} is better"
    )


def code(value: object) -> str:
    """Quote a value as Markdown code that is also valid in a table cell.

    >>> print(code("5 stars"), code("a|b"), code("`"))
    `5 stars` `a\\|b` `` ` ``
    """
    text = " ".join(str(value).split()).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    edge = " " if len(fence) > 1 else ""  # keep the backticks of the text apart from the fence
    return f"{fence}{edge}{text}{edge}{fence}"


BINS = ("under 0.25", "under 0.5", "under 0.75", "up to 1")
"""Bins of the largest weight, as in Jain & Wallace 2019 and SEAT (Fig. 2)."""


def bin_of(share: float) -> str:
    """
    >>> bin_of(0.1), bin_of(0.25), bin_of(1.0)
    ('under 0.25', 'under 0.5', 'up to 1')
    """
    return BINS[min(int(4 * share), 3)]
