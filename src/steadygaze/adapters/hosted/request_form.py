"""RequestForm: the fields of a request, and the Answer that its reply contains.

Servers differ in what they accept.  The forms are tried in this order, and the first that works is used:

    log-probabilities   one token; the log-probabilities of the 20, or 5, most likely first tokens
    votes               a short text, drawn at temperature 1; its first word names a label
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadygaze.adapters.hosted.server import Server

VOTE_TOKENS = 16
"""Tokens of a drawn text: label words are short."""


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    text: str
    """The text."""
    top: tuple[tuple[str, float], ...] = ()
    """The most likely first tokens with their log-probabilities; empty without log-probabilities."""

    def to_json(self) -> str:
        return json.dumps({"text": self.text, "top": self.top})

    @classmethod
    def from_json(cls, text: str) -> "Answer":
        values = json.loads(text)
        return cls(str(values["text"]), tuple((str(token), float(value)) for token, value in values["top"]))


@dataclass(frozen=True)
class RequestForm:
    """The fields of a request besides model and prompt."""

    fields: Mapping[str, Any]
    is_vote: bool

    def body(self, server: Server, prompt: str) -> dict[str, Any]:
        text = {"messages": [{"role": "user", "content": prompt}]} if server.chat else {"prompt": prompt}
        return {"model": server.model, **text, **self.fields}

    def read(self, reply: Any, chat: bool) -> Answer:
        """The answer in a reply; ValueError if the reply has another form."""
        try:
            choice = reply["choices"][0]
            text = choice["message"]["content"] if chat else choice["text"]
            listed = () if self.is_vote else _top(choice.get("logprobs"), chat)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError("the reply has no choices of a completion") from None
        return Answer(text if isinstance(text, str) else "", listed)


def request_forms(chat: bool, *, votes: bool) -> list[RequestForm]:
    """The forms to try, in order; `votes`: those of votes alone."""
    limits = ("max_tokens", "max_completion_tokens") if chat else ("max_tokens",)
    drawn = [RequestForm({name: VOTE_TOKENS, "temperature": 1}, is_vote=True) for name in limits]
    if votes:
        return drawn
    numbers = [{"logprobs": True, "top_logprobs": top} if chat else {"logprobs": top} for top in (20, 5)]
    scored = [RequestForm({name: 1, **number}, is_vote=False) for number in numbers for name in limits]
    return [*scored, *drawn]


def _top(logprobs: Any, chat: bool) -> tuple[tuple[str, float], ...]:
    """The first tokens with log-probabilities, the most likely first; empty if the server returns none."""
    if not logprobs:
        return ()
    if not chat:
        items = list(logprobs["top_logprobs"][0].items()) if logprobs.get("top_logprobs") else []
    else:
        first = logprobs["content"][0] if logprobs.get("content") else {}
        items = [(item["token"], item["logprob"]) for item in first.get("top_logprobs") or ()]
    values = {token: float(value) for token, value in items if isinstance(token, str) and _is_logprob(value)}
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0])))


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value < 1e-3
