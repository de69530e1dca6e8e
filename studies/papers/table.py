"""Numbers and data of docs/results/seat.md and docs/results/kitada.md, from the records of `steadygaze reproduce`."""

from studies.numbers import Number
from studies.papers import kitada, seat
from studies.papers.comparisons import Table


def numbers() -> list[Number]:
    return [*seat.numbers(), *kitada.numbers()]


def data() -> dict[str, Table]:
    return seat.data() | kitada.data()
