"""Servers of the tests: in this process without a socket, or with one in a thread."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli.serve_command import free_socket, uvicorn_server
from steadygaze.core.types import Example
from steadygaze.serve.application import application
from steadygaze.serve.security import Access
from steadygaze.serve.served_models import ServedData, ServedModel

HOST = "127.0.0.1:8000"
SYNONYMS = {"good": ["fine", "great"], "dull": ["boring"], "film": ["movie"]}
DATA = ServedData(
    "reviews.csv",
    [
        Example("a good film", "yes", rationales=((2, 6),)),
        Example("a dull film", "no", rationales=((2, 6),)),
        Example("a good but dull film", "no", rationales=((11, 15),)),
        Example("what a waste of a good cast", "no", rationales=((7, 12),)),
    ],
)

HANGS = 300
"""Seconds after which a server that does not answer fails a test: a busy machine takes many."""


def cheerful(texts):
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]


def served(name: str = "cheerful", function=cheerful) -> ServedModel:
    return ServedModel(name, as_adapter(function, classes=["no", "yes"]), SYNONYMS)


def run(work, *models: ServedModel, access: Access | None = None, data: ServedData | None = None) -> Any:
    """The result of a coroutine function, which receives a client of a server in this process."""
    app = application(models or [served()], access or Access(frozenset([HOST])), data)
    try:
        return in_process(app, work)
    finally:
        app.app.app.state.jobs.close()


def in_process(app: Any, work) -> Any:
    """The same for an application."""

    async def with_client():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(with_client(), HANGS))


def request(method: str, path: str, *models: ServedModel, access: Access | None = None, **options: Any) -> Any:
    """The answer to one request of a fresh server."""
    return run(lambda client: client.request(method, path, **options), *models, access=access)


async def finished(client: httpx.AsyncClient, job: dict, *, state: str = "done") -> dict:
    """The job, once it has ended in this state."""
    for _ in range(1000):
        job = (await client.get(f"/v1/jobs/{job['id']}")).json()
        if job["state"] in ("done", "failed", "canceled"):
            assert job["state"] == state, job
            return job
        await asyncio.sleep(0.01)
    raise AssertionError(job)


@contextlib.contextmanager
def live_server(
    *models: ServedModel, data: ServedData | None = None, rate: float = 1e9, token: str | None = None
) -> Iterator[str]:
    """The address of a server in a thread."""
    with free_socket("127.0.0.1", 0) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        access = Access(frozenset([address]), token, rate=rate, burst=rate)
        with running(application(models or [served()], access, data), listener):
            yield f"http://{address}"


@contextlib.contextmanager
def running(app: Any, listener: socket.socket | None = None) -> Iterator[tuple[str, int]]:
    """Host and port of an application in a thread."""
    listener = listener or free_socket("127.0.0.1", 0)
    server = uvicorn_server(app)
    with listener:
        place = listener.getsockname()
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        try:
            yield place
        finally:
            server.should_exit = True
            thread.join(20)
