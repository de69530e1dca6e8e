"""SecurityMiddleware: who may call the server, how much, and what a browser may do with its answers.

    Host             only the names of this server: another name is DNS rebinding
    Origin           only pages of this server may send requests that change something or cost time
    Content-Type     JSON or a table: types that a form of a foreign page cannot send
    Authorization    Bearer TOKEN, if the server has a token; compared in constant time
    size             a body of at most MOST_BYTES, MOST_AUDITED or, for a file, MOST_UPLOADED, counted while it arrives
    memory           bodies of at most MOST_IN_FLIGHT in all requests together
    speed            a body that pauses for PAUSE seconds, or takes longer than UPLOAD_TIME in all, is given up
    rate             at most `rate` requests per second and client address, with short bursts

Static files and /healthz need no token: they contain no data.
"""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Count = Callable[[Scope, int, float], None]
"""(scope, status, seconds) of an answered request."""

MOST_BYTES = 4 << 20
MOST_AUDITED = 16 << 20
MOST_UPLOADED = 256 << 20
MOST_IN_FLIGHT = 512 << 20
UPLOADS = "/v1/explain-file"
AUDITS = "/v1/audit"
TOO_LARGE = (
    "too-large",
    f"the request exceeds {MOST_BYTES >> 20} MiB, an audit {MOST_AUDITED >> 20} MiB, "
    f"or a file {MOST_UPLOADED >> 20} MiB: send fewer texts at a time",
)
BUSY = "busy", "too many requests are waiting: try again in a second"
STOPPING = "stopping", "the server is being stopped: send the request again when it runs"
TOO_SLOW = "too-slow", "the request arrives too slowly: send it again"
REFUSED = "steadygaze.refused"
"""Key of the scope: the status with which a body was refused."""
EARLIER = "steadygaze.error"
"""Key of the scope: an error that is still to be answered."""
GONE = "steadygaze.gone"
"""Key of the scope: what is called with an error when the client has closed the connection."""
current_scope: ContextVar[Scope | None] = ContextVar("current_scope", default=None)
"""The request of this task."""
PAUSE, UPLOAD_TIME = 20.0, 600.0
"""Seconds between two parts of a body, and of a whole body."""
CONTENT_TYPES = ("application/json", "text/csv", "application/octet-stream")
READ_ONLY = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
OWN_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
NO_STORE = (b"cache-control", b"no-store")
NO_CACHE = (b"cache-control", b"no-cache")  # static files: asked again, so that an update of the package is seen
MOST_CLIENTS = 10_000
"""Addresses whose rate is remembered."""


@dataclass(frozen=True)
class Access:
    """Who may call the server."""

    hosts: frozenset[str]
    """Values of Host, with the port: 127.0.0.1:8000."""
    token: str | None = None
    rate: float = 200.0
    """Requests per second and client."""
    burst: float = 400.0


@dataclass
class SecurityMiddleware:
    """ASGI middleware."""

    app: App
    access: Access
    count: Count = lambda scope, status, seconds: None
    buckets: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Client -> requests that it may still send, and the time of the last one."""
    in_flight: int = 0
    """Bytes of the bodies that are being received or answered; files are on disk and do not count."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}

        start, is_answered = time.perf_counter(), False

        async def protected_send(message: Message) -> None:
            nonlocal is_answered
            if message["type"] == "http.response.start":
                is_answered = True
                cache = NO_CACHE if scope["path"].startswith("/static/") else NO_STORE
                message["headers"] = [*message.get("headers", ()), *OWN_HEADERS, cache]
                self.count(scope, message["status"], time.perf_counter() - start)
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(protected_send, *refusal)
            return
        body = Body(self, scope, receive)
        current_scope.set(scope)
        try:
            await self.app(scope, body.receive, protected_send)
        except asyncio.CancelledError:  # the server ends, and has waited for this request
            if not is_answered:
                await _answer(protected_send, 503, *STOPPING)
        finally:
            self.in_flight -= body.counted

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """Status, code and sentence; None: the request may pass."""
        path, method = scope["path"], scope["method"]
        if len(headers) < len(scope["headers"]) and _is_ambiguous(scope):
            return 400, "repeated-header", "send Host, Origin, Content-Type and Authorization only once"
        if headers.get("host", "") not in self.access.hosts:
            return 421, "unknown-host", "this server does not answer for the name in Host; use the printed address"
        if not self._within_rate((scope.get("client") or ("",))[0]):
            return 429, "too-many-requests", "too many requests: wait a second"
        if method not in READ_ONLY and not self._from_own_page(headers):
            return 403, "foreign-origin", "requests of pages of other servers are refused"
        if method == "POST" and not _is_accepted(headers):
            return 415, "content-type", f"send one of the content types {', '.join(CONTENT_TYPES)}"
        if headers.get("content-encoding", "identity") != "identity":
            return 415, "content-encoding", "send the body without compression"
        if headers.get("content-length", "0").isdecimal() and int(headers.get("content-length", "0")) > largest(path):
            return 413, *TOO_LARGE
        if path.startswith(("/v1/", "/metrics")) and not self._has_token(headers):
            return 401, "token", "this server needs its token: send the header Authorization: Bearer TOKEN"
        return None

    def _from_own_page(self, headers: dict[str, str]) -> bool:
        origin = headers.get("origin")
        scheme, _, host = (origin or "").partition("://")
        own = scheme in ("http", "https") and host in self.access.hosts
        return (origin is None or own) and headers.get("sec-fetch-site") != "cross-site"

    def _has_token(self, headers: dict[str, str]) -> bool:
        if self.access.token is None:
            return True
        token = headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.access.token.encode())

    def _within_rate(self, client: str) -> bool:
        now = time.monotonic()
        left, before = self.buckets.get(client, (self.access.burst, now))
        left = min(self.access.burst, left + (now - before) * self.access.rate)
        if len(self.buckets) >= MOST_CLIENTS:
            self.buckets.clear()
        self.buckets[client] = (max(left - 1, 0.0), now)
        return left >= 1


def _is_ambiguous(scope: Scope) -> bool:
    """True if a header that decides about access is repeated: another program may read the first value."""
    names = [name.lower() for name, _ in scope["headers"]]
    return any(names.count(name) > 1 for name in (b"host", b"origin", b"content-type", b"authorization"))


def _is_accepted(headers: dict[str, str]) -> bool:
    """True if the body has an accepted type; a request without a body needs none."""
    kind = headers.get("content-type")
    if kind is None and headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return True
    return (kind or "").partition(";")[0].strip().lower() in CONTENT_TYPES


def largest(path: str) -> int:
    """Bytes of a body."""
    return {UPLOADS: MOST_UPLOADED, AUDITS: MOST_AUDITED}.get(path, MOST_BYTES)


class Body:
    """Counts and times a body; FastAPI answers 400 to an error while it reads, so the status is in the scope."""

    def __init__(self, server: SecurityMiddleware, scope: Scope, receive: Receive) -> None:
        self._server, self._scope, self._receive = server, scope, receive
        self._size, self._complete, self._end = 0, False, time.monotonic() + UPLOAD_TIME

    @property
    def counted(self) -> int:
        """Bytes in memory."""
        return 0 if self._scope["path"] == UPLOADS else self._size

    async def receive(self) -> Message:
        if self._complete:  # the next message is the end of the connection
            return await self._receive()
        if REFUSED in self._scope:  # do not wait once more
            raise HTTPException(self._scope[REFUSED])
        try:
            async with asyncio.timeout(min(PAUSE, max(self._end - time.monotonic(), 0.0))):
                message = await self._receive()
        except TimeoutError:
            raise self._refused(408) from None
        before = self.counted
        self._size += len(message.get("body", b""))
        self._server.in_flight += self.counted - before
        self._complete = not message.get("more_body", False)
        if self._size > largest(self._scope["path"]):
            raise self._refused(413)
        if self._server.in_flight > MOST_IN_FLIGHT:
            raise self._refused(503)
        return message

    def _refused(self, status: int) -> HTTPException:
        self._scope[REFUSED] = status
        return HTTPException(status)


async def _answer(send: Send, status: int, code: str, sentence: str) -> None:
    body = json.dumps({"error": {"code": code, "message": sentence}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
