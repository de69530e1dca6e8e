"""The command line: parse, call, print.  Heavy imports wait until a command runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement is not met
(only audit), 2 wrong input, 70 internal error, 130 interrupted.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from typer.main import get_command

from steadygaze.cli import (
    audit_command,
    certify_command,
    compare_command,
    evaluate_command,
    fit_explainer_command,
    list_command,
    predict_command,
    synonyms_command,
    train_command,
    word_weights_command,
)
from steadygaze.cli.application import app
from steadygaze.cli.output_streams import run_command

COMMANDS = (
    train_command.train,
    predict_command.predict,
    predict_command.explain,
    word_weights_command.word_weights,
    evaluate_command.evaluate,
    fit_explainer_command.fit_explainer,
    audit_command.audit,
    certify_command.certify,
    compare_command.compare,
    list_command.list_,
    list_command.demo,
)
"""In the order of the help."""

app.add_typer(synonyms_command.synonyms, name="synonyms")
app.registered_commands.sort(key=lambda command: COMMANDS.index(command.callback))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its exit code; None uses the arguments of the process."""
    run_command(_application(), arguments)


@cache
def _application() -> Callable[..., Any]:
    """Every command with its options, built once per process."""
    return get_command(app)
