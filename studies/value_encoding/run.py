"""A selection that encodes the label in the values of the selected words, which accuracy gaps cannot see.

A black box reads one of two words: "good" or "bad" in texts with "ale", "tasty" or "rotten" in texts with "wine".  The
other word is ignored, and agrees with the label in half of the texts: P(positive | good) = 3/4 over all texts.  L2X
with k = 1, conditioned on the prediction and with random pretraining, selects a word that agrees with the prediction.
It may be the ignored one: then P(positive | good, good selected) = 1.  Knowing the words is enough to predict the
label, so that fidelity and the accuracy of the independent reader are equal.  Puli et al. 2024 (arXiv:2411.02664) call
such a selection an encoding; the divergence is ln(1 / 0.75) nats.
"""

import json
import warnings
from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

import steadygaze as sg

CLASSES, SEEDS, TEXTS, HELD_OUT = ["negative", "positive"], 5, 800, 800
KINDS = [" ".join(words) for words in product(("ale", "wine"), ("good", "bad"), ("tasty", "rotten"))]
PRAISE, KNOWN = ("good", "tasty"), {word for kind in KINDS for word in kind.split()}
FILLERS = ("the", "label", "was", "round", "we", "stayed", "till", "noon")


def reviews(n: int, seed: int) -> list[str]:
    """Every kind of text equally often, among fillers in random order."""
    random = np.random.default_rng(seed)
    return [" ".join(random.permutation([*KINDS[i % 8].split(), *random.choice(FILLERS, 5)])) for i in range(n)]


def deciding_word(text: str) -> str:
    words = text.split()
    return next(word for word in (("good", "bad") if "ale" in words else ("tasty", "rotten")) if word in words)


def black_box(texts: Sequence[str]) -> NDArray[np.float64]:
    """P(positive | the words of a text): the mean over the texts that have them."""
    positive = [
        np.mean([deciding_word(k) in PRAISE for k in KINDS if KNOWN & {*t.split()} <= {*k.split()}]) for t in texts
    ]
    return np.stack([1 - np.array(positive), positive], 1)


def measure(seed: int) -> dict[str, float]:
    """Fit the explainer, and measure it on other texts of all kinds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = sg.fit_explainer(
            black_box, reviews(TEXTS, seed), "l2x", k=1, conditioned=True, mitigation="random-pretraining", seed=seed,
            classes=CLASSES, settings={"epochs": 5}, device="cpu",
        )  # fmt: skip
    held_out = reviews(HELD_OUT, 1000 + seed)
    explanations = explainer.explain(held_out)
    picks = [max(zip(e.weights, e.tokens, strict=True))[1] for e in explanations]
    labels = black_box(held_out).argmax(1)
    good = [label for label, pick in zip(labels, picks, strict=True) if pick == "good"]
    scores = {row.measure: round(float(row.value), 4) for row in explainer.rows}
    return {
        "seed": seed,
        **{name: scores[name] for name in ("fidelity", "independent-reader-accuracy", "leakage-gap")},
        "warned": sum("leak" in str(warning.message) for warning in caught),
        "ignored": float(np.mean([pick != deciding_word(text) for pick, text in zip(picks, held_out, strict=True)])),
        "positive, given good": float(
            np.mean([labels[i] for i, text in enumerate(held_out) if "good" in text.split()])
        ),
        "positive, given good selected": float(np.mean(good)),
    }


def run() -> None:
    """Print the records."""
    for seed in range(SEEDS):
        print(json.dumps(measure(seed)), flush=True)
