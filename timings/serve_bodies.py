"""Latency of /healthz while two large request bodies arrive and are answered, by kind of body."""

import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from timings.harness import Result, median
from timings.inputs import saved_model
from timings.serve_load import WORDS, Server, texts

LONGEST = 600
"""Seconds until an answer is given up."""
PREDICT = 4 << 20
"""Bytes of the largest body of /v1/predict."""


def large_bodies(size: int) -> dict[str, bytes]:
    """Bodies of about this many bytes, refused after they are read: usual texts, and what costs a parser most."""
    sentence = "a good , dull film " * 1000
    return {
        "texts": json.dumps({"texts": [sentence] * (size // len(sentence) - 1), "k": 0}).encode(),
        "short texts": json.dumps({"texts": [sentence[: size // 5000]] * 4950, "k": 0}).encode(),
        "numbers": b'{"texts": [' + b"0," * (size // 2 - 8) + b"0]}",
        "lists": b'{"texts": [' + b"[]," * (size // 3 - 8) + b"[]]}",
        "escapes": json.dumps({"texts": ["é" * 19_000] * (size // (6 * 19_000)), "k": 0}).encode(),
        "not finished": b'{"texts": ["' + b"a" * (size - 20),
    }


def send_body(port: int, path: str, body: bytes, results: Any) -> None:
    """A process of its own: the status of the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LONGEST)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        results.put(str(connection.getresponse().status))
    except OSError:  # refused before the whole body was sent
        results.put("closed")


def health_until(port: int, is_over: Callable[[], bool]) -> list[float]:
    """Latencies of /healthz, one request after the other."""
    connection, times = HTTPConnection("127.0.0.1", port, timeout=LONGEST), list[float]()
    while not is_over():
        start = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
        time.sleep(0.002)
    connection.close()
    return times


def health_beside_bodies(port: int, size: int) -> list[Result]:
    """/healthz without other requests, and while two bodies of each kind arrive and are answered."""
    context = multiprocessing.get_context("fork")
    end = time.perf_counter() + 3
    results = _latencies("no bodies", health_until(port, lambda: time.perf_counter() > end))
    most = min(size, PREDICT)
    valid = json.dumps({"texts": [("a good , dull film " * 1000)[: most // 256 - 100]] * 256}).encode()
    predicted = {**large_bodies(most - 1000), "valid": valid}
    for path, bodies in (("/v1/audit", large_bodies(size)), ("/v1/predict", predicted)):
        for name, body in bodies.items():
            statuses = context.Queue()
            senders = [context.Process(target=send_body, args=(port, path, body, statuses)) for _ in range(2)]
            for sender in senders:
                sender.start()
            times = health_until(port, lambda: not any(sender.is_alive() for sender in senders))  # noqa: B023
            results += _latencies(f"{path} {name}, answers {statuses.get()} {statuses.get()}", times)
    return [*results, Result("load of the machine", os.getloadavg()[0], "")]


def _latencies(name: str, seconds: list[float]) -> list[Result]:
    milliseconds = [1000 * value for value in seconds]
    return [Result(f"{name}: worst", max(milliseconds), "ms"), median(f"{name}: median", milliseconds, "ms")]


def run(*, size: int = 15, encoder: str = "bilstm") -> list[Result]:
    """`size`: MiB of each of the two bodies."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        saved_model(folder, texts(512, WORDS), encoder)
        with Server(folder) as server:
            return health_beside_bodies(server.port, size << 20)
