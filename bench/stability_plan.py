"""The plan of bench/stability.py: settings, hyper-parameter grids, and the jobs in the order they are run."""

from dataclasses import dataclass
from typing import Any

SETTINGS = {
    "sst2-bilstm": ("sst2", "bilstm"),
    "rt-bilstm": ("rotten_tomatoes", "bilstm"),
    "emotion-bilstm": ("tweet_emotion", "bilstm"),
    "hate-bilstm": ("tweet_hate", "bilstm"),
}
"""Name -> corpus and encoder."""
SELECTION_SETTINGS = ("sst2-bilstm", "rt-bilstm")
SELECTION_SEEDS = (0, 1)
SELECTION_PROBES = ("noise", "fgm-label", "pgd-attention", "3-synonyms")
"""Held-out pairs and WordNet take no part in the selection."""
MARGIN = 0.005
"""Loss of validation macro-F1 that the rule accepts."""
SEEDS, TEACHERS = 5, 5
VANILLA_SEEDS = SEEDS * TEACHERS
DIVERGENCES = {"ce": "cross-entropy", "kl": "kl"}


def _seat(variant: str, divergence: str) -> list[dict[str, Any]]:
    base = {"variant": variant, "divergence": divergence}
    return [{**base, "radius": r, "overlap": o} for r in (1e-3, 1e-2, 1e-1) for o in (14.3, 143.0)]


GRID: dict[str, list[dict[str, Any]]] = {
    "anchored": [
        {"share": 0.3},
        {"share": 0.6},
        {"share": 0.8},
        {"share": 1.0},
        {"share": 0.8, "overlap": 14.3},
    ],
    "word-at": [{"epsilon": e} for e in (0.1, 0.2, 0.4, 0.8)],
    **{f"seat-{v}-{d}": _seat(v, name) for v in ("joint", "paper") for d, name in DIVERGENCES.items()},
    "word-iat": [{"variant": v, "epsilon": e} for v in ("paper", "released") for e in (0.1, 0.2, 0.4, 0.8)],
    "attention-rp": [{"epsilon": e} for e in (0.1, 0.3, 1.0, 3.0, 10.0)],
    "attention-at": [{"epsilon": e} for e in (0.1, 0.3, 1.0, 3.0, 10.0)],
    "attention-iat-word": [{"variant": "word", "epsilon": e} for e in (0.1, 0.3, 1.0, 3.0)],
}
BOTH_RULES = ("word-at", "word-iat", "attention-rp", "attention-at", "attention-iat-word")
"""Rows <row>-by-f1 (as their papers select) and <row>-by-rule (as ours and SEAT's are selected)."""
FIXED: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "word-at": {"epsilon": 0.2},
    "synonym-augmentation": {"share": 0.8},
    "ensemble": {},
}
ABLATION: dict[str, dict[str, Any]] = {  # SEAT's terms, at the constants of the released code
    **{f"seat-both-terms-{d}": {"variant": "paper", "divergence": name} for d, name in DIVERGENCES.items()},
    **{
        f"seat-no-top-k-{d}": {"variant": "paper", "divergence": name, "overlap": 0.0}
        for d, name in DIVERGENCES.items()
    },
    "seat-no-stability": {"variant": "paper", "stability": 0.0},
    "seat-neither": {"variant": "paper", "overlap": 0.0, "stability": 0.0},
}
WITHOUT: dict[str, dict[str, Any]] = {
    "anchored-no-noise": {"noise": 0.0},
    "anchored-no-swaps": {"swaps": 0.0},
    "consensus-no-noise-no-swaps": {"noise": 0.0, "swaps": 0.0},
}
TEMPERATURES = (1.5, 2.0, 3.0)
"""Vanilla models whose attention scores are divided by these after training: flatter weights, the same order."""
STARTS_FROM_VANILLA = ("seat-", "anchored", "tempered-")
"""Rows whose model of seed s starts from the vanilla model of seed s."""
SAVED = ("vanilla", "word-at")
"""Rows whose models are teachers."""
TECHNIQUES = (
    *("attention-iat", "attention-at", "attention-rp", "seat", "consensus", "anchored", "word-at", "word-iat"),
    *("synonym-augmentation", "vanilla"),
)


@dataclass(frozen=True)
class Job:
    phase: str  # select | test | seeds
    setting: str
    row: str
    seed: int = 0
    config: int | None = None  # index into the grid, during the selection
    teachers: tuple[str, ...] = ()  # jobs whose models this one starts from, or stays close to
    needs: tuple[str, ...] = ()  # other jobs that must be done first
    twins: tuple[str, ...] = ()  # jobs of another row that may have the same configuration

    @property
    def id(self) -> str:
        tail = f".c{self.config}" if self.config is not None else ""
        return f"{self.phase}.{self.setting}.{self.row}.s{self.seed}{tail}"

    @property
    def technique(self) -> str:
        return next((name for name in TECHNIQUES if self.row.startswith(name)), "vanilla")

    @property
    def temperature(self) -> float | None:
        return float(self.row.removeprefix("tempered-")) if self.row.startswith("tempered-") else None

    @property
    def dependencies(self) -> tuple[str, ...]:
        return (*self.teachers, *self.needs, *self.twins)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Jobs whose model or readings it uses, not their records alone."""
        return (*self.teachers, *self.twins, *(self.needs if self.phase == "seeds" else ()))


def plan() -> list[Job]:
    """All jobs: the selection, then one setting after the other, then the second way of selecting published rows."""
    plain = [Job("select", setting, "vanilla", seed) for setting in SELECTION_SETTINGS for seed in SELECTION_SEEDS]
    choosing = {row: _choosing(row) for row in GRID}
    chosen = {row: tuple(job.id for job in (*choosing[row], *plain)) for row in GRID}
    jobs = [job for setting in SETTINGS for job in _main(setting, chosen)]
    jobs += [job for row in BOTH_RULES for setting in SETTINGS for job in _by_rule(row, setting, chosen[row])]
    together: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        together.setdefault((job.setting, job.row), []).append(job.id)
    seeds = [Job("seeds", setting, row, needs=tuple(ids)) for (setting, row), ids in together.items()]
    return [*seeds, *plain, *(job for row in GRID for job in choosing[row]), *jobs]


def _choosing(row: str) -> list[Job]:
    return [
        Job("select", setting, row, seed, i, (Job("select", setting, "vanilla", seed).id,))
        for i in range(len(GRID[row]))
        for setting in SELECTION_SETTINGS
        for seed in SELECTION_SEEDS
    ]


def _main(setting: str, chosen: dict[str, tuple[str, ...]]) -> list[Job]:
    five, ours = range(SEEDS), chosen["anchored"]
    jobs = [Job("test", setting, row, seed) for row in SAVED for seed in range(VANILLA_SEEDS)]
    jobs += [_student("consensus", "vanilla", setting, seed, ours) for seed in five]
    jobs += [_student("consensus-word-at", "word-at", setting, seed, ours) for seed in five]
    jobs += [_beside("anchored", setting, seed, ours) for seed in five]
    jobs += [_beside("synonym-augmentation", setting, seed) for seed in five]
    jobs += [_student("ensemble", "vanilla", setting, seed) for seed in five]
    jobs += [_beside(f"tempered-{t}", setting, seed) for t in TEMPERATURES for seed in five]
    seat = [row for row in GRID if row.startswith("seat-")]
    jobs += [_beside(row, setting, seed, chosen[row]) for row in seat for seed in five]
    for row in BOTH_RULES:
        twin = "word-at" if row == "word-at" else None
        jobs += [_beside(f"{row}-by-f1", setting, seed, chosen[row], twin) for seed in five]
    if setting == "sst2-bilstm":
        jobs += [_beside(row, setting, seed) for row in ABLATION for seed in five]
        jobs += [_beside(row, setting, seed, ours) for row in list(WITHOUT)[:2] for seed in five]
        jobs += [_student("consensus-no-noise-no-swaps", "vanilla", setting, seed, ours) for seed in five]
    return jobs


def _by_rule(row: str, setting: str, needs: tuple[str, ...]) -> list[Job]:
    return [_beside(f"{row}-by-rule", setting, seed, needs, f"{row}-by-f1") for seed in range(SEEDS)]


def _beside(row: str, setting: str, seed: int, needs: tuple[str, ...] = (), twin: str | None = None) -> Job:
    """A model that starts from the vanilla model of its seed, or is compared with its attention."""
    teachers = (Job("test", setting, "vanilla", seed).id,)
    twins = () if twin is None else (Job("test", setting, twin, seed).id,)
    return Job("test", setting, row, seed, None, teachers, needs, twins)


def _student(row: str, teacher: str, setting: str, seed: int, needs: tuple[str, ...] = ()) -> Job:
    """A model made of five others: seed s has the teachers 5 s to 5 s + 4."""
    group = tuple(Job("test", setting, teacher, s).id for s in range(TEACHERS * seed, TEACHERS * (seed + 1)))
    return Job("test", setting, row, seed, None, group, needs)
