"""Corpora, rows and jobs of the study of the independent reader."""

from dataclasses import dataclass
from typing import Any

from studies import jobs

K = {"planted": 5, "imdb": 10, "yelp": 5, "reviews600": 3}
ROWS: dict[str, dict[str, Any]] = {
    "l2x-y": {"conditioned": True},
    "pretrained-y": {"conditioned": True, "mitigation": "random-pretraining"},
    "l2x": {},
    "padded-y": {"conditioned": True, "variant": "released"},
    "padded-neutral-y": {"conditioned": True, "variant": "released", "mitigation": "mask-neutral"},
    "neutral-y": {"conditioned": True, "mitigation": "mask-neutral"},
}
MAIN_ROWS = ("l2x-y", "pretrained-y", "l2x")
RELEASED_ROWS = ("padded-y", "padded-neutral-y", "neutral-y")
PRETRAINING_EPOCHS = {"imdb": 8, "planted": 15, "yelp": 15, "reviews600": 20}
"""Epochs of random pretraining.  Other rows train the selector for as many more, so that all train equally long."""
SELECTOR_EPOCHS = {"imdb": 8, "planted": 5, "yelp": 10, "reviews600": 20}
"""Epochs in which the selector is trained."""


@dataclass(frozen=True)
class Job(jobs.Job):
    corpus: str
    row: str
    seed: int


def plan(seeds: int) -> list[Job]:
    """All jobs; the rows of `variant released` come last, and the slowest of the others first."""
    corpora = ("imdb", "yelp", "planted", "reviews600")
    fitted = [(corpus, row) for corpus in corpora for row in MAIN_ROWS]
    fixed = [*((corpus, "leave-one-out") for corpus in corpora), ("planted", "truth")]
    padded = [("imdb", row) for row in RELEASED_ROWS]
    return [Job(corpus, row, seed) for corpus, row in (*fitted, *fixed, *padded) for seed in range(seeds)]
