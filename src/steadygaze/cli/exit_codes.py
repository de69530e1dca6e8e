"""The exit codes of the command line, and their list in `--help`."""

UNMET = 1
"""Only of audit."""
WRONG_INPUT = 2
INTERNAL_ERROR = 70
SIGNAL = 128
"""Plus the number of the signal that interrupted the command."""

_DONE, _WRONG = "0 done", f"{WRONG_INPUT} wrong input; {INTERNAL_ERROR} internal error"
_INTERRUPTED = "130 interrupted (SIGTERM 143, SIGHUP 129)"
_UNMET = f"{UNMET} a requirement is not met, or --verify finds a difference"
EXIT_CODES = f"{_DONE}; {_WRONG}; {_INTERRUPTED}"
AUDIT_EXIT_CODES = f"{_DONE}; {_UNMET}; {_WRONG}; {_INTERRUPTED}: --html has the finished measures"
ALL_EXIT_CODES = f"{EXIT_CODES}; {_UNMET} (only audit)"
