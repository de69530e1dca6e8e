"""Rows, data sets and jobs of the study of synonym groups.

word-at              8 epochs, constant learning rate
fast-E-R             word-at for E epochs; the learning rate decays linearly from R × 0.001
tT-eE                consensus of T word-at teachers, student of E epochs
E-R-tT-eE            consensus of T teachers of the row fast-E-R
*-no-swaps           the student substitutes no words
*-equal-entropy      the attention of all teachers of a text is tempered to their mean entropy before averaging
*-xT                 the mean prediction of the teachers is tempered by T
*-own-…              the student substitutes words by the tables of its groups, else by the counter-fitted table
*-aA                 the mean attention of the teachers is tempered by A
*-sS                 the loss under substitutions has the weight S instead of 1
*-mean-logits        the mean of the teachers' logits, not of their probabilities
scorers-K-E-eE       one word-at teacher of E epochs (learning rate 4 × 0.001, linear) with K scorers and decoders
snapshots-A-B-eE     teachers from one run of word-at: A epochs, then B more after the learning rate is reset to 0.002
self-anchor          word-at and substitutions, anchored to the moving average of the own weights; no teachers
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any


@dataclass(frozen=True)
class Setting:
    corpus: str
    encoder: str = "bilstm"
    every: int = 1
    """Keeps every n-th text."""
    characters: int | None = None
    """Keeps the first words of a text."""
    epochs: int | None = None
    """Epochs instead of the default of 8; those of other rows in proportion."""
    long: int = 0
    """Jobs of a higher number run first."""


CORPORA = {
    "sst2": Setting("sst2"),
    "rotten_tomatoes": Setting("rotten_tomatoes"),
    "tweet_emotion": Setting("tweet_emotion"),
    "imdb": Setting("imdb", every=10, characters=1200, long=1),
    "sst2-minilm": Setting("sst2", "transformer:minilm", epochs=3, long=2),
}


@dataclass(frozen=True)
class Row:
    technique: str
    """Of steadygaze, or of models.py."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    teacher: str = ""
    """Row of the teachers."""
    teachers: int = 0
    epochs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a technique of models.py; numbers of epochs."""
    own_tables: bool = False
    """Whether a student substitutes words by the tables of its groups."""


def _fast(epochs: int, factor: int) -> Row:
    return Row("word-at", {"learning_rate": factor * 1e-3, "schedule": "linear"}, epochs=epochs)


def _students() -> dict[str, Row]:
    rows = {f"t{t}-e2": Row("consensus", {}, "word-at", t, 2) for t in (1, 2, 3, 5)}
    for epochs, factor in FAST_SCHEDULES:
        for teachers, student in ((2, 2), (3, 2), (2, 1), (2, 4)):
            name = f"{epochs}-{factor}-t{teachers}-e{student}"
            rows[name] = Row("consensus", {}, f"fast-{epochs}-{factor}", teachers, student)
    return rows


def _snapshots(student: int, *cycles: int) -> Row:
    return Row("snapshots", {"learning_rate": 2e-3}, options={"cycles": cycles, "student": student})


def _tempered_row(epochs: int, factor: int, student: int, temperature: float) -> Row:
    return Row("consensus", {"target_temperature": temperature}, f"fast-{epochs}-{factor}", 2, student)


def _own_table_row(student: int, temperature: float, swaps: float = 1.0) -> tuple[str, Row]:
    name = f"4-4-t2-e{student}-own-x{temperature}" + f"-s{swaps:g}" * (swaps != 1)
    settings = {"target_temperature": temperature, "swaps": swaps}
    return name, Row("consensus", settings, "fast-4-4", 2, student, own_tables=True)


def _sharper_row(student: int, temperature: float, attention: float) -> tuple[str, Row]:
    options = {"target_temperature": temperature, "attention_temperature": attention}
    row = Row("sharper-attention", {}, "fast-4-4", 2, student, options, own_tables=True)
    return f"4-4-t2-e{student}-own-x{temperature}-a{attention}", row


def _scorers(scorers: int, teacher: int, student: int) -> Row:
    return Row("scorers", {}, options={"scorers": scorers, "teacher": teacher, "student": student})


TEMPERED_STUDENTS = ((4, 4, 1, 0.7), (4, 4, 1, 0.5), (4, 4, 1, 0.35), (4, 4, 2, 0.5))
OWN_TABLE_ROWS = dict(
    (
        *starmap(_own_table_row, ((2, 0.5), (4, 0.35), (8, 0.5), (8, 0.25))),
        *starmap(_own_table_row, ((8, 0.5, 2.0), (8, 0.5, 4.0), (8, 0.5, 8.0), (8, 0.5, 16.0), (8, 0.7, 8.0))),
        *starmap(_sharper_row, ((4, 0.35, 0.8), (8, 0.5, 0.8), (8, 0.25, 0.8), (8, 0.35, 0.65))),
    )
)
"""Students that substitute words by the tables of their groups."""
FAST_SCHEDULES = ((3, 4), (4, 4), (3, 8), (2, 8), (5, 2), (5, 4))
ROWS: dict[str, Row] = {
    "vanilla": Row("vanilla"),
    "word-at": Row("word-at"),
    **{f"fast-{epochs}-{factor}": _fast(epochs, factor) for epochs, factor in FAST_SCHEDULES},
    **_students(),
    "4-4-t2-e2-no-swaps": Row("consensus", {"swaps": 0.0}, "fast-4-4", 2, 2),
    "5-4-t2-e1-no-swaps": Row("consensus", {"swaps": 0.0}, "fast-5-4", 2, 1),
    "t2-e2-equal-entropy": Row("equal-entropy", {}, "word-at", 2, 2),
    **{f"{e}-{r}-t2-e{s}-x{t}": _tempered_row(e, r, s, t) for e, r, s, t in TEMPERED_STUDENTS},
    **OWN_TABLE_ROWS,
    "4-4-t2-e1-mean-logits": Row("mean-logits", {}, "fast-4-4", 2, 1),
    "scorers-4-4-e2": _scorers(4, 4, 2),
    "scorers-4-6-e2": _scorers(4, 6, 2),
    "snapshots-4-2-e2": _snapshots(2, 4, 2),
    "snapshots-6-3-e1": _snapshots(1, 6, 3),
    "snapshots-5-3-e2": _snapshots(2, 5, 3),
    "snapshots-4-2-2-e1": _snapshots(1, 4, 2, 2),
    "self-anchor": Row("self-anchor"),
}
SHARPENED_ROWS = tuple(name for name in ROWS if "-x0." in name)
CHEAPER: dict[str, tuple[str, ...]] = {
    "vanilla": ("none", "linked"),
    "word-at": ("linked",),
    "4-4-t2-e2": ("linked", "both"),
    "4-4-t2-e2-no-swaps": ("linked", "both"),
    "5-4-t2-e1": ("linked",),
    "5-4-t2-e1-no-swaps": ("linked",),
    "snapshots-6-3-e1": ("linked", "both"),
    "snapshots-5-3-e2": ("both",),
    "snapshots-4-2-2-e1": ("both",),
    "5-2-t2-e1": ("both",),
    **{f"{e}-{r}-t2-e2": ("both",) for e, r in ((3, 4), (3, 8), (2, 8))},
    **{f"t{t}-e2": ("both",) for t in (2, 1, 5, 3)},
    **{f"{e}-{r}-t3-e2": ("both",) for e, r in ((3, 4), (2, 8))},
    "4-4-t2-e1": ("both",),
    "snapshots-4-2-e2": ("both",),
    "t2-e2-equal-entropy": ("both",),
    **dict.fromkeys(("4-4-t2-e1-mean-logits", "scorers-4-4-e2", "scorers-4-6-e2", *SHARPENED_ROWS), ("linked",)),
    "self-anchor": ("both",),
}
"""Row -> its groups."""
GROUPS = ("both", "none", "linked", "cf", "wn")
STUDY: dict[str, tuple[str, ...]] = {
    "vanilla": ("none", "both", "linked", "cf", "wn"),
    "word-at": ("none", "both", "linked", "cf", "wn"),
}
"""The selected student comes last."""
SELECTABLE = (
    *("t1-e2", "4-4-t2-e2", "5-2-t2-e1"),
    *(name for name in ROWS if name.startswith(("snapshots", "scorers")) or name.endswith("mean-logits")),
    *SHARPENED_ROWS,
)
"""Students that cost at most about three times as much as vanilla, and OWN_TABLE_ROWS, which cost up to six times."""


@dataclass(frozen=True)
class Job:
    corpus: str
    technique: str
    groups: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.corpus}.{self.technique}.{self.groups}.s{self.seed}"

    @property
    def teachers(self) -> list["Job"]:
        """Models of other seeds than other students have."""
        row = ROWS[self.technique]
        seeds = range(row.teachers * self.seed, row.teachers * (self.seed + 1))
        return [Job(self.corpus, row.teacher, self.groups, seed) for seed in seeds]


FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Factors of the logits; `scaled` of a record has (confidence, comprehensiveness) for each."""
JOB_FIELDS = ("corpus", "technique", "groups", "seed")


def seeds_of(name: str, groups: str, corpus: str, cheaper: bool) -> int:
    if not cheaper or (corpus not in ("imdb", "sst2-minilm") and (groups == "linked" or name == "vanilla")):
        return 5
    return 3 if name in ("vanilla", "t3-e2", *SELECTABLE) or name.endswith("t2-e2") else 2


def rows_of(cheaper: bool, student: str, rows: str) -> Mapping[str, Sequence[str]]:
    """Row -> its groups.  `rows`: technique:groups, separated by commas, instead of the study's."""
    if rows:
        listed: dict[str, list[str]] = {}
        for name, groups in (row.split(":") for row in rows.split(",")):
            listed.setdefault(name, []).append(groups)
        return listed
    return CHEAPER if cheaper else STUDY | {student: GROUPS}


def plan(
    rows: Mapping[str, Sequence[str]], corpora: Sequence[str], max_seeds: int, cheaper: bool, in_order: bool
) -> list[Job]:
    """Every row and the teachers it needs; rows that come first are trained first, and long texts if not `in_order`."""
    trained = [
        Job(corpus, name, groups, seed)
        for name, groups_of_row in rows.items()
        for groups in groups_of_row
        for corpus in corpora
        for seed in range(min(max_seeds, seeds_of(name, groups, corpus, cheaper)))
    ]
    planned = dict.fromkeys(job for row in trained for job in (*row.teachers, row))
    return list(planned) if in_order else sorted(planned, key=lambda job: (job.seed >= 3, -CORPORA[job.corpus].long))


def matching_jobs(planned: Sequence[Job], only: str) -> Iterator[Job]:
    """The jobs that `only` matches, and their teachers."""
    names = {job.id for job in planned if re.search(only, job.id)}
    names |= {teacher.id for job in planned if job.id in names for teacher in job.teachers}
    return (job for job in planned if job.id in names)


def teachers_of(job: Job) -> tuple[str, ...]:
    """The jobs that train the teachers of a job."""
    return tuple(teacher.id for teacher in job.teachers)


LONG, WEIGHT_8, SHORT = "4-4-t2-e8-own-x0.5-s4", "4-4-t2-e8-own-x0.5-s8", "4-4-t2-e2"
THREE, TWO, IMDB, MINILM = (
    ["sst2", "rotten_tomatoes", "tweet_emotion"],
    ["sst2", "rotten_tomatoes"],
    "imdb",
    "sst2-minilm",
)
NAMES = {
    SHORT: "two short teachers",
    f"{SHORT}-x0.5": "two short teachers, T = 0.5",
    f"{SHORT}-no-swaps": "two short teachers, no substitutions",
    LONG: "long student",
    "consensus-word-at": "five word-at teachers, student of 8 epochs",
    "t2-e2-equal-entropy": "2 word-at teachers of equal entropy",
    "4-4-t2-e1-mean-logits": "two short teachers, student of 1 epoch, mean of logits",
    "scorers-4-4-e2": "4 scorers, teacher of 4 epochs",
    "scorers-4-6-e2": "4 scorers, teacher of 6 epochs",
}
GROUP_NAMES = {"linked": "both, linked"}


def name_of(technique: str) -> str:
    """A row as the page calls it; the rows of plan.py have no other name."""
    if technique in NAMES:
        return NAMES[technique]
    if match := re.fullmatch(r"4-4-t2-e(\d)-own-x([\d.]+)(?:-a([\d.]+))?(?:-s(\d+))?", technique):
        epochs, temperature, attention, weight = match.groups()
        text = f"{epochs} epochs, T = {temperature}, weight {weight or 1}" + f", τ = {attention}" * bool(attention)
    elif match := re.fullmatch(r"fast-(\d)-(\d)", technique):
        text = "word-at of {} epochs, rate × {}".format(*match.groups())
    elif match := re.fullmatch(r"(?:(\d)-(\d)-)?t(\d)-e(\d)(?:-x([\d.]+))?", technique):
        epochs, rate, count, student, temperature = match.groups()
        text = f"{count} teachers" + f" of {epochs} epochs, rate × {rate}" * bool(epochs)
        text += f", student of {student} epochs" + f", T = {temperature}" * bool(temperature)
    elif match := re.fullmatch(r"snapshots-([\d-]+)-e(\d)", technique):
        text = "snapshots after {} epochs, student of {} epochs".format(match[1].replace("-", ", "), match[2])
    else:
        text = technique
    return text.replace("1 teachers", "1 teacher").replace("student of 1 epochs", "student of 1 epoch")
