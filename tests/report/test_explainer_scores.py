"""The scores of a fitted explainer in a terminal of 80 columns."""

from io import StringIO

from steadygaze.core.errors import Console
from steadygaze.report.terminal_tables import MEANING, explainer_scores
from steadygaze.results.row import Row


def test_meanings_have_room_in_eighty_columns() -> None:
    """Each is wrapped below its measure; a column of its own had eight characters."""
    console = Console(file=StringIO(), width=80)
    console.print(explainer_scores([Row(name, 0.5, 40, (0.4, 0.6)) for name in MEANING]))
    lines = console.file.getvalue().splitlines()
    assert all(any(line.startswith(f"{name} ") and "0.400 to 0.600" in line for line in lines) for name in MEANING)
    assert sum(len(line.strip()) < 20 for line in lines) <= len(MEANING), "only last lines of a meaning are short"
    assert len(lines) <= 4 * len(MEANING)
