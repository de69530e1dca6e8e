"""Where a data set lives on the Hugging Face hub, and how its tables get here.  The only place that imports `datasets`.

Code from the hub is never run: sets that are scripts there are read from the parquet export that the hub makes of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadygaze.errors import UserError

SAME = {"train": "train", "validation": "validation", "test": "test"}
EXPORT = "refs/convert/parquet"
"""The branch with the hub's own export: one folder for each configuration."""


@dataclass(frozen=True)
class Hub:
    """An address on the hub."""

    id: str
    configuration: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: SAME)
    """Our split -> the hub's."""
    exported: bool = False
    """Whether to read the hub's export, since the set itself is a script."""


def fetch(hub: Hub, name: str) -> dict[str, dict[str, list[Any]]]:
    """Split -> column -> cells, for the splits that the hub has."""
    try:
        import datasets
    except ImportError:
        raise UserError(
            f"{name} is not in the data folder, and the hub needs an extra: pip install 'steadygaze[hub]'; "
            f"or put {name}/<split>.parquet into --data-dir or $STEADYGAZE_DATA."
        ) from None
    place = (
        {"data_dir": hub.configuration or "default", "revision": EXPORT}
        if hub.exported
        else {"name": hub.configuration}
    )
    try:
        found = datasets.load_dataset(hub.id, **place)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise UserError(
            f"{name} is not in the data folder and could not be read from the hub ({hub.id}: {reason}); "
            f"put {name}/<split>.parquet into --data-dir or $STEADYGAZE_DATA."
        ) from None
    return {
        ours: found[theirs].with_format("arrow")[:].to_pydict()
        for ours, theirs in hub.splits.items()
        if theirs in found
    }
