"""Connections of a real server: slow clients, half-sent bodies and many connections, all from this machine."""

import asyncio
import contextlib
import json
import logging
import re
import socket
import sys
import threading
import time
from urllib.parse import urlsplit

import httpx
import pytest

from serve.serving import live_server, running, served
from steadygaze.serve import connections, security
from steadygaze.serve.connections import LONG_PART, JoinedWrites

BODY = json.dumps({"texts": ["a good film"]}).encode()


@pytest.fixture(scope="module")
def address():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "HEADER_SECONDS", 0.4)
        patch.setattr(connections, "MOST_CONNECTIONS", 40)
        patch.setattr(security, "PAUSE", 0.3)
        patch.setattr(security, "UPLOAD_TIME", 1.0)
        with live_server(served()) as address:
            yield address


@pytest.fixture
def connect(address):
    sockets = []

    def connect(source: str = "127.0.0.1") -> socket.socket:
        place = urlsplit(address)
        sockets.append(socket.create_connection((place.hostname, place.port), timeout=60, source_address=(source, 0)))
        return sockets[-1]

    yield connect
    for connection in sockets:
        connection.close()


def head(address: str, length: int = len(BODY)) -> bytes:
    host = urlsplit(address).netloc
    headers = f"Host: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    return f"POST /v1/predict HTTP/1.1\r\n{headers}".encode()


def answers(address: str) -> bool:
    return httpx.post(f"{address}/v1/predict", json={"texts": ["a good film"]}).status_code == 200


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def received(connection: socket.socket) -> bytes:
    parts = b""
    while part := connection.recv(65536):
        parts += part
        if b"\r\n\r\n" in parts and b"}" in parts:
            break
    return parts


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: "])
def test_a_connection_without_a_complete_request_is_closed(address, connect, start):
    connection = connect()
    connection.sendall(start)
    assert is_closed(connection)
    assert answers(address)


def test_a_client_that_does_not_read_its_answer_is_closed(monkeypatch):
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.2)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    with running(app) as place, socket.create_connection(place, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        time.sleep(0.5)
        size = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                size += len(part)
    assert size < 100 << 20


def test_a_second_request_that_stays_incomplete_closes_the_connection(address, connect):
    connection = connect()
    connection.sendall(head(address) + BODY)
    assert received(connection).startswith(b"HTTP/1.1 200")
    connection.sendall(b"GET / HT")
    assert is_closed(connection)


def test_a_half_sent_body_is_answered_with_408(address, connect):
    connection = connect()
    connection.sendall(head(address) + BODY[:10])
    answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"too-slow" in answer
    assert answers(address)


def test_a_body_that_arrives_in_drops_is_answered_with_408(address, connect):
    connection = connect()
    connection.sendall(head(address, 1000))
    end = time.monotonic() + 60
    connection.settimeout(0.1)
    answer = b""
    while not answer and time.monotonic() < end:
        connection.sendall(b" ")
        try:
            answer = connection.recv(65536)
        except TimeoutError:
            continue
    assert answer.startswith(b"HTTP/1.1 408")


def test_a_client_that_goes_away_in_the_middle_of_a_body_harms_nobody(address, connect):
    connection = connect()
    connection.sendall(head(address) + BODY[:10])
    connection.close()
    assert answers(address)


def test_the_texts_of_a_client_that_has_gone_are_not_computed():
    computed, go = [], threading.Event()
    go.set()

    def slow(texts):
        computed.extend(texts)
        go.wait(60)
        return [[0.5, 0.5]] * len(texts)

    with live_server(served(function=slow)) as address:
        go.clear()  # loading the model has called it
        place = urlsplit(address)
        bodies = [json.dumps({"texts": [text]}).encode() for text in ("first", "second")]
        sockets = [socket.create_connection((place.hostname, place.port), timeout=60) for _ in bodies]
        for connection, body in zip(sockets, bodies, strict=True):
            connection.sendall(head(address, len(body)) + body)
            time.sleep(0.1)
        sockets[1].close()
        time.sleep(0.1)
        go.set()
        assert received(sockets[0]).startswith(b"HTTP/1.1 200")
        assert answers(address)
        sockets[0].close()
    assert "first" in computed
    assert "second" not in computed


def test_a_client_that_never_stops_sending_headers_is_cut_off(address, connect):
    connection = connect()
    with pytest.raises(ConnectionError):  # noqa: PT012
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for number in range(10_000):
            connection.sendall(b"X-%d: " % number + b"y" * 1000 + b"\r\n")
    assert answers(address)


def test_further_connections_take_the_place_of_the_oldest_ones_and_the_server_goes_on(address, connect, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    many = [connect() for _ in range(60)]
    assert answers(address)
    assert all(is_closed(connection) for connection in many[:15])
    many[-1].settimeout(0.05)
    with pytest.raises(TimeoutError):
        many[-1].recv(1)  # it is open


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one address of this machine")
def test_half_open_connections_of_many_addresses_keep_out_no_other_one(address, connect, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", 8)
    alone, *_, last = [connect("127.0.0.2"), *(connect(f"127.0.0.{3 + number // 8}") for number in range(48))]
    assert answers(address)
    for connection in (alone, last):  # of an address with few connections, and the latest one
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_half_open_connections_of_an_address_make_room_for_its_next_request(address, connect, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 60.0)
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", 8)
    half = [connect() for _ in range(30)]
    for connection in half:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\n")
    assert answers(address)
    assert is_closed(half[0])
    half[-1].settimeout(0.05)
    with pytest.raises(TimeoutError):
        half[-1].recv(1)  # it is open


@pytest.mark.parametrize("limit", ["MOST_OF_ADDRESS", "MOST_CONNECTIONS"])
def test_a_connection_beyond_a_limit_is_refused_while_all_others_are_answered(monkeypatch, limit):
    monkeypatch.setattr(connections, limit, 2)
    go = threading.Event()

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        await asyncio.to_thread(go.wait, 60)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    with running(app) as place, contextlib.ExitStack() as stack:
        busy = [stack.enter_context(socket.create_connection(place, timeout=60)) for _ in range(2)]
        for connection in busy:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(0.2)
        assert is_closed(stack.enter_context(socket.create_connection(place, timeout=60)))
        go.set()
        assert all(received(connection).startswith(b"HTTP/1.1 200") for connection in busy)


def test_a_request_for_a_websocket_is_answered_without_a_hint_how_to_install_one(address, connect, monkeypatch):
    messages = []
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "warning", messages.append)
    host = urlsplit(address).netloc.encode()
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    connection = connect()
    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n" + upgrade + b"\r\n")
    assert received(connection).startswith(b"HTTP/1.1 200")
    assert answers(address)
    assert messages == []


@pytest.mark.parametrize(
    "request_head",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",  # TLS
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(10_000)) + b"\r\n",
    ],
    ids=lambda value: str(value[:24]),
)
def test_broken_http_is_answered_with_4xx_or_closed(address, connect, request_head):
    connection = connect()
    connection.sendall(request_head)
    try:
        answer = connection.recv(65536)
    except ConnectionError:
        answer = b""
    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert answers(address)


def pipelined(address: str, number: int) -> bytes:
    return f"GET /healthz HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\n\r\n".encode() * number


def test_a_few_pipelined_requests_are_answered_in_order(address, connect):
    connection = connect()
    connection.sendall(pipelined(address, 3) + b"GET /missing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = b""
    while part := connection.recv(65536):
        answer += part
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200"] * 3 + [b"421"]


def test_many_pipelined_requests_close_the_connection(address, connect):
    """Each would be kept in memory."""
    connection = connect()
    connection.sendall(pipelined(address, 1000))
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            answer += part
    assert answer.count(b"HTTP/1.1 200") <= connections.MOST_PIPELINED
    assert answers(address)


def test_headers_of_a_second_request_are_limited_while_the_first_is_answered(monkeypatch):
    monkeypatch.setattr(connections, "LARGEST_HEAD", 10_000)
    ended = threading.Event()

    async def app(scope, receive, send):
        assert scope["type"] == "http"  # uvicorn then leaves out the start-up of the application
        while not ended.is_set():
            await asyncio.sleep(0.01)

    with running(app) as place, socket.create_connection(place, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n")
        with pytest.raises(ConnectionError):  # noqa: PT012
            for number in range(10_000):
                connection.sendall(b"X-%d: " % number + b"y" * 1000 + b"\r\n")
        ended.set()


def test_fields_behind_a_body_are_not_kept():
    scopes = []

    async def app(scope, receive, send):
        assert scope["type"] == "http"
        while (await receive()).get("more_body"):
            pass
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    with running(app) as place, socket.create_connection(place, timeout=60) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
        connection.sendall(b"Authorization: Bearer token\r\n" * 100 + b"\r\n")
        received(connection)
    assert [name for name, _ in scopes[0]["headers"]] == [b"host", b"transfer-encoding"]


def test_a_refused_client_that_sends_its_whole_body_gets_the_answer(address, connect):
    connection = connect()
    with contextlib.suppress(ConnectionError):
        connection.sendall(head("http://evil.example", 2 << 20) + b"x" * (2 << 20))
    assert received(connection).startswith(b"HTTP/1.1 421")


class Recorder:
    """A transport that keeps what is written."""

    def __init__(self):
        self.written, self.ended, self.unsent = [], "", 0

    def write(self, data):
        assert not self.ended
        self.written.append(data)

    def is_closing(self):
        return self.ended != ""

    def get_write_buffer_size(self):
        return self.unsent

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"


def test_the_parts_of_a_short_answer_are_written_together_and_a_long_part_at_once():
    async def run():
        recorder = Recorder()
        joined = JoinedWrites(recorder, asyncio.get_running_loop())
        joined.write(b"headers ")
        joined.write(b"body")
        assert recorder.written == []
        await asyncio.sleep(0)
        joined.write(b"headers ")
        joined.write(b"x" * (LONG_PART + 1))
        return recorder.written

    assert asyncio.run(run()) == [b"headers body", b"headers " + b"x" * (LONG_PART + 1)]


@pytest.mark.parametrize(("end", "written"), [("close", [b"answer"]), ("abort", [])])
def test_a_connection_that_ends_writes_its_answer_unless_it_is_aborted(end, written):
    async def run():
        recorder = Recorder()
        joined = JoinedWrites(recorder, asyncio.get_running_loop())
        joined.write(b"answer")
        getattr(joined, end)()
        await asyncio.sleep(0)
        return recorder

    recorder = asyncio.run(run())
    assert (recorder.written, recorder.ended) == (written, {"close": "closed", "abort": "aborted"}[end])


@pytest.mark.parametrize(("unsent", "end"), [(0, "closed"), (1, "aborted")])
def test_a_closed_connection_whose_client_does_not_read_is_aborted(unsent, end, monkeypatch):
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.01)

    async def run():
        recorder = Recorder()
        recorder.unsent = unsent
        JoinedWrites(recorder, asyncio.get_running_loop()).close()
        await asyncio.sleep(0.05)
        return recorder.ended

    assert asyncio.run(run()) == end


def test_nothing_is_written_to_a_connection_that_the_client_has_closed():
    async def run():
        recorder = Recorder()
        joined = JoinedWrites(recorder, asyncio.get_running_loop())
        joined.write(b"answer")
        recorder.close()
        joined.flush()
        return recorder.written

    assert asyncio.run(run()) == []
