"""Rows, data sets and jobs of the study of synonym groups.

word-at              8 epochs, constant learning rate
fast-E-R             word-at for E epochs; the learning rate decays linearly from R × 0.001
tT-eE                consensus of T word-at teachers, student of E epochs
E-R-tT-eE            consensus of T teachers of the row fast-E-R
*-no-swaps           the student substitutes no words
*-own-…              the student substitutes words by the tables of its groups, else by the counter-fitted table
*-xT                 the mean prediction of the teachers is tempered by T
*-sS                 the loss under substitutions has the weight S instead of 1

Students of other rows were not selected; the commits of their numbers have their code:

*-equal-entropy      the attention of all teachers of a text is tempered to their mean entropy before averaging
*-aA                 the mean attention of the teachers is tempered by A
*-mean-logits        the mean of the teachers' logits, not of their probabilities
scorers-K-E-eE       one word-at teacher of E epochs (learning rate 4 × 0.001, linear) with K scorers and decoders
snapshots-A-B-eE     teachers from one run of word-at: A epochs, then B more after the learning rate is reset to 0.002
self-anchor          word-at and substitutions, anchored to the moving average of the own weights; no teachers
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from studies import jobs


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
    settings: Mapping[str, Any] = field(default_factory=dict)
    teacher: str = ""
    """Row of the teachers."""
    teachers: int = 0
    epochs: int | None = None
    own_tables: bool = False
    """Whether a student substitutes words by the tables of its groups."""


FAST = re.compile(r"fast-(\d)-(\d)")
STUDENT = re.compile(
    r"(?:(?P<epochs>\d)-(?P<rate>\d)-)?t(?P<teachers>\d)-e(?P<student>\d)(?P<own>-own)?(?:-x(?P<target>[\d.]+))?"
    r"(?:-a(?P<attention>[\d.]+))?(?:-s(?P<weight>\d+))?(?:-(?P<form>no-swaps|equal-entropy|mean-logits))?"
)


@cache
def row_of(name: str) -> Row | None:
    """The row of a name; None for a student of another study."""
    if match := FAST.fullmatch(name):
        return Row("word-at", {"learning_rate": int(match[2]) * 1e-3, "schedule": "linear"}, epochs=int(match[1]))
    if match := STUDENT.fullmatch(name):
        settings = {"target_temperature": float(match["target"])} if match["target"] else {}
        settings |= {"swaps": float(match["weight"])} if match["weight"] else {}
        technique = "sharper-attention" if match["attention"] else "consensus"
        if match["form"] == "no-swaps":
            settings["swaps"] = 0.0
        elif match["form"]:
            technique = match["form"]
        teacher = f"fast-{match['epochs']}-{match['rate']}" if match["epochs"] else "word-at"
        numbers = int(match["teachers"]), int(match["student"])
        return Row(technique, settings, teacher, *numbers, own_tables=bool(match["own"]))
    return Row(name) if name.startswith(("vanilla", "word-at", "snapshots", "scorers")) else None


GROUPS = ("both", "none", "linked", "cf", "wn")
STUDY: dict[str, tuple[str, ...]] = {
    "vanilla": ("none", "both", "linked", "cf", "wn"),
    "word-at": ("none", "both", "linked", "cf", "wn"),
}


@dataclass(frozen=True)
class Job(jobs.Job):
    corpus: str
    technique: str
    groups: str
    seed: int

    @property
    def row(self) -> Row:
        row = row_of(self.technique)
        assert row is not None, f"{self.technique} is not a row"
        return row

    @property
    def teachers(self) -> list["Job"]:
        """Models of other seeds than other students have."""
        row = self.row
        seeds = range(row.teachers * self.seed, row.teachers * (self.seed + 1))
        return [Job(self.corpus, row.teacher, self.groups, seed) for seed in seeds]


FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Factors of the logits; `scaled` of a record has (confidence, comprehensiveness) for each."""
JOB_FIELDS = ("corpus", "technique", "groups", "seed")


def rows_of(student: str, rows: str) -> Mapping[str, Sequence[str]]:
    """Row -> its groups.  `rows`: technique:groups, separated by commas, instead of the study's."""
    if not rows:
        return STUDY | {student: GROUPS}
    listed: dict[str, list[str]] = {}
    for name, groups in (row.split(":") for row in rows.split(",")):
        listed.setdefault(name, []).append(groups)
    return listed


def plan(rows: Mapping[str, Sequence[str]], corpora: Sequence[str], seeds: int, in_order: bool) -> list[Job]:
    """Every row and the teachers it needs; rows that come first are trained first, and long texts if not `in_order`."""
    trained = [
        Job(corpus, name, groups, seed)
        for name, groups_of_row in rows.items()
        for groups in groups_of_row
        for corpus in corpora
        for seed in range(seeds)
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
    if match := FAST.fullmatch(technique):
        return "word-at of {} epochs, rate × {}".format(*match.groups())
    if match := re.fullmatch(r"snapshots-([\d-]+)-e(\d)", technique):
        text = "snapshots after {} epochs, student of {} epochs".format(match[1].replace("-", ", "), match[2])
    elif (match := STUDENT.fullmatch(technique)) and match["own"]:
        text = f"{match['student']} epochs, T = {match['target']}, weight {match['weight'] or 1}"
        text += f", τ = {match['attention']}" * bool(match["attention"])
    elif match:
        text = f"{match['teachers']} teachers"
        text += f" of {match['epochs']} epochs, rate × {match['rate']}" * bool(match["epochs"])
        text += f", student of {match['student']} epochs" + f", T = {match['target']}" * bool(match["target"])
        text += ", no substitutions" * (match["form"] == "no-swaps")
    else:
        text = technique
    return text.replace("1 teachers", "1 teacher").replace("student of 1 epochs", "student of 1 epoch")
