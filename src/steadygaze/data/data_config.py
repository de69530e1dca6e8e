"""DataConfig: the texts that a command reads, by name."""

from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import Interval

from steadygaze.core.arguments import Option

COUNT = Interval(ge=1, le=(1 << 31) - 1)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Build it with `core.settings.build`, which validates the fields."""

    data: str
    split: Annotated[str | None, Option("Data", "Split to read.", default="test, or the only one")] = None
    limit: Annotated[int | None, COUNT, Option("Data", "Texts, sampled at random.", "N", "all")] = None
    text: Annotated[tuple[str, ...], Option("Data", "Text column; repeat for pairs.", "COL", "text")] = ("text",)
    label: Annotated[str | None, Option("Data", "Label column.", "COL", "label, if there is one")] = None
    rationales: Annotated[str | None, Option("Data", "Column of human rationales.", "COL")] = None
    drop_empty: Annotated[bool, Option("Data", "Skip rows without text instead of stopping.")] = False

    @property
    def columns(self) -> dict[str, Any]:
        """Arguments of `load_corpus`, besides the data and their folder."""
        return {name: getattr(self, name) for name in ("text", "label", "rationales", "drop_empty")}

    @property
    def labeled_columns(self) -> dict[str, Any]:
        """The same for training texts, which need labels."""
        return {**self.columns, "label": "label" if self.label is None else self.label}
