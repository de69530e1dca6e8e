"""The command line: parse, call, print.  What the verbs do is in `verbs`; nothing heavy is imported until a verb runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement was not met,
2 the input is wrong, 70 our own fault, 130 interrupted.
"""

import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer

from steadygaze.cli import (
    audit_command,
    compare_command,
    fit_explainer_command,
    list_command,
    predict_command,
    train_command,
)
from steadygaze.cli.application import app
from steadygaze.cli.output_streams import standard_streams
from steadygaze.core.errors import RequirementNotMet, UserError, one_line

MOST_LINES = 50
"""Requirements that are listed when they are not met."""
MEMORY = "there is not enough memory: choose a smaller --batch-size or a smaller model, or read fewer texts"
UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""Of click, which typer may bring with it."""
COMMANDS = (
    train_command.train,
    predict_command.predict,
    predict_command.explain,
    fit_explainer_command.fit_explainer,
    audit_command.audit,
    predict_command.certify,
    compare_command.compare,
    list_command.list_,
    list_command.demo,
)
"""In the order that the help shows."""

app.registered_commands.sort(key=lambda command: COMMANDS.index(command.callback))


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: every way a run can end, as an exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams():
        try:
            code = app(given, standalone_mode=not given)  # without arguments typer prints the help
            sys.stdout.flush()
        except UserError as error:
            _stop(2, f"error: {error}")
        except UsageError as error:
            _stop(2, f"error: {_usage(error)}")
        except RequirementNotMet as error:
            _stop(1, *(f"requirement not met: {message}" for message in error.args))
        except KeyboardInterrupt:
            _stop(130)
        except OSError as error:  # no permission, no room, a folder where a file should be
            _stop(2, f"error: {error}")
        except Exception as error:
            if _out_of_memory(error):
                _stop(2, f"error: {MEMORY}")
            with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
                traceback.print_exc(file=log)
            _stop(70, f"this is our own fault, not yours; please report it with the file {log.name}")
        sys.exit(code if isinstance(code, int) else 0)


def _out_of_memory(error: Exception) -> bool:
    """Torch has a RuntimeError for the memory of the CPU, and an OutOfMemoryError for that of a GPU."""
    named = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or named


def _usage(error: Any) -> str:
    """What is wrong with the arguments, and the command whose help lists the right ones."""
    inner = error.ctx is not None and error.ctx.parent is not None
    command = f"steadygaze {error.ctx.info_name} --help" if inner else "steadygaze --help"
    message = " ".join(error.format_message().split())
    return f"{message.rstrip('.')}; see: {command}"


def _stop(code: int, *messages: str) -> None:
    with suppress(OSError):  # a message that cannot be printed does not change the exit code
        for message in messages[:MOST_LINES]:
            print(one_line(message), file=sys.stderr)
        if len(messages) > MOST_LINES:
            print(f"… and {len(messages) - MOST_LINES:,} more", file=sys.stderr)
    sys.exit(code)
