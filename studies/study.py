"""What a study can do: run its jobs, print its tables, compute its numbers, write its pages and data."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

from steadygaze.core.atomic_files import write_text
from studies.numbers import Number, Numbers, by_name, read_numbers, write_numbers
from studies.rendering import render

FOLDER = Path(__file__).parent
PAGES = FOLDER.parent / "docs" / "results"
SUFFIX = ".md.jinja"
Data = dict[str, Sequence[Sequence[str]]]
"""Name of a CSV file -> its rows; the first is the heading."""


@dataclass(frozen=True)
class Study:
    """A folder with `run.py`, `table.py` or both: `run` runs jobs; `table`, `numbers` and `data` read their records.

    The table of a study without `table` is its data.

    `numbers()` returns the numbers of `numbers.json`, `data()` the CSV files of docs/results/data.
    `page.md.jinja` is the page of the study's name, `OTHER.md.jinja` the page docs/results/OTHER.md.
    """

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def file(self) -> Path:
        """The file whose docstring describes the study."""
        run = self.folder / "run.py"
        return run if run.exists() else self.folder / "table.py"

    def function(self, action: str) -> Callable[..., Any] | None:
        """`run` of run.py; `table`, `numbers` or `data` of table.py; None: the study has no such function."""
        file = "run" if action == "run" else "table"
        if not (self.folder / f"{file}.py").exists():
            return None
        module = import_module(f"studies.{self.name}.{file}")
        function: Callable[..., Any] | None = getattr(module, action, None)
        return getattr(module, "data", None) if function is None and action == "table" else function

    @property
    def numbers_file(self) -> Path:
        return self.folder / "numbers.json"

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers that are checked in."""
        return read_numbers(self.numbers_file)

    def computed_numbers(self) -> Numbers | None:
        """The numbers of the records; None: the study publishes none."""
        function: Callable[[], list[Number]] | None = self.function("numbers")
        return None if function is None else by_name(function())

    def computed_data(self) -> dict[Path, str]:
        """The CSV files, from the records."""
        function: Callable[[], Data] | None = self.function("data")
        return {} if function is None else {PAGES / "data" / name: csv_text(rows) for name, rows in function().items()}

    def rendered_pages(self) -> dict[Path, str]:
        """The pages, from the numbers that are checked in."""
        names = {template: template.name.removesuffix(SUFFIX) for template in sorted(self.folder.glob(f"*{SUFFIX}"))}
        return {
            PAGES / f"{self.name.replace('_', '-') if name == 'page' else name}.md": render(
                template.read_text(encoding="utf-8"), self.name, lambda study: STUDIES[study].numbers
            )
            for template, name in names.items()
        }

    def write(self) -> list[Path]:
        """Write numbers and data from the records, and the pages from the numbers; the files that were written."""
        if (numbers := self.computed_numbers()) is None:
            return []
        write_numbers(self.numbers_file, numbers)
        self.__dict__.pop("numbers", None)  # those of an earlier file
        texts = self.computed_data() | self.rendered_pages()
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, text)
        return [self.numbers_file, *texts]


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


STUDIES = {
    file.parent.name: Study(file.parent) for name in ("run", "table") for file in sorted(FOLDER.glob(f"*/{name}.py"))
}
