"""What must be known before a fitted explainer is believed: whether it talks in code, or had nothing to explain."""

from collections.abc import Sequence

from steadygaze.record import Row

POST_HOC, FIDELITY = "post-hoc-accuracy", "fidelity"
GAP = 0.1
"""How far the black box must stay behind the approximator, intervals apart, before that is called a code."""
CURE = "random-pretraining"
CODE = "It talks in code"
MISREAD = "Its approximator reads other things than the black box does"
ONE_LABEL = "The black box gives the same label to all that this was measured on: the numbers say nothing"
"""Also the note of the rows of which it is so."""


def warned(rows: Sequence[Row]) -> list[str]:
    """By how well it did: what a person must know, a sentence or two each."""
    if any(row.note == ONE_LABEL for row in rows):
        return [f"{ONE_LABEL}; any other selection would do as well."]
    found = {row.measure: row for row in rows}
    if not {POST_HOC, FIDELITY} <= found.keys() or not _apart(found[FIDELITY], found[POST_HOC]):
        return []
    own, black = found[FIDELITY], found[POST_HOC]
    found_there = (
        f"from what is selected its own approximator guesses the label {own.value:.0%} of the time, "
        f"the black box finds it there {black.value:.0%} of the time."
    )
    if own.settings.get("technique") == CURE:  # it had learnt before anybody selected: they cannot have agreed
        return [f"{MISREAD}: {found_there}  What is selected is what persuades the one, and no reason of the other."]
    advice = f"  The technique {CURE} is made against that." if own.settings.get("explainer") != "ail" else ""
    sign = "  What is selected is a sign that selector and approximator agreed on, and no reason."
    return [f"{CODE}: {found_there}{sign}{advice}"]


def _apart(higher: Row, lower: Row) -> bool:
    """By more than GAP, even at the near ends of their intervals."""
    least = higher.interval[0] if higher.interval else higher.value
    most = lower.interval[1] if lower.interval else lower.value
    return least - most > GAP
