"""Messages of the server on standard error: tracebacks may contain texts of users, with escape sequences."""

import logging
from typing import Any

from steadygaze.core.errors import printable

LOGGER = logging.getLogger("steadygaze.serve")


class SafeFormatter(logging.Formatter):
    """Replaces control characters, which a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"safe": {"()": SafeFormatter, "format": "%(levelname)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "safe", "stream": "ext://sys.stderr"}},
    "loggers": {
        name: {"handlers": ["stderr"], "level": "WARNING", "propagate": False}
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", LOGGER.name)
    },
}
"""Configuration of the logging of uvicorn."""
