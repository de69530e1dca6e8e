"""Client: send a request until it is answered, and say what is wrong if it is not.

A request is sent at most ATTEMPTS times.  It is sent again after 408, 425, 429 and 5xx, after a connection or a time
that failed, and after a reply that is not the JSON of a completion.  The delay before attempt n is `Retry-After`, or

    d_n = min(FIRST_DELAY · 2^(n−1), LONGEST_DELAY) · u,   u uniform in [½, 1½]

Redirects are not followed: the key goes to the server of the name alone.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import BoundedSemaphore, Event
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import finalize

from steadygaze.adapters.hosted.budget import Budget
from steadygaze.adapters.hosted.request_form import Answer, RequestForm
from steadygaze.adapters.hosted.server import Server
from steadygaze.adapters.prompt import Messages
from steadygaze.core.errors import UserError

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 8
FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0
LONGEST_WAIT = 300.0
"""Longest Retry-After that is waited for."""
TIMEOUT = 120.0
"""Seconds for one attempt."""
LARGEST = 4 << 20
"""Bytes of a reply."""
AGAIN = frozenset({408, 425, 429})
REFUSED = frozenset({400, 422})
"""Statuses of a request whose fields the server may not accept."""
NO_CREDIT = "insufficient_quota"


class FormRefused(UserError):
    """The server does not accept the fields of the request."""


class _Failure(Exception):
    """An attempt failed, and another may not."""

    def __init__(self, problem: str, wait: float | None = None) -> None:
        super().__init__(problem)
        self.wait = wait


@dataclass(eq=False)
class Client:
    server: Server
    budget: Budget
    concurrency: int
    """Requests at a time, of all threads."""

    def __post_init__(self) -> None:
        assert self.server.key is not None  # refuses a key that no header has
        self._http, self._slots = _http_client(), BoundedSemaphore(self.concurrency)
        self.close = finalize(self, self._http.close)

    def ask(self, form: RequestForm, prompt: str | Messages, stop: Event | None = None) -> Answer:
        """The answer to one prompt; once `stop` is set, no further attempt is made."""
        body, stop = form.body(self.server, prompt), stop or Event()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._attempt(form, body)
            except _Failure as failure:
                delay = min(FIRST_DELAY * 2 ** (attempt - 1), LONGEST_DELAY) * random.uniform(0.5, 1.5)
                if attempt == ATTEMPTS or stop.wait(delay if failure.wait is None else failure.wait):
                    raise UserError(
                        f"{self.server.host} did not answer after {attempt} attempts: {failure}.  Finished answers are "
                        "stored: run the same command again to continue"
                    ) from None
        raise AssertionError("a loop over attempts ends inside")

    def _attempt(self, form: RequestForm, body: Mapping[str, Any]) -> Answer:
        with self._slots:
            self.budget.spend()
            status, headers, content = self._send(body)
        if status != 200:
            self._refuse(status, headers, content)
        try:
            return form.read(json.loads(content), self.server.chat)
        except (ValueError, RecursionError) as error:
            raise _Failure(f"its reply is not the JSON of a completion ({error!s:.80})") from None

    def _send(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        key, end = self.server.key, monotonic() + TIMEOUT
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        content = bytearray()
        try:
            with self._http.stream("POST", self.server.address, json=body, headers=headers, timeout=TIMEOUT) as reply:
                for part in reply.iter_bytes():
                    content += part
                    if len(content) > LARGEST:
                        raise UserError(f"{self.server.host} sends more than {LARGEST:,} bytes: is this a model?")
                    if monotonic() > end:
                        raise _Failure(f"the reply took more than {TIMEOUT:g} seconds")
                return reply.status_code, reply.headers, bytes(content)
        except httpx.TimeoutException:
            raise _Failure(f"no reply within {TIMEOUT:g} seconds") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise _Failure(str(error) or type(error).__name__) from None
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:  # a key with characters that no header has
            if isinstance(error, UserError):
                raise
            message = self._without_key(str(error))
            raise UserError(f"the request to {self.server.host} cannot be sent: {message}") from None

    def _refuse(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Raise the error of a status: a failure that may pass, or what the user must change."""
        message = self._without_key(_message(content))
        problem = f"{self.server.host} answers {status}{f' ({message:.300})' if message else ''}"
        if NO_CREDIT in message:
            raise UserError(f"{problem}: the account has no credit")
        if status in AGAIN or (status >= 500 and status != 501):
            wait = _retry_after(headers.get("retry-after", ""))
            if wait is not None and wait > LONGEST_WAIT:
                raise UserError(
                    f"{problem}, and asks to wait {wait:,.0f} seconds.  Finished answers are stored: run the same "
                    "command then"
                )
            raise _Failure(problem, wait)
        if status in (401, 403):
            raise UserError(f"{problem}: put a key that may use {self.server.model} into {self.server.key_name}")
        if status in REFUSED:
            raise FormRefused(f"{problem}: check the model and the prompt")
        raise UserError(f"{problem}: check the model {self.server.model!r:.80} and the URL {self.server.url}")

    def _without_key(self, message: str) -> str:
        return message.replace(self.server.key, "…") if self.server.key else message


def _http_client() -> "httpx.Client":
    try:
        import httpx
    except ImportError:
        raise UserError('a hosted model needs httpx: pip install "steadygaze[hosted]"') from None
    return httpx.Client(limits=httpx.Limits(max_connections=None), follow_redirects=False)


def _message(content: bytes) -> str:
    """The message of an error, without line breaks; OpenAI, FastAPI and plain text have different forms."""
    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError):
        value = content[:300].decode(errors="replace")
    for name in ("error", "detail", "message"):
        value = value.get(name, value) if isinstance(value, Mapping) else value
    if isinstance(value, Mapping):
        value = " ".join(str(value.get(name) or "") for name in ("message", "code"))
    return " ".join(str(value).split())


def _retry_after(value: str) -> float | None:
    """Seconds of the header, a number or a date; None without one.

    >>> _retry_after("2"), _retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), _retry_after("soon")
    (2.0, 0.0, None)
    """
    try:
        return max(0.0, float(value)) if value.strip() and float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
