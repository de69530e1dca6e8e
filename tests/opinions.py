"""Texts in which one word decides, and a black box that goes by it: shared by the tests of fitted explainers."""

from typing import Any

import numpy as np

GOOD, BAD = ("fine", "lovely", "superb"), ("dull", "poor", "awful")
CLASSES = ["no", "yes"]
QUICK = {"epochs": 4, "hidden": 16, "dimension": 12, "batch_size": 16, "learning_rate": 5e-3}


def texts(many: int = 240, seed: int = 0) -> list[str]:
    random = np.random.default_rng(seed)
    neutral = [f"word{i}" for i in range(12)]
    results = []
    for _ in range(many):
        words = random.choice(neutral, size=8).tolist()
        words[random.integers(8)] = random.choice(GOOD if random.random() < 0.5 else BAD)
        results.append(" ".join(words))
    return results


def lexicon(inputs: list[str]) -> Any:
    """Predicts yes for a good word and no for a bad one."""
    score = np.array([sum(w in GOOD for w in t.split()) - sum(w in BAD for w in t.split()) for t in inputs], float)
    yes = 1 / (1 + np.exp(-3 * score))
    return np.stack([1 - yes, yes], 1)
