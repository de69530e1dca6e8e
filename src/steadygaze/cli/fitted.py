"""What is said of an explainer that was fitted: its numbers, what each means, and whether it talks in code."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steadygaze.record import Row
from steadygaze.report.warned import FIDELITY, POST_HOC, warned
from steadygaze.report.words import counted, interval, number

if TYPE_CHECKING:
    from rich.console import Group

MASK = "mask-loss"
MEANING = {
    POST_HOC: "how often the black box says the same of the selected words alone",
    f"{POST_HOC}/unselected": "… and of the text without them",
    FIDELITY: "how often the explainer's own approximator guesses it from the selected words",
    MASK: "what a judge loses who sees only which places were selected, in nats; near 0 they alone tell the label",
}


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
