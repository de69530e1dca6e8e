"""steadygaze list and demo: what there is."""

from pathlib import Path
from typing import Annotated

import typer

from steadygaze.cli.application import (
    Common,
    Out,
    Replace,
    app,
    as_json,
    common_options,
    stderr_console,
    stdout_console,
)


@app.command("list", epilog="Example: steadygaze list techniques")
@common_options
def list_(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="corpora, encoders, techniques, explainers or measures.")],
    *,
    common: Common,
) -> None:
    """List what there is to choose from."""
    from rich.table import Table

    from steadygaze.cli.registry_listing import list_registry as listing

    rows = listing(kind)
    if common.json:
        as_json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(kind, no_wrap=True)
    table.add_column("")
    for row in rows:
        table.add_row(row["name"], row["about"])
        for field in row["settings"]:
            table.add_row(f"  --set {field['name']}={field['default']}", field["about"] or "", style="dim")
    stdout_console().print(table)


@app.command(epilog="Example: steadygaze demo --out runs/demo")
@common_options
def demo(out: Out = Path("runs/demo"), replace: Replace = False, *, common: Common) -> None:
    """The whole story on a built-in corpus: train, explain, and a report to open in a browser."""
    from steadygaze.cli.demo import run_demo as tell

    result = tell(out, common.device, common.seed, stderr_console(common), replace)
    if common.json:
        as_json(result)
