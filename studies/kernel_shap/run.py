"""The error of our KernelSHAP and of the `shap` package at equal numbers of model evaluations.

The first call evaluates all 2^n subsets and writes --games; the next ones compare (needs shap).

A game is the probability that a fine-tuned MiniLM (timings/peers/model.py) assigns to its predicted class with some
of a text's words.  Texts of SST-2 with 11 to 16 words have all their subsets evaluated, so their Shapley values are
exact.  The error is ‖φ − exact‖ / ‖exact‖; the ratio of mean errors has a 95 % bootstrap interval over games.
"""

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from steadygaze.core.random_key import RandomKey
from steadygaze.explainers import kernel_shap
from steadygaze.explainers.kernel_shap import values

WORDS = range(11, 17)
SAMPLES = (256, 1024, 2048)
SEEDS = 20
Numbers = NDArray[np.float64]


def subsets(n: int) -> NDArray[np.bool_]:
    """All subsets of n words; subset i has the words of the binary digits of i.  (2^n,n)"""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def shapley(game: Numbers, n: int) -> Numbers:
    """Exact Shapley values, by the definition.  (2^n,) -> (n,)"""
    size = subsets(n).sum(1)
    share = np.array([math.factorial(k) * math.factorial(n - 1 - k) / math.factorial(n) for k in range(n)])
    exact = np.zeros(n)
    for word in range(n):
        without = np.flatnonzero(np.arange(2**n) >> word & 1 == 0)
        exact[word] = (share[size[without]] * (game[without | 1 << word] - game[without])).sum()
    return exact


def ours(game: Numbers, n: int, samples: int, seed: int) -> Numbers:
    coalitions, share = kernel_shap._text_coalitions(n, samples, RandomKey(seed).child(2), torch.tensor(0))
    gains = torch.from_numpy(game[coalitions @ (1 << np.arange(n))] - game[0])
    whole, mask = torch.tensor([game[-1] - game[0]]), torch.ones(1, n, dtype=torch.bool)
    shapley_values = values(
        torch.from_numpy(coalitions[None]).double(), gains[None], torch.from_numpy(share[None]), whole, mask
    )
    return shapley_values[0].numpy()


def theirs(game: Numbers, n: int, samples: int, seed: int) -> Numbers:
    import shap  # type: ignore[import-not-found]

    def model(masks: Numbers) -> Numbers:
        return game[(np.asarray(masks) > 0.5) @ (1 << np.arange(n))]

    np.random.seed(seed)
    explainer = shap.KernelExplainer(model, np.zeros((1, n)))
    return np.asarray(explainer.shap_values(np.ones((1, n)), nsamples=samples, l1_reg=False, silent=True)).reshape(-1)


def evaluate(texts: int, device: str) -> dict[str, Numbers]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from timings.peers.by_hand import ByHand
    from timings.peers.model import fine_tuned_folder, sst2

    folder = fine_tuned_folder()
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval().to(device)
    hand = ByHand(network, AutoTokenizer.from_pretrained(folder))
    games: dict[str, Numbers] = {}
    for number, (text, _) in enumerate(sst2("test")):
        hand.read(text)
        n = len(hand.pieces)
        count = sum(name.startswith(f"{n}.") for name in games)
        if n in WORDS and count < math.ceil(texts / len(WORDS)):
            games[f"{n}.{number}"] = hand.probabilities(subsets(n))
            print(n, "words:", text, flush=True)
    return games


def compare(games: dict[str, Numbers]) -> None:
    by_words: dict[int, list[Numbers]] = {}
    for name, game in games.items():
        by_words.setdefault(int(name.partition(".")[0]), []).append(game)
    print("words  evaluations  games   ours   shap   ours / shap (95 % interval)")
    for n, games_of_length in sorted(by_words.items()):
        exact = [shapley(game, n) for game in games_of_length]
        for samples in SAMPLES:
            if 2**n - 2 <= samples:
                continue
            errors = np.array(
                [
                    [
                        np.mean([np.linalg.norm(method(game, n, samples, 10 * i + s) - truth) for s in range(SEEDS)])
                        / np.linalg.norm(truth)
                        for method in (ours, theirs)
                    ]
                    for i, (game, truth) in enumerate(zip(games_of_length, exact, strict=True))
                ]
            )
            draws = np.random.default_rng(0).integers(len(errors), size=(2000, len(errors)))
            ratios = errors[draws].mean(1)
            low, high = np.percentile(ratios[:, 0] / ratios[:, 1], [2.5, 97.5])
            own, other = errors.mean(0)
            ratio = f"{own / other:.2f} ({low:.2f}-{high:.2f})"
            print(f"{n:5}  {samples:11}  {len(games_of_length):5}  {own:.4f} {other:.4f}  {ratio}", flush=True)


def run(*, games: Annotated[Path, typer.Option(help="file.npz")], texts: int = 60, device: str = "cpu") -> None:
    if not games.exists():
        arrays: dict[str, Any] = {**evaluate(texts, device)}
        np.savez_compressed(games, **arrays)
    else:
        with np.load(games, allow_pickle=False) as stored:
            compare(dict(stored))
