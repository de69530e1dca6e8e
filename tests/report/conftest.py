"""Pages and charts are drawn here, and have placeholders in other tests."""

import json
from collections.abc import Iterator

import pytest

from steadygaze.report import plots

CHARTS: dict[str, str | None] = {}
"""Arguments -> chart."""


@pytest.fixture(scope="module", autouse=True)
def charts_drawn_once() -> Iterator[None]:
    """The same points give the same SVG, as `test_plots.py` tests."""
    draw = plots._draw.__wrapped__  # type: ignore[attr-defined]

    def draw_once(name: str, points: list[dict[str, object]], of: str) -> str | None:
        key = json.dumps([name, points, of])
        if key not in CHARTS:
            CHARTS[key] = draw(name, points, of)
        return CHARTS[key]

    draw_once.__wrapped__ = draw  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "_draw", draw_once)
        yield
