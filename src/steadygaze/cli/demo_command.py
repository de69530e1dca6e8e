"""The command `demo`."""

from pathlib import Path

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import Common, command_help, common_options
from steadygaze.cli.printing import print_json, stderr_console


@app.command(**command_help("demo", "demo --out runs/demo --seed 1", "demo --replace --json"))
@common_options("data_dir", "batch_size", "verbose")
def demo(out: shared.Out = Path("runs/demo"), replace: shared.Replace = False, *, common: Common) -> None:
    """Train three models on a built-in corpus, audit two of them, and write their reports."""
    from steadygaze.cli.demo import run_demo

    result = run_demo(out, common.device, common.seed, stderr_console(common), replace)
    if common.json:
        print_json(result)
