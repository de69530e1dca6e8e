"""Commands made of functions: each keyword argument is an option.  `python -m studies` and `... timings` use it."""

import ast
import dataclasses
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer


def call(function: Callable[..., Any], arguments: list[str], name: str, about: str) -> Any:
    """Call a function with the arguments of a command line; `about`: the text of `--help`."""
    application = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    application.command(help="\b\n" + about.replace("\n\n", "\n\n\b\n"))(_with_options(function))
    return application(arguments, prog_name=name, standalone_mode=False)


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with parameters that typer reads: lists are positional, and a dataclass becomes its fields."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    options: Any = parameters[0].annotation if len(parameters) == 1 else None
    is_dataclass = dataclasses.is_dataclass(options)
    if is_dataclass:
        hints = get_type_hints(options)
        parameters = [_parameter(field, hints[field.name]) for field in dataclasses.fields(options)]

    def with_options(**values: Any) -> Any:
        return function(options(**values)) if is_dataclass else function(**values)

    parameters = [
        parameter.replace(annotation=Annotated[parameter.annotation, typer.Argument(show_default=False)])
        if get_origin(parameter.annotation) is list
        else parameter
        for parameter in parameters
    ]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _parameter(field: dataclasses.Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    annotation = Annotated[hint, typer.Option(help=field.metadata.get("help"))]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def module_doc(function: Callable[..., Any]) -> str:
    return sys.modules[function.__module__].__doc__ or ""


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
