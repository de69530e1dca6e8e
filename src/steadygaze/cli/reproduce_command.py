"""The command `reproduce`."""

import sys
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    config_options,
    output_option,
)
from steadygaze.cli.printing import print_json, print_line, show, stderr_console, stdout_console
from steadygaze.cli.progress_bars import interruptible, print_warnings, progress_bar
from steadygaze.core.errors import UserError
from steadygaze.study.study_options import ReproduceOptions

if TYPE_CHECKING:
    from steadygaze.results.reproduction import Reproduction

LIST = "list"
PRINTING = {"table", "records", "config", "json", "quiet", "verbose"}
"""Parameters that have an effect beside --records."""
RUNNING = {"engine", "workers", "device"}
"""Parameters that have no effect beside --finished."""


@app.command(
    **command_help(
        "reproduce list",
        "reproduce seat/table1 --only sst2,bilstm --seeds 5 --vectors glove.6B.100d.txt.gz",
        "reproduce kitada/table2 --engine ray --out runs/reproduce",
    )
)
@common_options("verbose")
@config_options(ReproduceOptions)
def reproduce(
    ctx: typer.Context,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Table or figure, such as seat/table1; list: all.")],
    out: Annotated[
        Path, output_option("--out", "-o", help="Folder of all tables; the same command resumes a table.")
    ] = Path("runs/reproduce"),
    *,
    settings: dict[str, Any],
    settings_of_all: shared.SettingsOfAll = None,
    finished: Annotated[
        bool, output_option("--finished", help="Print the finished parts of the folder; run nothing.")
    ] = False,
    records: Annotated[
        Path | None,
        output_option("--records", metavar="FILE", help="Print the table of a file of records; run nothing."),
    ] = None,
    engine: shared.Engine = "local",
    workers: shared.Workers = None,
    common: Common,
) -> None:
    """Run a published table on your machine, and print the paper's numbers beside ours."""
    from steadygaze.core.settings import parse

    of_all = parse(settings_of_all or [])
    options = ReproduceOptions(**settings, seed=common.seed, batch_size=common.batch_size, settings=of_all)
    if table == LIST:
        _list(out, options, common)
    elif records is not None:
        names = {str(parameter.name) for parameter in ctx.command.params}
        _refuse_options(ctx, names - PRINTING, "--records prints a file and runs nothing")
        _show(_read(table, records), None, common)
    elif finished:
        _refuse_options(ctx, RUNNING, "--finished prints what is in the folder and runs nothing")
        _show(_collect(table, options, out, common), out, common)
    else:
        _show(_run(table, options, out, common, engine, workers), out, common)


def _list(out: Path, options: ReproduceOptions, common: Common) -> None:
    from rich.table import Table

    from steadygaze.study.published_tables import published_tables
    from steadygaze.study.table_blocks import finished_cells, missing_data

    rows: list[dict[str, Any]] = []
    for name, table in published_tables().items():
        finished, cells = finished_cells(table, out, options)
        missing = missing_data(table, common.data_dir)
        rows.append({"name": name, "title": table.title, "missing": missing, "cells": cells, "finished": finished})
    if common.json:
        print_json(rows)
        return
    printed = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("table", "title", "data", "cells", "finished"):
        printed.add_column(
            title, no_wrap=title == "table", justify="right" if title in ("cells", "finished") else "left"
        )
    for row in rows:
        data = f"missing: {', '.join(row['missing'])}" if row["missing"] else "at hand" if row["cells"] else "–"
        printed.add_row(row["name"], row["title"], data, str(row["cells"]), str(row["finished"]))
    stdout_console().print(printed)


def _refuse_options(ctx: typer.Context, names: Set[str], reason: str) -> None:
    """Refuse options on the command line that have no effect."""
    others: list[Any] = [parameter for parameter in ctx.command.params if parameter.name in names]
    sources = {parameter.opts[0]: ctx.get_parameter_source(parameter.name) for parameter in others}
    typed = [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if typed:
        raise UserError(f"{reason}: remove {', '.join(typed)}")


def _read(name: str, records: Path) -> "Reproduction":
    from steadygaze.results.reproduction import Reproduction
    from steadygaze.study.published_tables import find_table

    reproduction, _ = Reproduction.from_records(records)
    if reproduction.table != find_table(name).key:
        raise UserError(f"{records} has the records of {reproduction.table}, not of {name}")
    return reproduction


def _collect(name: str, options: ReproduceOptions, out: Path, common: Common) -> "Reproduction":
    from steadygaze.study.compare import StudyRuntime
    from steadygaze.study.published_tables import find_table
    from steadygaze.study.reproduce import collect

    command = ("steadygaze", *sys.argv[1:])
    return collect(find_table(name), options, StudyRuntime(out, common.data_dir, command=command), finished=True)


def _run(
    name: str, options: ReproduceOptions, out: Path, common: Common, engine: str, workers: int | None
) -> "Reproduction":
    from steadygaze.study.compare import StudyRuntime
    from steadygaze.study.published_tables import find_table
    from steadygaze.study.reproduce import reproduce

    table, console = find_table(name), stderr_console(common)
    resume = f"{out} keeps the finished models: run the same command again to continue"
    with (
        interruptible(console, lambda: resume if (out / name).is_dir() else ""),
        progress_bar(console, each=True) as on_progress,
        print_warnings(console),
    ):
        command = ("steadygaze", *sys.argv[1:])
        runtime = StudyRuntime(out, common.data_dir, common.device, on_progress, command, engine, workers)
        return reproduce(table, options, runtime)


def _show(reproduction: "Reproduction", out: Path | None, common: Common) -> None:
    if common.json:
        print_json(reproduction.to_dict())
        return
    for line in reproduction.to_markdown().splitlines():
        show(line)
    if out is not None:
        print_line(stderr_console(common), f"open {out / reproduction.table / 'table.html'} in a browser")
