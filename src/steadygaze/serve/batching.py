"""Batcher: requests that arrive while the model is busy are processed together.

One thread calls the model.  While it works, requests wait in queues, one for each kind of work.  The thread then takes
all requests of the oldest kind, up to a limit.  A single request therefore never waits for others to arrive.

After a batch, its clients often send their next requests within milliseconds.  If the batch had several items, the
thread waits for as many items as before, because larger batches cost less per item.  It waits for at most LINGER of the
time of that batch, and LONGEST_LINGER seconds.

An item can count as several: a batch cannot be interrupted, and other clients wait for its end.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steadygaze.core.errors import UserError

LARGEST_BATCH = 64
LINGER, LONGEST_LINGER = 0.3, 0.02
MOST_WAITING = 1024
"""Requests that can wait; further ones are refused."""

Work = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""(kind of work, items) -> results."""
Size = Callable[[Any, Any], float]
"""(kind of work, item) -> as how many items it counts."""


class Busy(Exception):
    """Too many requests are waiting."""


class Batcher:
    """Calls `work` in one thread, with several items of the same kind where possible."""

    def __init__(
        self,
        work: Work,
        largest: int = LARGEST_BATCH,
        most_waiting: int = MOST_WAITING,
        size: Size = lambda kind, item: 1.0,
    ) -> None:
        self._work, self._largest, self._most_waiting, self._size = work, largest, most_waiting, size
        self._queues: OrderedDict[Hashable, deque[tuple[Any, asyncio.Future[Any]]]] = OrderedDict()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._task: asyncio.Task[None] | None = None
        self._enough: asyncio.Event | None = None
        self._expected = 0
        self.waiting = 0
        self.batches = 0
        self.items = 0

    def submit(self, kind: Hashable, item: Any) -> "asyncio.Future[Any]":
        """The result for one item; raises Busy if too many wait."""
        if self.waiting >= self._most_waiting:
            raise Busy
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(kind, deque()).append((item, future))
        self.waiting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        elif self._enough is not None and self.waiting >= self._expected:
            self._enough.set()
        return future

    async def _linger(self, finished: int, seconds: float) -> None:
        """Wait for the next requests of the clients whose items have just been answered."""
        self._expected = min(self._largest, self.waiting + finished)
        self._enough = asyncio.Event()
        try:
            async with asyncio.timeout(min(LINGER * seconds, LONGEST_LINGER)):
                await self._enough.wait()
        except TimeoutError:
            pass
        finally:
            self._enough = None

    async def _drain(self) -> None:
        finished, seconds = 0, 0.0
        while self._queues or finished > 1:
            if finished > 1:
                await self._linger(finished, seconds)
                finished = 0
                continue
            kind, queue = self._queues.popitem(last=False)
            batch = self._take(kind, queue)
            if queue:
                self._queues[kind] = queue  # behind the other kinds
            self.waiting -= len(batch)
            if wanted := [(item, future) for item, future in batch if not future.done()]:  # the client may be gone
                start = time.perf_counter()
                await self._process(kind, wanted)
                finished, seconds = len(wanted), time.perf_counter() - start

    def _take(self, kind: Hashable, queue: deque[tuple[Any, "asyncio.Future[Any]"]]) -> list[Any]:
        """The next batch: one item, and further ones up to the limit."""
        batch = [queue.popleft()]
        left = self._largest - self._size(kind, batch[0][0])
        while queue and (size := self._size(kind, queue[0][0])) <= left:
            batch.append(queue.popleft())
            left -= size
        return batch

    async def _process(self, kind: Hashable, batch: Sequence[tuple[Any, "asyncio.Future[Any]"]]) -> None:
        self.batches += 1
        self.items += len(batch)
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._thread, self._work, kind, [item for item, _ in batch])
        except Exception as error:
            if len(batch) > 1 and isinstance(error, UserError):  # one item must not fail the others
                for pair in batch:
                    await self._process(kind, [pair])
                return
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    async def close(self) -> None:
        """Finish the requests that wait, and end the thread."""
        if self._task is not None and not self._task.done():
            await self._task
        self._thread.shutdown()
