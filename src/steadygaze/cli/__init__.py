"""The command line: parse, call, print.  Heavy imports wait until a command runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement is not met
(only audit), 2 wrong input, 70 internal error, 130 interrupted.
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
"""Unmet requirements that are printed."""
MEMORY = "not enough memory: choose a smaller --batch-size or a smaller model, or read fewer texts"
UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""From click, or from the copy of click in typer."""
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
"""In the order of the help."""

app.registered_commands.sort(key=lambda command: COMMANDS.index(command.callback))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    with standard_streams():
        try:
            code = app(words, standalone_mode=not words)  # without arguments typer prints the help
            sys.stdout.flush()
        except UserError as error:
            _stop(2, f"error: {error}")
        except UsageError as error:
            _stop(2, f"error: {_usage(error)}")
        except RequirementNotMet as error:
            _stop(1, *(f"requirement not met: {message}" for message in error.args))
        except KeyboardInterrupt:
            _stop(130)
        except OSError as error:  # no permission, full disk, a folder instead of a file
            _stop(2, f"error: {error}")
        except Exception as error:
            if _out_of_memory(error):
                _stop(2, f"error: {MEMORY}")
            with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
                traceback.print_exc(file=log)
            _stop(70, f"internal error; please report it with the file {log.name}")
        sys.exit(code if isinstance(code, int) else 0)


def _out_of_memory(error: Exception) -> bool:
    """Torch raises a RuntimeError for CPU memory and an OutOfMemoryError for GPU memory."""
    from_torch = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or from_torch


def _usage(error: Any) -> str:
    """Describe the wrong arguments and name the command that shows the help."""
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
