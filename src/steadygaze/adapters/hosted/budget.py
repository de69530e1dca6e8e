"""Budget: the most requests that this process may send, and the estimate that is announced before they are sent.

Every request that is sent counts, retries included: a server may bill a request whose answer was lost.  Stored answers
do not count.  Requests are counted before they are sent, under a lock: no number of threads exceeds the budget.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from steadygaze.core.errors import UserError
from steadygaze.results.formatting import count_text

CHARACTERS = 4
"""Characters per token, about: English texts of the common tokenizers."""

STORED = "All answers are stored: the same command with a larger budget continues, and pays for none of them again"


def print_to_stderr(sentence: str) -> None:
    print(sentence, file=sys.stderr)


class BudgetUsedUp(UserError):
    """No request is left."""


@dataclass
class Budget:
    limit: int | None = None
    """Most requests; None: no limit."""
    sent: int = 0
    """Requests that were sent."""
    announce: Callable[[str], None] = print_to_stderr
    """Prints the estimate."""
    _announced: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def spend(self) -> None:
        """Count one request, before it is sent."""
        with self._lock:
            if self.limit is not None and self.sent >= self.limit:
                raise BudgetUsedUp(
                    f"the budget of {count_text(self.limit, 'request')} (--max-requests) is used up.  {STORED}"
                )
            self.sent += 1

    def plan(self, requests: float, texts: int, characters: float) -> None:
        """Announce the estimate of a run, and refuse a run that would exceed the budget.

        `characters`: of a request, on average.
        """
        number = math.ceil(requests)
        estimate = (
            f"about {count_text(number, 'request')} for {count_text(texts, 'text')}, {_tokens(number, characters)}; "
            "stored answers are not asked again"
        )
        if number > self.left:
            raise BudgetUsedUp(
                f"the run needs {estimate}.  Of --max-requests {self.limit}, {self.left:,} are left: allow more, or "
                "name fewer texts (--limit) or a cheaper explainer"
            )
        self._announce(number, estimate)

    def check(self, requests: int, characters: float) -> None:
        """Announce the next requests, if more have not been announced; refuse them if they would exceed the budget."""
        if requests > self.left:
            raise BudgetUsedUp(
                f"the next {count_text(requests, 'request')} would exceed --max-requests {self.limit}, of which "
                f"{self.left:,} are left.  {STORED}"
            )
        self._announce(requests, f"{count_text(requests, 'request')}, about {_tokens(requests, characters)}")

    @property
    def left(self) -> float:
        """Requests that may be sent."""
        return math.inf if self.limit is None else self.limit - self.sent

    def _announce(self, number: int, estimate: str) -> None:
        if number > self._announced:
            self._announced = number
            self.announce(f"{estimate}{'' if self.limit is None else f'; at most {self.limit:,} (--max-requests)'}")


def _tokens(requests: int, characters: float) -> str:
    """
    >>> _tokens(1000, 493.8), _tokens(2, 160)
    ('120,000 tokens', '80 tokens')
    """
    number = int(requests * characters / CHARACTERS)
    return f"{round(number, -max(0, len(str(number)) - 2)):,} tokens"
