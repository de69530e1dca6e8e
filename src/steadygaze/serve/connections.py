"""BoundedProtocol: connections of uvicorn, limited in number, with limits of time and size for the headers.

There are at most MOST_CONNECTIONS, and MOST_OF_ADDRESS of one address.  A further one replaces the oldest one that
waits for a request.  At the second limit, that is one of its own address; at the first limit, one of the address that
has most of these.  Half-open connections, also of many addresses, do not keep out others.

A client that does not read its answer is closed as well.  So is one that sends many requests before their answers:
uvicorn would keep all of them in memory.
"""

import asyncio
from collections import Counter
from itertools import count
from typing import Any

from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from steadygaze.serve.security import GONE

MOST_CONNECTIONS = 512
"""Open connections.  A process may often open only 1024 files."""
MOST_OF_ADDRESS = 64
"""Open connections of one address."""
NUMBERS = count()
"""Numbers of the connections, in their order: the clock of the loop stops during a turn."""
HEADER_SECONDS = 15.0
"""Until the headers of a request are complete."""
STALL_SECONDS = 60.0
"""Without any progress of an answer that the client does not read."""
LONG_PART = 4 << 10
"""Bytes of a part of an answer that is not kept for the next one."""
LARGEST_HEAD = 64 << 10
"""Bytes of the headers of a request."""
MOST_PIPELINED = 32
"""Requests of a connection that wait for the answers of earlier ones; browsers send none of this kind."""


def _host(connection: Any) -> str:
    return str((connection.client or ("",))[0])


class TooManyPipelined(Exception):
    """Ends the parser, which answers 400 and closes the connection."""


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
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Close after the answer is sent; a client that does not read it is closed after STALL_SECONDS."""
        self.flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._loop.call_later(STALL_SECONDS, self._transport.abort)

    def abort(self) -> None:
        self._parts.clear()
        self._transport.abort()


class BoundedProtocol(HttpToolsProtocol):
    """A connection."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._head = 0
        """Bytes of incomplete headers."""
        self._in_head = True
        self._number = next(NUMBERS)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if not self._is_accepted(transport):
            transport.abort()
            return
        joined: Any = JoinedWrites(transport, self.loop)
        super().connection_made(joined)
        self._watch_headers()

    def _is_accepted(self, transport: asyncio.Transport) -> bool:
        """True if the limits allow another connection; an idle one may be closed for it."""
        host = (transport.get_extra_info("peername") or ("",))[0]
        connections: Any = self.connections
        idle = [other for other in connections if other._deadline is not None]
        if sum(map(host.__eq__, map(_host, connections))) >= MOST_OF_ADDRESS:
            idle = [other for other in idle if _host(other) == host]
        elif len(connections) < MOST_CONNECTIONS:
            return True
        elif idle:
            ((host, _),) = Counter(map(_host, idle)).most_common(1)
            idle = [other for other in idle if _host(other) == host]
        if not idle:
            return False
        oldest = min(idle, key=lambda other: other._number)
        oldest.transport.abort()
        self.connections.discard(oldest)  # before the loop reports its end
        return True

    def _unsupported_upgrade_warning(self) -> None:
        """The request is answered as any other; uvicorn would print how to install WebSockets."""

    def data_received(self, data: bytes) -> None:
        if self.transport is not None:  # None: the connection was refused
            self._head += len(data)
            super().data_received(data)
            self._watch_headers()

    def on_message_begin(self) -> None:
        self._head, self._in_head = 0, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; fields behind a body in chunks are ignored, because their number has no limit."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.pipeline) >= MOST_PIPELINED:
            raise TooManyPipelined
        super().on_headers_complete()

    def _watch_headers(self) -> None:
        """Start the clock while the headers of a request are incomplete, and stop it when they are complete.

        The rest of a body whose request has been refused is read until then: the client gets its answer.
        """
        cycle: Any = self.cycle
        if not self._in_head:
            self._head = 0
        if self._head > LARGEST_HEAD:
            self.transport.abort()
        elif cycle is not None and not cycle.response_complete:
            self._stop_clock()
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
            self._give_up()

    def _give_up(self) -> None:
        """Stop the computation: the client has left."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            for end in cycle.scope.get(GONE, ()):
                end(ClientDisconnect())
