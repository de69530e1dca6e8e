"""Fits of macro-F1 on 200, 500 and 1,000 training texts: corpora, sizes, rows and their settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from studies import jobs

CORPORA = {"sst2": "SST-2", "rotten_tomatoes": "Rotten Tomatoes", "yelp_polarity": "Yelp polarity"}
OTHER_CORPORA = {"tweet_emotion": "TweetEval emotion", "ag_news": "AG News", "newsgroups_sport": "newsgroups"}
"""Corpora of the second table, with two to four classes."""
SIZES = (200, 500, 1000)
BASELINES: dict[str, dict[str, Any]] = {
    "tfidf-lr": {},
    "tfidf-lr-balanced": {"class_weight": "balanced"},
    "tfidf-lr-10": {"C": 10},
    "tfidf-lr-10-balanced": {"C": 10, "class_weight": "balanced"},
}
OURS: dict[str, dict[str, Any]] = {
    "default": {"settings": {"small_data": True}},
    "standard": {"settings": {"small_data": False}},
    "glove": {"vectors": "glove-50d"},
    "minilm": {"encoder": "transformer:minilm"},
    "hidden-128": {"settings": {"small_data": True, "hidden": 128, "batch_size": 32}},
    "hidden-64": {"settings": {"small_data": True, "hidden": 64, "batch_size": 8}},
}
NAMES = {
    "tfidf-lr": "TF-IDF",
    "tfidf-lr-balanced": "TF-IDF, balanced",
    "tfidf-lr-10": "C = 10",
    "tfidf-lr-10-balanced": "C = 10, balanced",
    "standard": "usual defaults",
    "default": "default, no extra",
    "glove": "default, extra `glove`",
    "minilm": "MiniLM",
    "hidden-128": "128 and 32",
    "hidden-64": "64 and 8",
}
"""Columns of the page."""
DEFAULT_ROWS = ("tfidf-lr", "tfidf-lr-balanced", "tfidf-lr-10", "tfidf-lr-10-balanced", "standard", "default", "glove")
"""Rows that are fitted without --rows: those of the tables of test scores."""
DIFFERENCES = {"tfidf-lr": "TF-IDF", "tfidf-lr-10-balanced": "C = 10, balanced"}
HELD_OUT = 1000
EXPLAINED = 200


@dataclass(frozen=True)
class Fit(jobs.Job):
    row: str
    corpus: str
    size: int
    seed: int
    split: str


def plan(rows: Sequence[str], corpora: Sequence[str], sizes: Sequence[int], seeds: int, split: str) -> list[Fit]:
    return [
        Fit(row, corpus, size, seed, split)
        for seed in range(seeds)
        for corpus in corpora
        for size in sizes
        for row in rows
    ]
