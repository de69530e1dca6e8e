"""The command line: parse, call, print.  What the verbs do is in `verbs`; nothing heavy is imported until a verb runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement was not met,
2 the input is wrong, 70 our own fault, 130 interrupted.
"""

import io
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from steadygaze.cli import auditing, certifying, comparing, explain_fitting, reading, showing, training
from steadygaze.cli.app import app
from steadygaze.errors import RequirementNotMet, UserError
from steadygaze.escape import one_line

MOST_LINES = 50
"""Requirements that are listed when they are not met."""
UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""Of click, which typer may bring with it."""
VERBS = (
    training.train,
    reading.predict,
    reading.explain,
    explain_fitting.explain_fit,
    auditing.audit,
    certifying.certify,
    comparing.compare,
    showing.list_,
    showing.demo,
)
"""In the order that the help shows."""

app.registered_commands.sort(key=lambda command: VERBS.index(command.callback))


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: every way a run can end, as an exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with _readable_output():
        try:
            code = app(given, standalone_mode=not given)  # without arguments typer prints the help
        except UserError as error:
            _stop(2, f"error: {error}")
        except UsageError as error:
            _stop(2, f"error: {_usage(error)}")
        except RequirementNotMet as error:
            _stop(1, *(f"requirement not met: {message}" for message in error.args))
        except KeyboardInterrupt:
            _stop(130)
        except BrokenPipeError:  # the reader of our output has gone, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except OSError as error:  # no permission, no room, a folder where a file should be
            _stop(2, f"error: {error}")
        except Exception:
            with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
                traceback.print_exc(file=log)
            _stop(70, f"this is our own fault, not yours; please report it with the file {log.name}")
        sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _readable_output() -> Iterator[None]:
    """Characters that a terminal cannot encode are replaced; a warning is one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *_, **__: f"! {one_line(message, 490)}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def _usage(error: Any) -> str:
    """What is wrong with the arguments, and the command whose help lists the right ones."""
    inner = error.ctx is not None and error.ctx.parent is not None
    command = f"steadygaze {error.ctx.info_name} --help" if inner else "steadygaze --help"
    message = " ".join(error.format_message().split())
    return f"{message.rstrip('.')}; see: {command}"


def _stop(code: int, *messages: str) -> None:
    for message in messages[:MOST_LINES]:
        print(one_line(message), file=sys.stderr)
    if len(messages) > MOST_LINES:
        print(f"… and {len(messages) - MOST_LINES:,} more", file=sys.stderr)
    sys.exit(code)
