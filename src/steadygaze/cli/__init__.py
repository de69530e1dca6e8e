"""The command line: parse, call, print.  A command's module is imported when the command is called.

Results go to standard output, everything else to standard error.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

import steadygaze
from steadygaze.cli.exit_codes import ALL_EXIT_CODES
from steadygaze.cli.run_command import run_command

COMMANDS = {
    "train": ("train_command", "Train a classifier and save it as a folder."),
    "predict": ("predict_command", "Predict the labels of texts."),
    "explain": ("explain_command", "Show the weight of each word in a prediction."),
    "word-weights": (
        "word_weights_command",
        "Show which words carry the weight of the explanations of a corpus, per class.",
    ),
    "evaluate": ("evaluate_command", "Measure accuracy, macro-F1, calibration and the scores of each class."),
    "fit-explainer": (
        "fit_explainer_command",
        "Fit an explainer to the predictions of a model; use it with `explain MODEL --explainer DIR`.",
    ),
    "audit": ("audit_command", "Measure how far the explanations of a model can be trusted."),
    "certify": (
        "certify_command",
        "Certify labels and top words against changes of attention weights, or substituted or added words.",
    ),
    "compare": (
        "compare_command",
        "Train techniques with several seeds, audit every model and test the differences.",
    ),
    "tune": ("tune_command", "Search the settings of a technique by validation scores, and save the best model."),
    "reproduce": (
        "reproduce_command",
        "Run a published table on your machine, and print the paper's numbers beside ours.",
    ),
    "serve": (
        "serve_command",
        "Start the web workbench: change words of a text and compare predictions and explanations.",
    ),
    "list": ("list_command", "List corpora, encoders, techniques, explainers, measures or published tables."),
    "demo": ("demo_command", "Train three models on a built-in corpus, audit two of them, and write their reports."),
    "synonyms": ("synonyms_command", "Build, show and check synonym tables."),
}
"""Name -> module and summary, in the order of the help.  The summary is the first line of the command's help."""


class CommandSummary(TyperCommand):
    """A line of the help, until the command is called."""


class CommandGroup(TyperGroup):
    """The commands; each is built when it is called."""

    def __init__(self, *, commands: dict[str, Any], **arguments: Any) -> None:
        summaries = {name: CommandSummary(name, help=summary) for name, (_, summary) in COMMANDS.items()}
        super().__init__(commands=summaries | commands, **arguments)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name = args[0]
        if isinstance(self.commands.get(name), CommandSummary):
            import_module(f"steadygaze.cli.{COMMANDS[name][0]}")  # registers the command
            self.commands[name] = get_group(app).commands[name]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=steadygaze.__doc__.split("\n")[0],
    epilog=f"Start with: [bold]steadygaze demo[/bold]\n\n[bold]Exit codes:[/bold] {ALL_EXIT_CODES}",
)


def _version(requested: bool) -> None:
    if requested:
        print(f"steadygaze {steadygaze.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its exit code; None uses the arguments of the process."""
    _limit_spinning()
    run_command(_application(), arguments)


def _limit_spinning() -> None:
    """Let waiting threads of OpenMP sleep soon, before torch reads the setting.

    By default they spin for milliseconds.  On a busy machine that takes several times the work of training
    (timings/busy_machine.py).
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


@cache
def _application() -> Callable[..., Any]:
    return get_command(app)
