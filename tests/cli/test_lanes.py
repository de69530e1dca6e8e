"""Chunks worked on side by side come out in order, few at a time, and leave torch's thread count alone."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
import torch

from steadygaze.adapters.streaming import TOKENS, lane_count, map_in_lanes


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_results_come_in_order_whatever_finishes_first(lanes: int) -> None:
    def work(i: int) -> int:
        time.sleep(0.01 * (i % 3 == 0))
        return i * i

    assert list(map_in_lanes(work, range(10), lanes)) == [i * i for i in range(10)]


def test_two_lanes_really_run_at_once() -> None:
    both = threading.Barrier(2, timeout=60)
    assert list(map_in_lanes(lambda _: both.wait() >= 0, range(4), 2)) == [True] * 4


def test_chunks_are_read_only_as_they_are_needed() -> None:
    drawn = []

    def chunks() -> Iterator[int]:
        for i in range(1000):
            drawn.append(i)
            yield i

    results = map_in_lanes(lambda i: i, chunks(), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(drawn) <= 3 + 2
    results.close()


def test_a_lane_uses_one_core_and_the_caller_keeps_its_own() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert set(map_in_lanes(lambda _: torch.get_num_threads(), range(6), 2)) == {1}
        assert torch.get_num_threads() == 3
        assert lane_count(torch.device("cpu")) == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("before", [None, "true"])
def test_the_tokenizers_variable_is_put_back(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv(TOKENS, raising=False)
    if before is not None:
        monkeypatch.setenv(TOKENS, before)
    assert set(map_in_lanes(lambda _: os.environ[TOKENS], range(4), 2)) == {"false"}
    assert os.environ.get(TOKENS) == before


def test_a_fault_in_a_chunk_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_lanes(lambda i: 1 // i, [1, 0, 2], 2))
