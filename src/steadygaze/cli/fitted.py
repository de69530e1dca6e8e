"""What is said of an explainer that was fitted: its numbers, what each means, and whether it talks in code."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steadygaze.record import Row
from steadygaze.report.words import counted, interval, number

if TYPE_CHECKING:
    from rich.console import Group

POST_HOC, REST, FIDELITY, MASK = "post-hoc-accuracy", "post-hoc-accuracy/unselected", "fidelity", "mask-loss"
MEANING = {
    POST_HOC: "how often the black box says the same of the selected words alone",
    REST: "… and of the text without them",
    FIDELITY: "how often the explainer's own approximator guesses it from the selected words",
    MASK: "what a judge loses who sees only which places were selected, in nats; near 0 they alone tell the label",
}
GAP = 0.1
"""How far the black box must stay behind the approximator, intervals apart, before that is called a code."""
CURE = "random-pretraining"


def shown(rows: Sequence[Row]) -> "Group":
    """For a terminal: numbers with their meaning, then what must not be overlooked."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure", no_wrap=True)
    for name in ("value", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what it means")
    for row in rows:
        table.add_row(row.measure, number(row.value), interval(row), MEANING.get(row.measure, ""))
    loud = [Text(f"! {sentence}", style="bold yellow") for sentence in warned(rows)]
    many = counted(rows[0].n, "text") if rows else "no texts"
    return Group(Text(f"On {many} that it was not fitted to:"), table, *loud)


def warned(rows: Sequence[Row]) -> list[str]:
    """What a person must know before believing it."""
    found = {row.measure: row for row in rows}
    if not {POST_HOC, FIDELITY} <= found.keys() or not _apart(found[FIDELITY], found[POST_HOC]):
        return []
    own, black = found[FIDELITY], found[POST_HOC]
    return [
        f"It talks in code: from what is selected its own approximator guesses the label {own.value:.0%} of the time, "
        f"the black box finds it there {black.value:.0%} of the time.  What is selected is a sign that selector and "
        "approximator agreed on, and no reason." + _advice(own)
    ]


def _advice(row: Row) -> str:
    able = row.settings.get("explainer") != "ail" and row.settings.get("technique") != CURE
    return f"  --technique {CURE} is made against that." if able else ""


def _apart(higher: Row, lower: Row) -> bool:
    """By more than GAP, even at the near ends of their intervals."""
    least = higher.interval[0] if higher.interval else higher.value
    most = lower.interval[1] if lower.interval else lower.value
    return least - most > GAP
