"""What bench/stability.py does: settings, grids, and the jobs in the order they are wanted."""

from dataclasses import dataclass
from typing import Any

SETTINGS = {
    "sst2-bilstm": ("sst2", "bilstm"),
    "rt-bilstm": ("rotten_tomatoes", "bilstm"),
    "emotion-bilstm": ("tweet_emotion", "bilstm"),
    "sst2-rnn": ("sst2", "rnn"),
    "sst2-minilm": ("sst2", "transformer:minilm"),
}
CHOSEN_ON = ("sst2-bilstm", "rt-bilstm")
GRID: dict[str, list[dict[str, Any]]] = {
    "anchored": [
        {"share": 0.3},
        {"share": 0.6},
        {"share": 0.8},
        {"share": 1.0},
        {"share": 0.8, "overlap": 14.3},
        {"share": 0.8, "noise": 2.0},
    ],
    "word-at": [{"epsilon": e} for e in (0.1, 0.2, 0.4, 0.8)],
    "word-iat": [{"epsilon": e} for e in (0.1, 0.2, 0.4, 0.8)],
    "attention-rp": [{"epsilon": e} for e in (0.1, 0.3, 1.0, 3.0, 10.0)],
    "attention-at": [{"epsilon": e} for e in (0.1, 0.3, 1.0, 3.0, 10.0)],
    "attention-iat-word": [{"variant": "word", "epsilon": e} for e in (0.1, 0.3, 1.0, 3.0)],
    "seat-paper": [{"variant": "paper", "radius": r, "overlap": o} for r in (1e-3, 1e-2, 1e-1) for o in (14.3, 143.0)],
    "seat-joint": [{"variant": "joint", "radius": r, "overlap": o} for r in (1e-3, 1e-2, 1e-1) for o in (14.3, 143.0)],
}
BY_F1 = {f"{row}-by-f1": row for row in ("word-at", "attention-at", "seat-joint")}
"""The same chosen by macro-F1 alone, as their papers do."""
FIXED: dict[str, dict[str, Any]] = {  # the released constants, where there are any
    "vanilla": {},
    "attention-iat-released": {"variant": "released", "epsilon": 0.3},
    "attention-iat-literal": {"variant": "literal", "epsilon": 0.3},
    "seat-paper-released-constants": {"variant": "paper"},
    "seat-released": {"variant": "released"},
    "seat-released-clamp": {"variant": "released", "clamp": True},
    "seat-paper-no-top-k": {"variant": "paper", "overlap": 0.0},
    "seat-paper-no-stability": {"variant": "paper", "stability": 0.0},
    "seat-paper-neither": {"variant": "paper", "overlap": 0.0, "stability": 0.0},
}
WITHOUT = {  # what of ours does what
    "anchored-no-noise": {"noise": 0.0},
    "anchored-no-swaps": {"swaps": 0.0},
    "consensus-no-noise-no-swaps": {"noise": 0.0, "swaps": 0.0},
}
TEMPERS = (1.5, 2.0, 3.0)
"""Vanilla models whose scores are divided by these: how much of a gain is flatness alone?"""
TEACHERS = 5
PROBES = ("noise", "worst-label", "worst-attention", "3-synonyms", "3-neighbours")
WITHIN = 0.005
"""Validation macro-F1 that any setting may cost."""


@dataclass(frozen=True)
class Job:
    phase: str  # select | test | seeds
    setting: str
    row: str
    seed: int = 0
    config: int | None = None  # which entry of the grid, while choosing
    teachers: tuple[str, ...] = ()  # jobs whose models it starts from or is held against
    needs: tuple[str, ...] = ()  # other jobs that must be done first

    @property
    def id(self) -> str:
        tail = f".c{self.config}" if self.config is not None else ""
        return f"{self.phase}.{self.setting}.{self.row}.s{self.seed}{tail}"

    @property
    def technique(self) -> str:
        names = ("attention-iat", "attention-at", "attention-rp", "seat", "consensus", "anchored", "word-at")
        return "vanilla" if self.temper else next((name for name in names if self.row.startswith(name)), self.row)

    @property
    def temper(self) -> float | None:
        return float(self.row.removeprefix("tempered-")) if self.row.startswith("tempered-") else None


def plan() -> list[Job]:
    """All jobs, the most wanted first."""
    plain = [Job("select", setting, "vanilla", seed) for setting in CHOSEN_ON for seed in (0, 1)]
    choosing = {row: _choosing(row) for row in GRID}
    chosen = {row: tuple(job.id for job in (*choosing[row], *plain)) for row in GRID}
    words, five = [s for s in SETTINGS if s != "sst2-minilm"], range(5)
    vanilla = [Job("test", s, "vanilla", seed) for s in words for seed in range(25)]
    word_at = [Job("test", s, "word-at", seed, needs=chosen["word-at"]) for s in words for seed in range(25)]
    ours = [_held("anchored", s, seed, chosen["anchored"]) for s in words for seed in five]
    ours += [_consensus("consensus", "vanilla", s, seed, chosen) for s in words for seed in five]
    ours += [_consensus("consensus-at", "word-at", s, seed, chosen) for s in words for seed in five]
    rest = [row for row in GRID if row not in ("anchored", "word-at")]
    theirs = [_held(row, s, seed, chosen[row]) for row in rest for s in words for seed in five]
    theirs += [_held(row, s, seed) for row in FIXED if _everywhere(row) for s in words for seed in five]
    theirs += [_held(row, "sst2-bilstm", seed) for row in FIXED if row.startswith("seat-paper-n") for seed in five]
    theirs += [_held(f"tempered-{t}", s, seed) for t in TEMPERS for s in words for seed in five]
    theirs += [_held(row, "sst2-bilstm", seed, chosen["anchored"]) for row in list(WITHOUT)[:2] for seed in five]
    theirs += [_consensus("consensus-no-noise-no-swaps", "vanilla", "sst2-bilstm", seed, chosen) for seed in five]
    theirs += [_held(row, s, seed, chosen[base]) for row, base in BY_F1.items() for s in words for seed in five]
    small = [Job("test", "sst2-minilm", "vanilla", seed) for seed in range(25)]
    small += [_held("seat-paper", "sst2-minilm", seed, chosen["seat-paper"]) for seed in five]
    small += [Job("test", "sst2-minilm", "word-at", seed, needs=chosen["word-at"]) for seed in five]
    small += [_consensus("consensus", "vanilla", "sst2-minilm", seed, chosen) for seed in five]
    jobs = [*vanilla, *word_at, *ours, *small, *theirs]
    together: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        together.setdefault((job.setting, job.row), []).append(job.id)
    seeds = [Job("seeds", s, row, needs=tuple(ids)) for (s, row), ids in together.items()]
    return [*seeds, *plain, *(job for row in GRID for job in choosing[row]), *jobs]


def _choosing(row: str) -> list[Job]:
    return [
        Job("select", setting, row, seed, i, (Job("select", setting, "vanilla", seed).id,))
        for i in range(len(GRID[row]))
        for setting in CHOSEN_ON
        for seed in (0, 1)
    ]


def _everywhere(row: str) -> bool:
    return row != "vanilla" and not row.startswith("seat-paper-n")


def _held(row: str, setting: str, seed: int, needs: tuple[str, ...] = ()) -> Job:
    """A model that starts from the vanilla model of its seed, or is held against it."""
    return Job("test", setting, row, seed, None, (Job("test", setting, "vanilla", seed).id,), needs)


def _consensus(row: str, teacher: str, setting: str, seed: int, chosen: dict[str, tuple[str, ...]]) -> Job:
    group = tuple(Job("test", setting, teacher, s).id for s in range(TEACHERS * seed, TEACHERS * seed + TEACHERS))
    return Job("test", setting, row, seed, None, group, chosen["anchored"])
