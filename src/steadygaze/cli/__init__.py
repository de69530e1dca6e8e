"""The command line: parse, call, print.  What the verbs do is in `verbs`; nothing heavy is imported until a verb runs.

Results go to standard output, everything else to standard error.  Exit codes: 0 done, 1 a requirement was not met,
2 the input is wrong, 70 our own fault, 130 interrupted.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

from steadygaze.cli import auditing, certifying, comparing, explain_fitting, reading, showing, training
from steadygaze.cli.app import app
from steadygaze.errors import RequirementNotMet, UserError

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
    try:
        app(arguments)
    except UserError as error:
        _stop(f"error: {error}", 2)
    except RequirementNotMet as error:
        _stop(f"requirement not met: {error}", 1)
    except KeyboardInterrupt:
        _stop("", 130)
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:  # no permission, no room, a folder where a file should be
        _stop(f"error: {error}", 2)
    except Exception:
        with tempfile.NamedTemporaryFile("w", prefix="steadygaze-", suffix=".log", delete=False) as log:
            traceback.print_exc(file=log)
        _stop(f"this is our own fault, not yours; please report it with the file {log.name}", 70)


def _stop(message: str, code: int) -> None:
    if message:
        print(message, file=sys.stderr)
    sys.exit(code)
