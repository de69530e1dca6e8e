"""Measure: a function of explanations or predictions, with its description, its rows and its comparison columns."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steadygaze.results.comparison import Column
from steadygaze.results.row import Better, Fact, MeasureKey

SUBSTITUTIONS = ("1-synonym", "3-synonyms")
VECTORS = ("noise", "fgm-label", "pgd-attention")
PERTURBATIONS = (*VECTORS, *SUBSTITUTIONS)
LABEL_KEPT = tuple(f"{probe}-kept" for probe in SUBSTITUTIONS)
REWORDED = ("reworded", "reworded-top")
OTHER_MODELS = ("seeds", "others")
REPEATED = "repeated"
"""The same text, from other answers of a noisy black box."""
SIZES = tuple(f"{size}%" for size in (1, 5, 10, 20, 50))
GRADIENTS = ("gradient", "gradient-through-attention")

UNIT, SIGNED = (0.0, 1.0), (-1.0, 1.0)
PROBABILITY_SCALE = "0.1: ten percentage points of probability"
WEIGHT_SCALE = "0.1: ten percent of the weight"
Inputs = Literal["", "labels", "weights", "shift", "predictions", "erasure", "choice", "ranking", "selection", "place"]
"""The arguments of a measure: a protocol passes them by name to every measure that declares them.

    ""            none: a protocol calls the measure itself
    labels        probs (B,C), label (B,)
    weights       w (B,T), mask                    normalized weights of one explanation
    shift         x, y (B,T), mask, k              two explanations of a text: under a perturbation, or of two seeds
    predictions   p, q (B,C)                       two predictions for a text
    erasure       full (B,C), and by size, each (B,K,C): erased, kept, changed (both)
    choice        selected, rationales (B,T) bool, mask
    ranking       weights (B,T), rationales (B,T) bool, mask
    selection     selected (B,T) bool, mask
    place         weights (B,T), first (B,T) bool: the words of the first sentence, mask

A measure of a shift or of predictions names its rows in `probes`.
"""
JAIN, SEAT, ADEBAYO = "Jain & Wallace 2019", "Hu et al. 2022", "Adebayo et al. 2018"
BAI, YU, ERASER = "Bai et al. 2021", "Yu et al. 2021", "DeYoung et al. 2020"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure, or one probe of a measure that differs in its description: jensen-shannon/adversarial."""

    name: str
    """Name of the measure, or of one row."""
    function: Callable[..., Any]
    """Pure, batched and masked."""
    bounds: tuple[float, float]
    """Range of the reported number: a mean over texts, or one number for a whole set."""
    direction: Better
    """`neither`: the sign depends on the probe, or the measure is descriptive."""
    citation: str = "—"
    """Such as "Lin 1991"."""
    description: str = ""
    """Empty: the first sentence of the function's docstring."""
    identical: float | None = None
    """The value for identical first two arguments; None if they cannot be identical."""
    symmetric: bool = False
    """True if the first two arguments may be swapped."""
    per_example: bool = True
    """False: one number for a whole set."""
    proportion: bool = False
    """True if each text has 0 or 1, so that the mean is a share of texts, with Wilson's interval."""
    probes: tuple[str, ...] = ("",)
    """Its rows in an audit: a probe or comparison each; '' is the measure itself."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Probe -> plain name of the row, for people who do not know the measure."""
    scale: str = ""
    """How to read the number: '0: unrelated, 1: the same order of words'."""
    columns: tuple[Column, ...] = ()
    """Its columns in the table of a comparison."""
    inputs: Inputs = ""
    """Its arguments: the protocol that passes them reports it."""

    @property
    def sentence(self) -> str:
        """The description."""
        return self.description or re.split(r"  |\n", str(self.function.__doc__))[0]

    @property
    def keys(self) -> list[MeasureKey]:
        """The keys of its rows."""
        key = MeasureKey.parse(self.name)
        return [MeasureKey(key.measure, key.probe or probe) for probe in self.probes]

    @property
    def fact(self) -> Fact:
        """The description, for reports."""
        return Fact(self.sentence, *self.bounds, self.direction, self.citation, self.scale)

    def score(self, values: Mapping[str, Any]) -> Any:
        """Call the function with those of the values that it takes.

        Parameters
        ----------
        values : Mapping
            Argument -> value.

        Returns
        -------
        Tensor or float
            One number per text, or one for the set.
        """
        names = inspect.signature(self.function).parameters
        return self.function(**{name: value for name, value in values.items() if name in names})

    def with_rows_of(self, other: "Measure") -> "Measure":
        """The measure with the rows, labels and columns of another property too.

        Parameters
        ----------
        other : Measure
            A measure of the same name.

        Returns
        -------
        Measure
            A copy.
        """
        return replace(
            self,
            probes=tuple(dict.fromkeys((*self.probes, *other.probes))),
            labels={**self.labels, **other.labels},
            columns=tuple(dict.fromkeys((*self.columns, *other.columns))),
        )

    def label(self, name: str) -> str:
        """The plain name of a row, or its technical one.

        Parameters
        ----------
        name : str
            Name of the row, such as "jensen-shannon/noise".

        Returns
        -------
        str
            The plain name.
        """
        key = MeasureKey.parse(name)
        return self.labels.get("" if str(key) == self.name else key.probe, name)


def measures_of(inputs: Inputs, measures: Iterable[Measure], probe: str | None = None) -> dict[str, Measure]:
    """The measures of these inputs, by name; of those with a row under the probe, if one is named."""
    return {m.name: m for m in measures if m.inputs == inputs and (probe is None or probe in m.probes)}
