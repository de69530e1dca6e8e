"""Data sets, settings and jobs of the sweep over SEAT's constants."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DATA = {"sst2": "sst2", "rotten_tomatoes": "rotten_tomatoes", "hate": "tweet_hate", "emotion-2": "tweet_emotion"}
TWO_EMOTIONS = ("anger", "joy")
SEEDS = 3
RADII, STABILITY, OVERLAP = (1e-3, 1e-2, 1e-1, 0.5), (1.0, 30.0, 1000.0), (0.0, 1.0, 143.0)
DIVERGENCES = ("kl", "cross-entropy")
RELEASED_OVERLAP, RELEASED_RADII = (0.0, 1.0, 10.0, 20.0, 143.0, 1000.0), (1e-3, 1e-2, 3e-2)
BASELINES: dict[str, dict[str, Any]] = {"word-at": {"epsilon": 0.2}, "anchored": {}, "consensus": {}}
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0)
PROBED = 500
"""Texts of the test split that are probed; macro-F1 is that of the whole split."""
GRID_RADII = (1e-3, 1e-2, 5e-2, 1e-1)
"""Radii of the perturbation of an entry of a word vector; the authors use 0.001."""
SWEEP_RADII = (1e-3,)
"""The radii for models of the sweep."""
REFERENCE = "reference"


@dataclass(frozen=True)
class Block:
    """Models that one program trains and measures: of all settings, with three seeds each."""

    data: str
    name: str
    row: str
    technique: str = "vanilla"
    settings: tuple[dict[str, Any], ...] = ({},)
    starts: bool = False
    """Whether the models start from the vanilla models of the same seeds."""
    radii: tuple[float, ...] = GRID_RADII

    @property
    def id(self) -> str:
        return f"{self.data}.{self.name}"

    @property
    def is_reference(self) -> bool:
        return self.name == REFERENCE

    def needs(self) -> tuple[str, ...]:
        return () if self.is_reference else (f"{self.data}.{REFERENCE}",)


def plan() -> list[Block]:
    """The reference models of all data sets first."""
    references = [Block(data, REFERENCE, "vanilla") for data in DATA]
    return references + [block for data in DATA for block in _blocks(data)]


def _blocks(data: str) -> Iterator[Block]:
    for t in TEMPERATURES:
        yield Block(data, f"vanilla.t{t:g}", "vanilla", settings=({"temperature": t},))
    for name, values in BASELINES.items():
        yield Block(data, name, name, name, (values,))
    for clamp in (False, True):
        for radius in RELEASED_RADII:
            base = {"variant": "released", "embedding_radius": radius, "clamp": clamp}
            settings = tuple({**base, "overlap": overlap} for overlap in RELEASED_OVERLAP)
            yield Block(data, f"released.r{radius:g}" + ".clamp" * clamp, "seat-released", "seat", settings)
    for variant in ("paper", "joint"):
        for divergence in DIVERGENCES:
            for radius in RADII:
                base = {"variant": variant, "divergence": divergence, "radius": radius}
                settings = tuple({**base, "stability": s, "overlap": o} for s in STABILITY for o in OVERLAP)
                name = f"{variant}.{divergence}.r{radius:g}"
                yield Block(data, name, f"seat-{variant}", "seat", settings, True, SWEEP_RADII)
