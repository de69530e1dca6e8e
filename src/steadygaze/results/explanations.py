"""Explanations: a list of Explanation for a notebook (HTML) and for pandas (a table).  Does not import torch."""

from typing import TYPE_CHECKING, Any, overload

from steadygaze.core.errors import UserError
from steadygaze.results.explanation import Explanation

if TYPE_CHECKING:
    from typing import SupportsIndex

    from pandas import DataFrame
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

MOST_SHOWN = 100
"""Explanations that a notebook shows."""


class Explanations(list[Explanation]):
    """A list of explanations; slices are Explanations, too."""

    @overload
    def __getitem__(self, index: "SupportsIndex") -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: Any) -> Any:
        items = super().__getitem__(index)
        return Explanations(items) if isinstance(index, slice) else items

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        """Read the explanations of a saved report."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(cls, handler.generate_schema(list[Explanation]))

    def to_pandas(self) -> "DataFrame":
        """One row per text and token: text (its position), label, target, explainer, token, start, end, weight.

        `label` is the predicted class, `target` the explained one.  Bounds of the weights are low and high, if known.
        """
        try:
            import pandas
        except ImportError:
            raise UserError("to_pandas() needs pandas, which is not installed: pip install pandas.") from None
        rows = [
            (i, e.label, e.explained_label, e.explainer, token, *span, weight, *bounds)
            for i, e in enumerate(self)
            for token, span, weight, bounds in zip(
                e.tokens, e.spans, e.weights, e.bounds or [(None, None)] * len(e), strict=True
            )
        ]
        names = ("text", "label", "target", "explainer", "token", "start", "end", "weight", "low", "high")
        table = pandas.DataFrame(rows, columns=names)
        return table if any(e.bounds is not None for e in self) else table.drop(columns=["low", "high"])

    def _repr_html_(self) -> str:
        more = len(self) - MOST_SHOWN
        note = f"<div>… and {more:,} more</div>" if more > 0 else ""
        return "".join(e._repr_html_() for e in self[:MOST_SHOWN]) + note
