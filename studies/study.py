"""What a study can do: run its jobs, print its tables, write its page."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import jinja2

FOLDER = Path(__file__).parent
PAGES = FOLDER.parent / "docs" / "results"


@dataclass(frozen=True)
class Study:
    """A folder with `run.py`; `table.py` and `page.md.jinja` where records have a table and a generated page."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def file(self) -> Path:
        """The file whose docstring describes the study."""
        return self.folder / "run.py"

    def function(self, action: str) -> Callable[..., Any] | None:
        """`run` or `table`; None: the study has no such function."""
        if not (self.folder / f"{action}.py").exists():
            return None
        function: Callable[..., Any] = getattr(import_module(f"studies.{self.name}.{action}"), action)
        return function

    @property
    def page(self) -> Path:
        return PAGES / f"{self.name.replace('_', '-')}.md"

    def render(self) -> str | None:
        """The page, from the records of the repository; None: the page is not generated."""
        template = self.folder / "page.md.jinja"
        if not template.exists():
            return None
        values: dict[str, Any] = import_module(f"studies.{self.name}.table").page_values()
        environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False)
        return environment.from_string(template.read_text(encoding="utf-8")).render(values)


STUDIES = {file.parent.name: Study(file.parent) for file in sorted(FOLDER.glob("*/run.py"))}
