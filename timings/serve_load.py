"""The server under load: throughput beside the bare forward pass, latency, errors and memory.

    bare       the model predicts batches of 32 texts of 50 words in this process, nothing else runs
    load       32 connections send one text at a time to a server of its own process (POST /v1/predict); the client is
               another process
    one user   one connection explains a text of 50 words (POST /v1/explain)

The ratio of throughputs has two forms.  Wall time is right on an idle machine with a core for the client.  CPU time
(CPU seconds per text, bare / server) also holds on a busy machine.  `bare` and `load` alternate.
"""

import asyncio
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from timings.harness import Result, median
from timings.inputs import saved_model

WORDS, BATCH, CONNECTIONS = 50, 32, 32
AT_LEAST, AT_MOST = {"served / bare": 0.8}, {"p99 / p50": 3.0, "errors": 0.0}


def texts(count: int, words: int) -> list[str]:
    from steadygaze.data.corpora import load_corpus

    corpus = load_corpus("planted-reviews:sizes=[400,50,50]")
    vocabulary = " ".join(example.text for example in corpus.splits["train"]).split()
    return [" ".join(vocabulary[(i * 7) % (len(vocabulary) - words) :][:words]) for i in range(count)]


def bare(folder: Path, inputs: list[str], seconds: float) -> tuple[float, float]:
    """Texts per second, and CPU seconds per text."""
    from steadygaze.adapters.as_adapter import as_adapter

    adapter = as_adapter(folder, device="cpu")
    batches = [inputs[i : i + BATCH] for i in range(0, len(inputs), BATCH)]
    adapter.predict_covered(batches[0], BATCH)
    done, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        adapter.predict_covered(batches[done // BATCH % len(batches)], BATCH)
        done += BATCH
    return done / (time.perf_counter() - start), (time.process_time() - cpu) / done


async def connection(
    port: int, path: str, bodies: list[bytes], end: float, times: list[float], errors: list[str]
) -> None:
    """Send requests on one connection until `end`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(10**9):
        if time.perf_counter() >= end:
            break
        body = bodies[number % len(bodies)]
        headers = f"Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        start = time.perf_counter()
        writer.write(f"POST {path} HTTP/1.1\r\n{headers}".encode() + body)
        status = await reader.readline()
        length = 0
        while (line := await reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        times.append(time.perf_counter() - start)
        if b" 200 " not in status:
            errors.append(status.decode(errors="replace").strip())
    writer.close()


def client(port: int, path: str, bodies: list[bytes], connections: int, seconds: float, results: Any) -> None:
    """A process of its own: the latency of each request, and the errors."""

    async def run() -> tuple[list[float], list[str]]:
        times: list[float] = []
        errors: list[str] = []
        end = time.perf_counter() + seconds
        shifted = [bodies[i:] + bodies[:i] for i in range(connections)]
        await asyncio.gather(*(connection(port, path, shifted[i], end, times, errors) for i in range(connections)))
        return times, errors

    results.put(asyncio.run(run()))


def load(port: int, path: str, bodies: list[bytes], connections: int, seconds: float) -> tuple[list[float], list[str]]:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=client, args=(port, path, bodies, connections, seconds, results))
    process.start()
    times, errors = results.get(timeout=seconds + 60)
    process.join()
    return times, errors


class Server:
    """`steadygaze serve` in a process."""

    def __init__(self, folder: Path, rate: float = 1e9) -> None:
        command = [sys.executable, "-m", "steadygaze", "serve", str(folder), "--port", "0", "--device", "cpu"]
        command += ["--rate", str(int(rate))]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = next(line for line in self.process.stderr if line.startswith("http"))  # after warnings about the model
        self.port = int(line.split()[0].rsplit(":", 1)[1])
        self.facts = psutil.Process(self.process.pid)
        while not self.listens():
            time.sleep(0.05)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def cpu(self) -> float:
        used = self.facts.cpu_times()
        return float(used.user + used.system)

    def memory(self) -> float:
        return float(self.facts.memory_info().rss) / (1 << 20)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure_rounds(server: Server, folder: Path, inputs: list[str], rounds: int, seconds: float) -> list[Result]:
    bodies = [json.dumps({"texts": [text]}).encode() for text in inputs]
    values: dict[str, list[float]] = {}
    first = server.memory()
    for _ in range(rounds):
        bare_rate, bare_cpu = bare(folder, inputs, seconds / 2)
        cpu = server.cpu()
        times, errors = load(server.port, "/v1/predict", bodies, CONNECTIONS, seconds)
        served, p50, p99 = len(times) / seconds, 1000 * quantile(times, 0.5), 1000 * quantile(times, 0.99)
        record = {
            "bare, texts/s": bare_rate,
            "served, texts/s": served,
            "served / bare": served / bare_rate,
            "served / bare, CPU time": bare_cpu * len(times) / (server.cpu() - cpu),
            "p50, ms": p50,
            "p99, ms": p99,
            "p99 / p50": p99 / p50,
            "errors": len(errors),
        }
        for name, value in record.items():
            values.setdefault(name, []).append(value)
    memory = [Result("memory before, MiB", first), Result("memory after, MiB", server.memory())]
    medians = [
        median(name, numbers, at_least=AT_LEAST.get(name), at_most=AT_MOST.get(name))
        for name, numbers in values.items()
    ]
    return medians + memory


def measure_user(server: Server, inputs: list[str], seconds: float) -> list[Result]:
    """One user who explains texts."""
    bodies = [json.dumps({"texts": [text]}).encode() for text in inputs]
    times, errors = load(server.port, "/v1/explain", bodies, 1, seconds)
    results = [Result("explain p50, ms", 1000 * quantile(times, 0.5))]
    results.append(Result("explain p95, ms", 1000 * quantile(times, 0.95), at_most=150.0))
    results.append(Result("errors of explain", len(errors), at_most=0))
    return results


def run(*, seconds: float = 10.0, rounds: int = 5, encoder: str = "bilstm") -> list[Result]:
    """`seconds`: of load in each round."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        saved_model(folder, texts(512, WORDS), encoder)
        inputs = texts(512, WORDS)
        requests = [json.dumps({"texts": [text]}).encode() for text in inputs]
        with Server(folder) as server:
            load(server.port, "/v1/predict", requests, CONNECTIONS, 2)  # the first requests start threads
            return measure_rounds(server, folder, inputs, rounds, seconds) + measure_user(server, inputs, seconds)
