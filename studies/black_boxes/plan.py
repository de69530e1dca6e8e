"""Post-hoc accuracy and label leakage of explainers of black boxes: Table 3 of Bai et al. 2021 (arXiv:2006.05656).

One job fits one explainer with one seed to one black box, and measures it on the test split.  `planted` is a corpus in
which a selector can leak the label through the words it selects (planted-code).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

K = {"planted": 5, "imdb": 10, "yelp_polarity": 5, "mnist_3_8": 25, "fashion_mnist_pullover_shirt": 64}
IMAGES = ("mnist_3_8", "fashion_mnist_pullover_shirt")
FILLS = ("mean", "zero", "gray")
"""Values of pixels that are not selected, for approximator and black box; the paper has `mean`."""
PRETRAINING_EPOCHS = {"imdb": 5, "planted": 15, "yelp_polarity": 15, **dict.fromkeys(IMAGES, 12)}
"""Epochs in which the approximator is trained alone.  Rows of L2X without this stage train the selector for as many
more epochs, so that all rows train equally long.
"""
PRETRAINED = ("random-pretraining", "random-query")
CXPLAIN_SETTINGS = {"members": 1, "epochs": 15, "patience": 3, "learning_rate": 1e-3}
"""One network, and a learning rate ten times that of the authors, so that a fit takes minutes."""
MITIGATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "random-pretraining": {"mitigation": "random-pretraining"},
    "mask-neutral": {"mitigation": "mask-neutral"},
    "mask-neutral-wide": {"mitigation": "mask-neutral", "clip": 1e6},
    "random-query": {"mitigation": "random-query"},
}
"""Mitigations of label leakage for L2X that is conditioned on the prediction."""
CONDITIONED_L2X = {
    f"l2x-y-{name}-{approximator}": {"conditioned": True, "approximator": approximator, **settings}
    for name, settings in MITIGATIONS.items()
    for approximator in ("simple", "cnn")
}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random", {}),
    "gradient": ("gradient", {}),
    "input-x-gradient": ("input-x-gradient", {}),
    "lime": ("lime", {}),
    "cxplain": ("cxplain", CXPLAIN_SETTINGS),
    "l2x": ("l2x", {}),
    "l2x-cnn": ("l2x", {"approximator": "cnn"}),
    "vibi": ("vibi", {}),
    "ail": ("ail", {}),
    **{name: ("l2x", settings) for name, settings in CONDITIONED_L2X.items()},
}
UNTRAINED = ("random", "gradient", "input-x-gradient", "lime")
"""Explainers without training, which run with one seed."""
SLOWEST = ("cxplain", "ail", "vibi")
"""Rows that start first."""
IMAGE_ROWS = (
    "random",
    "gradient",
    "lime",
    "cxplain",
    "l2x-cnn",
    "vibi",
    "ail",
    *(n for n in CONDITIONED_L2X if n.endswith("-cnn")),
)
"""Rows of images; their approximator is the network of Table 7."""


@dataclass(frozen=True)
class Job:
    corpus: str
    row: str
    seed: int
    fill: str = ""

    @property
    def id(self) -> str:
        return ".".join([self.corpus, *([self.fill] if self.fill else []), self.row, str(self.seed)])


def plan(seeds: int) -> list[Job]:
    """All jobs; the slowest rows of each corpus come first."""
    texts = [
        Job(name, row, seed) for name in ("imdb", "planted", "yelp_polarity") for row, seed in _row_seeds(ROWS, seeds)
    ]
    images = [
        Job(name, row, seed, fill) for fill in FILLS for name in IMAGES for row, seed in _row_seeds(IMAGE_ROWS, seeds)
    ]
    return [*texts, *images]


def _row_seeds(rows: Iterable[str], seeds: int) -> list[tuple[str, int]]:
    ordered = sorted(rows, key=lambda row: row not in SLOWEST)
    return [(row, seed) for row in ordered for seed in range(1 if row in UNTRAINED else seeds)]


def needs(job: Job, jobs: list[Job]) -> tuple[str, ...]:
    """The first seed of CXPlain computes the effects of removal, and the others read them."""
    first = replace(job, seed=0)
    return (first.id,) if job.row == "cxplain" and job != first and first in jobs else ()
