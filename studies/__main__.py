"""Command line of the studies: `python -m studies list|run|table|page NAME [options]`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from studies.command_line import call, choose, module_doc, print_list
from studies.jobs import compact
from studies.study import STUDIES
from studies.tables import markdown, minus_signs, read_records

application = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)
FILES = {name: study.file for name, study in STUDIES.items()}
PASSED = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


@application.command("list")
def list_studies() -> None:
    """Names of the studies, and what each measures."""
    print_list(FILES)


@application.command(context_settings=PASSED)
def run(context: typer.Context, name: str) -> None:
    """Run a study; `--help` after the name shows its options."""
    _call("run", name, context.args)


@application.command(context_settings=PASSED)
def table(context: typer.Context, name: str) -> None:
    """Print the tables of records: those of the repository, or files and folders after the name."""
    result = _call("table", name, context.args)
    if isinstance(result, dict):
        result = "\n\n".join(f"{file}\n\n{minus_signs(markdown(rows))}" for file, rows in result.items())
    if isinstance(result, str):
        print(result)


@application.command()
def page(name: str) -> None:
    """Write the numbers, data and pages of a study from the records of the repository."""
    choose(name, FILES, "study")
    files = STUDIES[name].write()
    if not files:
        sys.exit(f"{name!r} publishes no numbers.")
    print(*files, sep="\n")


@application.command()
def records(
    paths: list[Path],
    without: Annotated[str, typer.Option(help="Fields to leave out, separated by commas, such as history.")] = "",
) -> None:
    """Print the records of folders or files, one a line."""
    for record in read_records(paths):
        fields = {name: value for name, value in record.items() if name not in without.split(",")}
        print(json.dumps(compact(fields), separators=(",", ":")))


def _call(action: str, name: str, arguments: list[str]) -> object:
    choose(name, FILES, "study")
    function = STUDIES[name].function(action)
    if function is None:
        sys.exit(f"{name!r} has no {action}.")
    return call(function, arguments, f"python -m studies {action} {name}", module_doc(function))


if __name__ == "__main__":
    application()
