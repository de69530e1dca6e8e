"""DirectAnswers: the requests of a load, answered without the routing of FastAPI, which costs more than a small model.

FastAPI receives the requests that are not valid or that fail, and answers with the error.  Both call the same
functions, and the OpenAPI document describes both.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from steadygaze.serve.json_bodies import is_small
from steadygaze.serve.security import EARLIER, REFUSED, App, Message, Receive, Scope, Send

Handler = Callable[[Any], Awaitable[Any]]
"""Validated body -> response."""


@dataclass(frozen=True)
class Route:
    """Has the attribute that metrics read."""

    path: str


@dataclass
class DirectAnswers:
    """ASGI middleware."""

    app: App
    handlers: Mapping[str, tuple[type[BaseModel], Handler]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.handlers.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None or not _is_json(scope):
            await self.app(scope, receive, send)
            return
        messages: list[Message] = []
        body = await _body(scope, receive, messages)
        if body is not None and is_small(body):
            form, handle = route
            try:
                response = await handle(form.model_validate_json(body))
            except ValidationError:
                pass
            except Exception as error:
                scope[EARLIER] = error
            else:
                scope["route"] = Route(scope["path"])
                await response(scope, receive, send)
                return
        await self.app(scope, _replayed(messages, receive), send)


def _is_json(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return kinds == [b"application/json"]


async def _body(scope: Scope, receive: Receive, messages: list[Message]) -> bytes | None:
    """The whole body, if it arrives; `messages` has what was received."""
    while not messages or messages[-1].get("more_body", False):
        try:
            message = await receive()
        except Exception:
            if REFUSED not in scope:
                raise
            return None  # too large or too slow: FastAPI receives the rest, and the same error
        messages.append(message)
        if message["type"] != "http.request":
            return None
    return b"".join(message.get("body", b"") for message in messages)


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    rest = iter(messages)

    async def replay() -> Message:
        message = next(rest, None)
        return await receive() if message is None else message

    return replay
