"""Commands made of functions: each keyword argument is an option.  `python -m studies` and `... timings` use it."""

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer


def call(function: Callable[..., Any], arguments: list[str], name: str, about: str | None = None) -> Any:
    """Call a function with the arguments of a command line; `about`: the text of `--help`."""
    application = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    application.command(help="\b\n" + (about or function.__doc__ or "").replace("\n\n", "\n\n\b\n"))(function)
    return application(arguments, prog_name=name, standalone_mode=False)


def first_line(file: Path) -> str:
    """The first line of a module's docstring, without importing the module."""
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def print_list(files: dict[str, Path]) -> None:
    """Names, and what each is about."""
    width = max(map(len, files))
    for name, file in sorted(files.items()):
        print(f"{name:{width}}  {first_line(file)}")


def choose(name: str, files: dict[str, Path], kind: str) -> None:
    """Exit with a message if there is no such name."""
    if name not in files:
        sys.exit(f"{name!r} is not a {kind}.  There are: {', '.join(sorted(files))}")
