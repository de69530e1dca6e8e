"""The scores of a fitted explainer in a terminal: numbers, what each means, and warnings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steadygaze.highlight import printable
from steadygaze.record import Row
from steadygaze.report.warned import (
    BLACK_BOX_GAP,
    BY_CLASS,
    FIDELITY,
    GAP,
    NO_WORDS,
    POST_HOC,
    RANDOM_WORDS,
    READER,
    warned,
)
from steadygaze.report.words import counted, interval, number

if TYPE_CHECKING:
    from rich.console import Group

MASK = "mask-loss"
MEANING = {
    POST_HOC: "how often the black box predicts the same from the selected words alone",
    f"{POST_HOC}/unselected": "… and from the text without them",
    READER: "how often a classifier trained on random words predicts it from the selected words",
    RANDOM_WORDS: "… from as many random words",
    NO_WORDS: "… from nothing",
    FIDELITY: "how often the explainer's own approximator predicts it from the selected words",
    GAP: "fidelity minus the independent reader's accuracy, each predicted class counting alike; near 0 if the words "
    "carry the label.  A warning needs both gaps above 0.05",
    BLACK_BOX_GAP: "fidelity minus post-hoc accuracy, each predicted class counting alike",
    MASK: "loss of a classifier that sees only the selected positions, in nats; near 0: positions tell the label",
}


def meaning(row: Row) -> str:
    """What a number means, in a few words."""
    if row.measure == BY_CLASS:
        return f"… for the predicted class {printable(str(row.settings.get('class')))}"
    return MEANING.get(row.measure, "")


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
        table.add_row(row.measure, number(row.value), interval(row), meaning(row))
    loud = [Text(f"! {sentence}", style="bold yellow") for sentence in warned(rows)]
    many = counted(rows[0].n, "text") if rows else "no texts"
    return Group(Text(f"On {many} that it was not fitted to:"), table, *loud)
