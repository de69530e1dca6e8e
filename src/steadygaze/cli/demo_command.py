"""The command `demo`."""

from pathlib import Path

from steadygaze.cli import app
from steadygaze.cli.application import Common, Out, Replace, command_help, common_options, stderr_console
from steadygaze.cli.output_streams import print_json


@app.command(**command_help("demo", "demo --out runs/demo --seed 1", "demo --replace --json"))
@common_options("data_dir", "batch_size", "verbose")
def demo(out: Out = Path("runs/demo"), replace: Replace = False, *, common: Common) -> None:
    """Train three models on a built-in corpus, audit two of them, and write their reports."""
    from steadygaze.cli.demo import run_demo

    result = run_demo(out, common.device, common.seed, stderr_console(common), replace)
    if common.json:
        print_json(result)
