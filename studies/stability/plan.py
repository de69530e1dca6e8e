"""The plan of the study: settings, hyper-parameter grids, and the rows of the tables.

A model group is the models of one row and setting, which differ in their seed.  They are trained together.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

SETTINGS = {
    "sst2-bilstm": ("sst2", "bilstm"),
    "rt-bilstm": ("rotten_tomatoes", "bilstm"),
    "emotion-bilstm": ("tweet_emotion", "bilstm"),
    "hate-bilstm": ("tweet_hate", "bilstm"),
}
"""Name -> corpus and encoder."""
HATE = "hate-bilstm"
"""Stands apart: its test texts differ from its training texts, and vanilla has a macro-F1 below 0.5."""
MAIN_SETTINGS = [name for name in SETTINGS if name != HATE]
"""The settings of means and ranges."""
SELECTION_SETTINGS = ("sst2-bilstm", "rt-bilstm")
SELECTION_SEEDS = (0, 1)
SELECTION_PROBES = ("noise", "fgm-label", "pgd-attention", "3-synonyms")
"""Held-out pairs and WordNet take no part in the selection."""
MARGIN = 0.005
"""Loss of validation macro-F1 that the rule accepts."""
SEEDS, TEACHERS = 5, 5
TEACHER_SEEDS = SEEDS * TEACHERS
"""Models of a row whose models are teachers: every student has five of its own."""
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
FIXED_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "word-at": {"epsilon": 0.2},
    "synonym-augmentation": {"share": 0.8},
    "ensemble": {},
}
ABLATION: dict[str, dict[str, Any]] = {  # SEAT's terms, at the defaults of `seat`
    **{f"seat-both-terms-{d}": {"variant": "paper", "divergence": name} for d, name in DIVERGENCES.items()},
    **{
        f"seat-no-top-k-{d}": {"variant": "paper", "divergence": name, "overlap": 0.0}
        for d, name in DIVERGENCES.items()
    },
    "seat-no-stability": {"variant": "paper", "stability": 0.0},
    "seat-neither": {"variant": "paper", "overlap": 0.0, "stability": 0.0},
}
PART_ABLATIONS: dict[str, dict[str, Any]] = {
    "anchored-no-noise": {"noise": 0.0},
    "anchored-no-swaps": {"swaps": 0.0},
    "consensus-no-noise-no-swaps": {"noise": 0.0, "swaps": 0.0},
}
TEMPERATURES = (1.5, 2.0, 3.0)
"""Vanilla models whose attention scores are divided by these after training: flatter weights, the same order."""
NOT_TRAINED = ("tempered-", "ensemble")
"""Rows without models of their own."""
COSTS = {
    "vanilla-groups": 1,
    "consensus": 8,
    "consensus-groups": 8,
    "consensus-word-at": 13,
    "anchored": 3.6,
    "word-at": 2,
    "word-at-groups": 2,
    "synonym-augmentation": 2,
    "ensemble": 5,
    "word-iat-by-f1": 2.1,
    "attention-rp-by-f1": 1.25,
    "attention-at-by-f1": 1.28,
    "attention-iat-word-by-f1": 1.25,
    "seat-joint-kl": 2.3,
    "grouped-word-at": 2,
    "long-student": 4.9,
    "two-teachers": 3.6,
}
"""Row -> training cost in vanilla runs: the section Cost of each technique's docstring, references included."""
STARTS_FROM_VANILLA = ("seat-", "anchored", "tempered-")
"""Rows whose model of seed s starts from the vanilla model of seed s."""
GROUPS = "-groups"
"""Ending of the rows whose models read the synonyms of the training table as one word."""
TEACHER_ROWS = ("vanilla", "word-at", "vanilla-groups")
TECHNIQUES = (
    *("attention-iat", "attention-at", "attention-rp", "seat", "consensus", "anchored", "word-at", "word-iat"),
    *("synonym-augmentation", "vanilla"),
)
Config = dict[str, Any]
Phase = Literal["select", "test"]


@dataclass(frozen=True)
class ModelGroup:
    """The models of one row and setting: trained together, measured one by one."""

    phase: Phase
    setting: str
    row: str
    config: Config = field(default_factory=dict, hash=False)
    seeds: int = SEEDS
    teachers: str = ""
    """Row whose models these start from, stay close to or are compared with."""
    source: str = ""
    """Row of the same configuration whose models these are."""
    index: int | None = None
    """Position in the grid, during the selection."""

    @property
    def name(self) -> str:
        return f"{self.phase}.{self.setting}.{self.row}" + ("" if self.index is None else f".c{self.index}")

    def model_name(self, seed: int) -> str:
        return f"{self.name}.s{seed}"

    @property
    def technique(self) -> str:
        return next((name for name in TECHNIQUES if self.row.startswith(name)), "vanilla")

    @property
    def has_groups(self) -> bool:
        return self.row.endswith(GROUPS)

    @property
    def temperature(self) -> float | None:
        return float(self.row.removeprefix("tempered-")) if self.row.startswith("tempered-") else None

    @property
    def is_trained(self) -> bool:
        return not self.source and not self.row.startswith(NOT_TRAINED)

    @property
    def reads_teachers(self) -> bool:
        """Whether the models of other rows are an input: of training, or of a model without training."""
        return self.technique in ("anchored", "consensus", "seat") or self.row == "ensemble" or bool(self.temperature)

    def sibling(self, row: str) -> "ModelGroup":
        """The group of another row of the same phase and setting."""
        return ModelGroup(self.phase, self.setting, row)

    def teacher_seeds(self, seed: int) -> tuple[int, ...]:
        """Seed s of a student has the teachers 5 s to 5 s + 4; other models have one, of their own seed."""
        if not self.teachers:
            return ()
        if self.technique == "consensus" or self.row == "ensemble":
            return tuple(range(TEACHERS * seed, TEACHERS * (seed + 1)))
        return (seed,)


@dataclass(frozen=True)
class Job(ModelGroup):
    """Training of a group, or measures of one of its models, or a comparison of its seeds."""

    kind: Literal["train", "measure", "seeds"] = "measure"
    seed: int = 0

    @property
    def id(self) -> str:
        return {"train": self.name, "measure": self.model_name(self.seed), "seeds": self.seeds_name}[self.kind]

    @property
    def seeds_name(self) -> str:
        return self.name.replace("test.", "seeds.", 1)

    def needs(self) -> tuple[str, ...]:
        """The jobs whose models or outputs this one reads."""
        if self.kind == "seeds":
            return tuple(self.model_name(seed) for seed in range(self.seeds))
        if self.source:
            return (self.sibling(self.source).model_name(self.seed),)
        names = [self.name] if self.is_trained and self.kind == "measure" else []
        if self.reads_teachers:
            names.append(self.sibling(self.teachers).name)
        if self.kind == "train":
            return tuple(names)
        if self.has_groups:
            names.append(self.sibling("vanilla").name)  # its vocabulary
        if self.phase == "test":
            names += [self.sibling(self.teachers).model_name(teacher) for teacher in self.teacher_seeds(self.seed)]
        return tuple(names)


def jobs_of(groups: Sequence[ModelGroup]) -> list[Job]:
    """Training, measures and comparison of seeds of each group, in the order in which they should run."""
    jobs: list[Job] = []
    for group in groups:
        fields = vars(group)
        jobs += [Job(**fields, kind="train")] if group.is_trained else []
        jobs += [Job(**fields, seed=seed) for seed in range(group.seeds)]
        jobs += [Job(**fields, kind="seeds")] if group.phase == "test" else []
    return jobs


def with_needs(jobs: Sequence[Job], pattern: str) -> list[Job]:
    """The jobs whose names match, and all that they need, in the order of the plan."""
    known = {job.id: job for job in jobs}
    names = {name for name in known if re.search(pattern, name)}
    pending = list(names)
    while pending:
        new = set(known[pending.pop()].needs()) - names
        names |= new
        pending += new
    return [job for job in jobs if job.id in names]


def selection_groups() -> list[ModelGroup]:
    """Every configuration of the grids, and vanilla, on the settings of the selection."""
    seeds = len(SELECTION_SEEDS)
    plain = [ModelGroup("select", setting, "vanilla", seeds=seeds) for setting in SELECTION_SETTINGS]
    return plain + [
        ModelGroup("select", setting, row, config, seeds, "vanilla", index=index)
        for row, grid in GRID.items()
        for index, config in enumerate(grid)
        for setting in SELECTION_SETTINGS
    ]


def row_groups(selected: Mapping[str, Config]) -> list[ModelGroup]:
    """The rows of the tables, those first that others need and those of the first findings.

    selected: anchored, seat-* and <row>-by-f1, <row>-by-rule -> configuration
    """
    first = [
        ModelGroup("test", setting, row, FIXED_CONFIGURATIONS.get(row.removesuffix(GROUPS), {}), TEACHER_SEEDS)
        for row in TEACHER_ROWS
        for setting in SETTINGS
    ]
    return first + [group for setting in SETTINGS for group in _rows(setting, selected)]


def _rows(setting: str, selected: Mapping[str, Config]) -> list[ModelGroup]:
    ours = selected["anchored"]

    def group(row: str, config: Config | None = None, teachers: str = "vanilla", source: str = "") -> ModelGroup:
        return ModelGroup("test", setting, row, config or {}, teachers=teachers, source=source)

    def student(row: str, teachers: str, **without: float) -> ModelGroup:
        own = {"teachers": TEACHERS, "teacher": "word-at" if teachers == "word-at" else "vanilla"}
        return group(row, {**ours, **own, **without}, teachers)

    groups = [
        student("consensus", "vanilla"),
        student("consensus-groups", "vanilla-groups"),
        group("word-at-groups", FIXED_CONFIGURATIONS["word-at"], "vanilla-groups"),
        student("consensus-word-at", "word-at"),
        group("anchored", ours),
        group("synonym-augmentation", FIXED_CONFIGURATIONS["synonym-augmentation"]),
        group("ensemble"),
        *(group(f"tempered-{t}") for t in TEMPERATURES),
        *(group(row, selected[row]) for row in GRID if row.startswith("seat-")),
    ]
    for row in BOTH_RULES:
        by_f1, by_rule = selected[f"{row}-by-f1"], selected[f"{row}-by-rule"]
        fixed = row if by_f1 == FIXED_CONFIGURATIONS.get(row) else ""
        groups.append(group(f"{row}-by-f1", by_f1, source=fixed))
        same = fixed or f"{row}-by-f1"
        groups.append(group(f"{row}-by-rule", by_rule, source=same if by_rule == by_f1 else ""))
    if setting == "sst2-bilstm":
        groups += [group(row, config) for row, config in ABLATION.items()]
        groups += [group(row, {**ours, **PART_ABLATIONS[row]}) for row in list(PART_ABLATIONS)[:2]]
        groups.append(
            student("consensus-no-noise-no-swaps", "vanilla", **PART_ABLATIONS["consensus-no-noise-no-swaps"])
        )
    return groups
