"""Epochs: a training as whoever watches an audit is told of it."""

from collections.abc import Callable, Mapping
from typing import Any

from steadygaze.train.progress import Silent


class Epochs(Silent):
    """Says how many epochs are done, and of how many."""

    def __init__(self, watch: Callable[[str, int, int], None], what: str) -> None:
        self.watch, self.what, self.done = watch, what, 0

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.total = epochs
        self.skip(0)

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.skip(1)

    def skip(self, epochs: int) -> None:
        self.done += epochs
        self.watch(self.what, self.done, self.total)

    def warn(self, message: str) -> None:
        """What such a model has learnt is in the answer."""
