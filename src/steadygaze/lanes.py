"""Chunks worked on side by side: one thread each, in order, a bounded number at a time.

A small network leaves cores idle when each of its operations is split over all of them.  So each lane takes a whole
chunk, tokenising, network and all, with one core for its tensor operations; Python's lock is free while these run.
"""

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")

TOKENS = "TOKENIZERS_PARALLELISM"
MOST = 8
"""Each lane holds a chunk, and Python has one lock for all of them."""

PATIENCE = 1e-4
"""Seconds a lane may hold Python's lock while another waits for it; the usual 5e-3 are longer than a small network's
operations, and the network of one lane would stand still whenever the other makes objects."""


def lanes_for(device: torch.device) -> int:
    """As many as torch would use cores, MOST at most; on a GPU two, so that it need not wait for ids."""
    return min(torch.get_num_threads(), MOST) if device.type == "cpu" else 2


@contextmanager
def _one_core_for_tokens() -> Iterator[None]:
    """The `tokenizers` library, too, would split each chunk over all cores; it looks at this variable on every call."""
    before = os.environ.get(TOKENS)
    os.environ[TOKENS] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[TOKENS]
        else:
            os.environ[TOKENS] = before


def side_by_side(work: Callable[[A], B], chunks: Iterable[A], lanes: int) -> Iterator[B]:
    """map(work, chunks), in order; at most lanes + 1 chunks are held at any time."""
    if lanes < 2:
        yield from map(work, chunks)
        return
    threads, patience = torch.get_num_threads(), sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    with _one_core_for_tokens(), ThreadPoolExecutor(lanes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting: deque[Future[B]] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(work, chunk))
                if len(waiting) > lanes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            torch.set_num_threads(threads)  # threads started later take the last number set
            sys.setswitchinterval(patience)
