"""Finding: what a protocol found out, one number per text, before it becomes a Row."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from steadygaze.report.report import Answer


@dataclass(frozen=True)
class Finding:
    measure: str
    """A name of the catalogue, and after a slash what it was asked of: jensen-shannon/noise."""
    values: Tensor | None = None
    """(N,) in the order of the texts; NaN where the question makes no sense of a text."""
    explainer: str | None = None
    """Whose words it is about; None: the prediction alone."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """What else it depends on."""
    note: str = ""
    answer: Answer | None = None
    """Of one whose note answers a question, which is then said before anything else."""
    absent: str = ""
    """Why there is no number, where there is none: 'the model shows no attention'."""
    value: float | None = None
    """Of a number that is no mean over texts."""
    interval: tuple[float, float] | None = None
    n: int = 0
    """Of how many texts that number is."""

    def __post_init__(self) -> None:
        if [self.values is not None, self.value is not None, bool(self.absent)].count(True) != 1:
            raise ValueError(f"{self.measure}: exactly one of values, value and absent must be given")
