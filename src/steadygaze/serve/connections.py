"""BoundedProtocol: connections of uvicorn, at most MOST_CONNECTIONS, that do not wait forever for a request."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
"""Open connections; further ones are closed at once.  A process may often open only 1024 files."""
HEADER_SECONDS = 15.0
"""Until the headers of a request are complete."""


class BoundedProtocol(H11Protocol):
    """A connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MOST_CONNECTIONS:
            transport.abort()
            return
        super().connection_made(transport)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport is not None:
            super().data_received(data)
            self._watch_headers()

    def _watch_headers(self) -> None:
        """Start the clock while the headers of a request are incomplete, and stop it when they are complete."""
        cycle: Any = self.cycle
        waits = self.conn.their_state is h11.IDLE and (cycle is None or cycle.response_complete)
        if waits and self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
        elif not waits:
            self._stop_clock()

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        if self.transport is not None:
            super().connection_lost(exc)
