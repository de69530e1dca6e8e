"""The command `list`."""

from typing import Annotated

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import Common, command_help, common_options
from steadygaze.cli.printing import print_json, stdout_console


@app.command("list", **command_help("list techniques", "list measures --verbose", "list explainers --json"))
@common_options("data_dir", "device", "batch_size", "seed")
def list_(
    registry: Annotated[
        str, typer.Argument(metavar="REGISTRY", help="corpora, encoders, techniques, explainers, measures or tables.")
    ],
    imports: shared.Imports = None,
    *,
    common: Common,
) -> None:
    """List corpora, encoders, techniques, explainers, measures or published tables."""
    from rich.table import Table

    from steadygaze.cli.registry_listing import list_registry, short_measures

    rows = list_registry(registry)
    if common.json:
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(registry, no_wrap=True)
    table.add_column("")
    for row in short_measures() if registry == "measures" and not common.verbose else rows:
        table.add_row(row["name"], row["about"])
        for field in row["settings"]:
            table.add_row(f"  --set {field['name']}={field['default']}", field["about"] or "", style="dim")
    stdout_console().print(table)
