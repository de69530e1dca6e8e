"""Command line of the timings: `python -m timings list` and `python -m timings run NAME [options]`."""

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from studies.command_line import call, choose, print_list

FOLDER = Path(__file__).parent
HELPERS = {"__main__", "__init__", "harness", "inputs"}
TIMINGS = {file.stem: file for file in FOLDER.glob("*.py") if file.stem not in HELPERS}
TIMINGS |= {file.parent.name: file for file in FOLDER.glob("*/__init__.py")}

application = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__)


@application.command("list")
def list_timings() -> None:
    """Names of the timings, and what each compares."""
    print_list(TIMINGS)


@application.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
)
def run(
    context: typer.Context,
    name: str,
    threads: Annotated[int, typer.Option(help="Threads of torch.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record of the timing as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="File to which the record is appended, as a line of JSON.")] = None,
) -> None:
    """Run a timing and print its ratios; exit with 1 if a limit is missed.  Further options are those of the timing."""
    choose(name, TIMINGS, "timing")
    import torch

    from timings.harness import Result, record

    torch.set_num_threads(threads)
    module = importlib.import_module(f"timings.{name}")
    about = f"{module.__doc__}\n\nAlso --threads N, --json, --out FILE."
    results: list[Result] | int = call(module.run, context.args, f"python -m timings run {name}", about)
    if not isinstance(results, list):  # --help
        return
    line = json.dumps(record(name, context.args, results))
    print(line if as_json else "\n".join(map(str, results)))
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    sys.exit(not all(result.is_met for result in results))


if __name__ == "__main__":
    application()
