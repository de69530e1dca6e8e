"""Numbers and data of docs/results/seat.md and docs/results/kitada.md, from the records of `steadygaze reproduce`."""

from studies.numbers import Number
from studies.papers import kitada, seat
from studies.papers.comparisons import Table
from studies.tables import markdown


def numbers() -> list[Number]:
    return [*seat.numbers(), *kitada.numbers()]


def data() -> dict[str, Table]:
    return seat.data() | kitada.data()


def table() -> str:
    """All tables, of the records of the repository."""
    return "\n\n".join(f"{name}\n\n{markdown(rows)}" for name, rows in data().items())
