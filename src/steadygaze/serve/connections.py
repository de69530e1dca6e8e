"""BoundedProtocol: connections of uvicorn, at most MOST_CONNECTIONS, with limits of time and size for the headers.

A client that does not read its answer is closed as well.
"""

import asyncio
from importlib.util import find_spec
from typing import Any

if find_spec("httptools") is not None:  # the parser in C needs half the time
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
else:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]

MOST_CONNECTIONS = 512
"""Open connections; further ones are closed at once.  A process may often open only 1024 files."""
HEADER_SECONDS = 15.0
"""Until the headers of a request are complete."""
STALL_SECONDS = 60.0
"""Without any progress of an answer that the client does not read."""
LONG_PART = 4 << 10
"""Bytes of a part of an answer that is not kept for the next one."""
LARGEST_HEAD = 64 << 10
"""Bytes of the headers of a request."""


class JoinedWrites:
    """A transport that writes the headers and the body of a short answer with one call of the system."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write at the end of this turn of the loop; a long part at once, for the flow control to know of it."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        if len(data) > LONG_PART:
            self.flush()

    def flush(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._parts.clear()
        self._transport.abort()


class BoundedProtocol(Protocol):
    """A connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= MOST_CONNECTIONS:
            transport.abort()
            return
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport is not None:  # None: the connection was refused
            self._head += len(data)
            super().data_received(data)
            self._watch_headers()

    def _watch_headers(self) -> None:
        """Start the clock while the headers of a request are incomplete, and stop it when they are complete."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._head = 0
            self._stop_clock()
        elif self._head > LARGEST_HEAD:
            self.transport.abort()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_stall()
        super().resume_writing()

    def _stop_stall(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._stop_stall()
        if self.transport is not None:
            super().connection_lost(exc)
