"""Command line of the figures: `python -m studies.figures NAME [arguments]`; without a name, the list."""

import importlib
import sys
from pathlib import Path

from studies.command_line import call, choose, print_list

HELPERS = {"__init__", "__main__", "style", "text_sizes", "leakage", "papers", "rationales", "stability", "synonyms"}
FIGURES = {file.stem: file for file in Path(__file__).parent.glob("*.py") if file.stem not in HELPERS}


def main(arguments: list[str]) -> None:
    if not arguments:
        return print_list(FIGURES)
    choose(arguments[0], FIGURES, "figure")
    module = importlib.import_module(f"studies.figures.{arguments[0]}")
    call(module.run, arguments[1:], f"python -m studies.figures {arguments[0]}", module.__doc__ or "")
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
