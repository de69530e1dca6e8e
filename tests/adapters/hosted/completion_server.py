"""A small OpenAI-compatible server on a free port, with faults: real HTTP without a model.

`score` maps the text of a prompt to the log-probability of each label word.  `faults` has a fault for some requests: a
status with headers, a delay, or a reply that is cut.  The server counts what it was asked, and what it answered.
"""

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any

PROMPT = "Review: {text}\nSentiment:"
LABEL_WORDS = {"neg": "negative", "pos": "positive"}
GOOD = {"good", "fine", "great", "lovely"}


@dataclass(frozen=True)
class Fault:
    """One failed request."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    """The JSON ends in the middle."""
    message: str = "try again"


def bag_of_words(text: str) -> float:
    """The probability of the label pos: a logistic regression on single words, deterministic."""
    words = text.lower().replace(".", " ").replace(",", " ").split()
    score = sum(1.5 * (word in GOOD) - 0.7 * (word in {"bad", "dull"}) + 0.01 * (len(word) % 3) for word in words)
    return 1 / (1 + math.exp(0.4 - score))


def text_of(prompt: str) -> str:
    """The text inside PROMPT."""
    before, after = PROMPT.split("{text}")
    return prompt.removeprefix(before).removesuffix(after)


@dataclass
class CompletionServer:
    score: Callable[[str], float] = bag_of_words
    faults: Callable[[int], Fault | None] = lambda number: None
    """Number of the request -> its fault."""
    top: Callable[[str], Mapping[str, float]] | None = None
    """Prompt -> the log-probability of each first token; None: those of `score`."""
    logprobs: bool = True
    """False: the fields are ignored, as `transformers serve` does."""
    refused: frozenset[str] = frozenset()
    """Fields that are answered with 400."""
    key: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    """Prompt -> requests."""
    answered: Counter[str] = field(default_factory=Counter)
    """Prompt -> complete answers that were delivered."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    @property
    def total(self) -> int:
        return sum(self.requests.values())

    def reply(self, body: Mapping[str, Any], chat: bool, number: int) -> dict[str, Any]:
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        share = min(max(self.score(text_of(prompt)), 1e-9), 1 - 1e-9)
        top = {"negative": math.log(1 - share), " Pos": math.log(share), "Sure": -20.0}
        top = top if self.top is None else dict(self.top(prompt))
        text = "positive" if (number * 0.6180339887) % 1 < share else "Negative."
        wants = self.logprobs and body.get("logprobs")
        if chat:
            entries = [{"token": token, "logprob": value, "bytes": None} for token, value in top.items()]
            scores = {"content": [{**entries[0], "top_logprobs": entries}]} if wants else None
            return {"choices": [{"message": {"role": "assistant", "content": text}, "logprobs": scores}]}
        return {"choices": [{"text": text, "logprobs": {"top_logprobs": [top]} if wants else None}]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a reply is two writes

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        served: CompletionServer = self.server.served  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chat = self.path.endswith("/chat/completions")
        prompt = body["messages"][-1]["content"] if chat else body["prompt"]
        with served.lock:
            number = served.total
            served.requests[prompt] += 1
            served.bodies.append(body)
        fault = served.faults(number) or Fault()
        sleep(fault.delay)
        if served.key and self.headers.get("Authorization") != f"Bearer {served.key}":
            fault = Fault(401, message=f"wrong key {self.headers.get('Authorization')}")
        if refused := sorted(served.refused & body.keys()):
            fault = Fault(400, message=f"unsupported parameter: {refused[0]}")
        if fault.status != 200:
            self.send(fault.status, json.dumps({"error": {"message": fault.message}}).encode(), fault.headers)
            return
        content = json.dumps(served.reply(body, chat, number)).encode()
        if fault.cut:
            content = content[: len(content) // 2]
        if self.send(200, content) and not fault.cut:
            with served.lock:
                served.answered[prompt] += 1

    def send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> bool:
        try:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
        except OSError:  # the client was killed
            return False
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: clients are killed."""


@contextmanager
def serving(**options: Any) -> Iterator[CompletionServer]:
    """A running server; options are the fields of CompletionServer."""
    served = CompletionServer(**options)
    server = _Server(("127.0.0.1", 0), Handler)
    server.served = served  # type: ignore[attr-defined]
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
