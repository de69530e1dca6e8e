"""A function that requests and an audit share: one call at a time, with its further draws."""

import threading
from time import sleep
from types import SimpleNamespace

from steadygaze.serve.audit_job import _locked


class Drawn:
    """Answers that depend on the number of the draw, as those of a sampled model."""

    def __init__(self) -> None:
        self.running = self.most = 0

    def __call__(self, texts: list[str]) -> list[str]:
        return self.draw(texts, number=0)

    def draw(self, texts: list[str], number: int) -> list[str]:
        self.running += 1
        self.most = max(self.most, self.running)
        sleep(0.01)
        self.running -= 1
        return [f"{text} {number}" for text in texts]


def test_further_draws_are_those_of_the_function() -> None:
    locked = _locked(Drawn())
    assert (locked(["a"]), locked.draw(["a"], number=3)) == (["a 0"], ["a 3"])
    assert not hasattr(_locked(SimpleNamespace.__call__), "draw")


def test_one_call_at_a_time_of_both_kinds() -> None:
    drawn = Drawn()
    locked = _locked(drawn)
    threads = [
        threading.Thread(target=call) for call in (lambda: locked(["a"]), lambda: locked.draw(["b"], number=1)) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn.most == 1
