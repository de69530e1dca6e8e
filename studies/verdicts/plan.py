"""Rows, data sets and jobs of the study of verdicts about trained models, and what was expected of them.

A job trains a model, or audits one.  Rows:

    vanilla, word-at                  default settings
    vanilla-groups, word-at-groups    the same with synonym groups of the audit's first table
    consensus, consensus-groups       the long student of docs/results/synonym-groups.md, with that table
    anchored                          with that table; starts from the vanilla model of the seed
    seat                              default settings; starts from the vanilla model of the seed
    tempered                          the vanilla model of the seed, its attention scores divided by TEMPERATURE

Rule, fixed before the run: a row is a *yes* on a data set if one explainer has the answer yes in DECIDED of its seeds.

Expected, before the run: `word-at-groups` and `consensus-groups` are a yes for rewording by the first table with
integrated gradients and leave-one-out on SST-2, Rotten Tomatoes and one of the TweetEval sets.  No row without groups
is a yes on more than one data set.  Attention is undecided wherever its faithfulness is, so it is a yes in few places.
By the unused table, groups help less, and `consensus-groups` is a yes on fewer data sets.  Robustness of attention is
a no for vanilla, and better for `word-at` and `consensus`; tempered attention is as vanilla's: its order is the same.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from studies import jobs

CORPORA = ("sst2", "rotten_tomatoes", "tweet_emotion", "tweet_hate")
SEEDS = 5
OTHER_SEEDS = 1
"""Models of other seeds that an audit compares with."""
TEXTS = 200
"""Audited test texts."""
TRAINING, VALIDATION = 3000, 500
"""Most training and validation texts."""
DECIDED = 0.8
"""Share of seeds."""
TEMPERATURE = 2.0
EXPLAINERS = ("attention", "integrated-gradients", "leave-one-out", "input-x-gradient")
OWN, UNUSED = "own", "unused"
"""The table of groups and techniques, and one whose pairs are not in it."""
GROUPS = "-groups"
LONG_STUDENT: dict[str, Any] = {
    "swaps": 4,
    "target_temperature": 0.5,
    "teacher": "word-at",
    "teachers": 2,
    "teacher_epochs": 0.5,
    "teacher_rate": 4,
}
ROWS: dict[str, dict[str, Any]] = {
    "vanilla": {},
    "consensus-groups": LONG_STUDENT,
    "consensus": LONG_STUDENT,
    "word-at-groups": {},
    "word-at": {},
    "vanilla-groups": {},
    "seat": {},
    "tempered": {},
    "anchored": {},
}
"""Settings of the technique.  Models that others start from come first, then those that train longest."""
LAST = ("seat", "tempered", "anchored")
"""Rows that run after all seeds of the others."""
SUBSTITUTING = ("consensus", "anchored")
"""Techniques that read the first table."""
FROM_VANILLA = ("anchored", "seat")
FULL = ("vanilla", "consensus-groups")
"""Rows whose model of seed 0 gets a whole audit: it shows what the other audits leave out."""
Kind = Literal["train", "audit"]


@dataclass(frozen=True)
class Job(jobs.Job):
    """Training or audit of one model."""

    kind: Kind
    corpus: str
    row: str
    seed: int

    @property
    def technique(self) -> str:
        return self.row.removesuffix(GROUPS)

    @property
    def has_groups(self) -> bool:
        return self.row.endswith(GROUPS)

    @property
    def is_full(self) -> bool:
        return self.row in FULL and self.seed == 0

    def model(self, seed: int | None = None) -> "Job":
        """The training of this model, or of that of another seed."""
        row = "vanilla" if self.row == "tempered" else self.row
        return Job("train", self.corpus, row, self.seed if seed is None else seed)

    def start(self) -> "Job | None":
        """The training of the model that this one starts from."""
        return Job("train", self.corpus, "vanilla", self.seed) if self.row in FROM_VANILLA else None

    def others(self) -> list["Job"]:
        """The models of other seeds that the audit compares with: the nearest lower ones, then higher ones."""
        below, above = range(self.seed - 1, -1, -1), range(self.seed + 1, SEEDS)
        return [self.model(seed) for seed in (*below, *above)][:OTHER_SEEDS]

    def needs(self) -> tuple["Job", ...]:
        if self.kind == "audit":
            return (self.model(), *self.others())
        start = self.start()
        return () if start is None else (start,)


def plan() -> list[Job]:
    """All jobs, lower seeds first: a run that is stopped has whole rows and seeds."""
    blocks: list[Sequence[int]] = [range(OTHER_SEEDS + 1), *([seed] for seed in range(OTHER_SEEDS + 1, SEEDS))]
    return [
        Job(kind, corpus, row, seed)
        for rows in ([row for row in ROWS if row not in LAST], LAST)
        for seeds in blocks
        for kind in ("train", "audit")
        for seed in seeds
        for row in rows
        for corpus in CORPORA
        if (kind, row) != ("train", "tempered")
    ]


def open_jobs(planned: Sequence[Job], only: str, finished: Collection[str]) -> list[Job]:
    """The audits that match and are not finished, and the trainings that they need."""
    audits = [job for job in planned if job.kind == "audit" and re.search(only, job.id) and job.id not in finished]
    needed = set(_with_needs(audits))
    return [job for job in planned if job in needed]


def _with_needs(jobs_of: Sequence[Job]) -> Iterator[Job]:
    for job in jobs_of:
        yield job
        yield from _with_needs(job.needs())
