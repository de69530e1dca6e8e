"""The application that verbs are added to, and what they share: where results go, and where words for people go."""

import gc
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import steadygaze
from steadygaze.cli.streams import output_closed
from steadygaze.escape import one_line, safe_json
from steadygaze.options import Common

if TYPE_CHECKING:
    from steadygaze.estimator import TextClassifier
    from steadygaze.terminal import Console

T = TypeVar("T")
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=steadygaze.__doc__.split("\n")[0],
    epilog="Start with: [bold]steadygaze demo[/bold]",
)


def _version(asked: bool) -> None:
    if asked:
        print(f"steadygaze {steadygaze.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def loaded(model: Path, common: Common) -> "TextClassifier":
    from steadygaze.estimator import load

    clf = load(model, common.device)
    settled()
    return clf


def settled() -> None:
    """What is loaded stays: the collector need not look through it again after every few texts."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # what is made of a text holds no cycles


def console(common: Common) -> "Console":
    """For people: standard error, so that standard output holds the result alone."""
    from steadygaze.terminal import Console

    return Console(stderr=True, quiet=common.quiet)


def screen() -> "Console":
    """For results that are drawn: standard output."""
    from steadygaze.terminal import Console

    return Console()


def show(message: object) -> None:
    """One line of a result."""
    print(one_line(message))


def as_json(value: Any) -> None:
    as_lines([json.dumps(value, ensure_ascii=False, indent=1).encode(errors="replace")])


def as_lines(lines: Iterable[bytes]) -> None:
    """JSON, in UTF-8 whatever the encoding of standard output."""
    sys.stdout.flush()  # what was printed before comes before
    for line in while_read(lines):
        sys.stdout.buffer.write(safe_json(line) + b"\n")
    sys.stdout.flush()


def while_read(items: Iterable[T]) -> Iterator[T]:
    """Items to print, until the reader of standard output has gone."""
    for item in items:
        if output_closed():
            return
        yield item
