"""Rows of bench/synonym_groups.py: techniques of the study, and cheaper forms of consensus.

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

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy as label_cross_entropy

from steadygaze.core.maths.distributions import cross_entropy, entropy, unit_vector
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.gradient_ascent import loss_gradient, widen
from steadygaze.techniques.anchored import AnchoringTechnique
from steadygaze.techniques.consensus import Consensus
from steadygaze.techniques.seat import top_k_distance
from steadygaze.techniques.synonym_augmentation import substitute_synonyms
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage
from steadygaze.techniques.word_at import WordAT, embedding_leaf

DECAY = 0.99
"""Share of the moving average that a step keeps."""
HALVINGS = 40


@settings
class EqualEntropy(Consensus):
    """Consensus whose teachers have equal entropy on each text."""

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        outputs = [model(batch) for model in models.values()]
        probs = torch.stack([output.logits.softmax(-1) for output in outputs]).mean(0)
        weights = [output.weights for output in outputs]
        target = torch.stack([entropy(w, batch.mask) for w in weights]).mean(0)
        tempered = torch.stack([with_entropy(w, batch.mask, target) for w in weights])
        return CachedTargets({"probs": probs}, {"weights": tempered.mean(0)})


def with_entropy(weights: Tensor, mask: Tensor, target: Tensor) -> Tensor:
    """Weights to the power 1/T, with T such that their entropy is `target`, by bisection of log T."""
    logs = weights.clamp_min(1e-30).log().masked_fill(~mask, -torch.inf)
    low, high = (torch.full_like(target, bound) for bound in (-3.0, 3.0))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        flatter = entropy((logs / middle.exp().unsqueeze(-1)).softmax(-1), mask) > target
        low, high = torch.where(flatter, low, middle), torch.where(flatter, middle, high)
    return (logs / low.exp().unsqueeze(-1)).softmax(-1)


@settings
class MeanLogits(Consensus):
    """Consensus with the mean of the teachers' logits: the normalized geometric mean of their predictions."""

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        outputs = [model(batch) for model in models.values()]
        probs = torch.stack([output.logits for output in outputs]).mean(0).softmax(-1)
        return CachedTargets({"probs": probs}, {"weights": torch.stack([o.weights for o in outputs]).mean(0)})


@settings
class SharperAttention(Consensus):
    """Consensus whose mean attention is tempered: powers of the weights, normalized."""

    attention_temperature: float = 1.0

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        targets = super().cache_targets(models, batch)
        powers = targets.tokens["weights"].pow(1 / self.attention_temperature)
        return replace(targets, tokens={"weights": powers / powers.sum(-1, keepdim=True)})


class Head(nn.Module):
    """A scorer and a decoder over the encoder of a model."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.scorer = type(model.scorer)(model.encoder.size, False)
        self.decoder = type(model.decoder)(model.encoder.size, model.classes, False)

    def forward(self, model: Classifier, encoded: Encoded, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (B,T) and logits (B,C)."""
        weights = model.attend(self.scorer(encoded), mask)
        return weights, self.decoder(encoded, weights)


def heads(model: Classifier, scorers: int) -> dict[str, nn.Module]:
    """All heads but that of the model."""
    return {f"head-{i}": Head(model) for i in range(1, scorers)}


def head_outputs(model: Classifier, encoded: Encoded, mask: Tensor, others: Any) -> tuple[Tensor, Tensor]:
    """Weights (K,B,T) and logits (K,B,C) of the model's own head and the others."""
    weights = model.attend(model.score(encoded), mask)
    outputs = [(weights, model.decode(encoded, weights)), *(head(model, encoded, mask) for head in others)]
    return torch.stack([w for w, _ in outputs]), torch.stack([z for _, z in outputs])


@settings
class HeadsWordAT(WordAT):
    """Word-at whose loss is the mean over several heads on one encoder."""

    scorers: int = 4

    def modules(self, model: Any) -> dict[str, nn.Module]:
        return heads(model, self.scorers)

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        def task(vectors: Tensor) -> Tensor:
            encoded = model.encode(batch, vectors)
            logits = head_outputs(model, encoded, batch.mask, context.modules.values())[1]
            gold = batch.gold.repeat(len(logits))
            return label_cross_entropy(logits.flatten(0, 1), gold, reduction="none").view(len(logits), -1).mean(0)

        embedded = embedding_leaf(model.embed(batch))
        clean = task(embedded)
        g = loss_gradient(clean, embedded, batch.mask)
        r = widen(self.epsilon * context.epoch_tables["unit"], g) * unit_vector(g)
        return {"task": clean, "adversarial": self.weight * task(embedded + r)}


@settings
class Scorers(AnchoringTechnique):
    """Consensus of several scorers and decoders on the encoder of one word-at teacher."""

    scorers: int = 4
    teacher: int = 4
    """Epochs of the teacher."""
    student: int = 2
    """Epochs of the student."""

    def modules(self, model: Any) -> dict[str, nn.Module]:
        return heads(model, self.scorers)

    def stages(self, seed: int) -> tuple[Stage, ...]:
        teacher = HeadsWordAT(scorers=self.scorers)
        options: dict[str, Any] = {"schedule": "linear", "select": "last"}
        return (
            Stage("teacher", technique=teacher, model="teacher-0", epochs=self.teacher, rate_factor=4.0, **options),
            Stage("student", start="teacher-0", trains=("model.",), epochs=self.student, **options),
        )

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        return CachedTargets()  # the other heads are not at hand

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        teacher = context.models["teacher-0"]
        with torch.no_grad():
            others = context.modules.values()
            weights, logits = head_outputs(teacher, teacher.encode(batch), batch.mask, others)
        targets = CachedTargets({"probs": logits.softmax(-1).mean(0)}, {"weights": weights.mean(0)})
        return super().loss(model, batch, replace(context, cached_targets=targets))


@settings
class Snapshots(AnchoringTechnique):
    """Teachers from one run of word-at, as in snapshot ensembles (Huang et al. 2017, arXiv:1704.00109)."""

    cycles: tuple[int, ...] = (4, 2)
    """Epochs of each teacher; the learning rate decays to 0 in each."""
    student: int = 2
    """Epochs of the student."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        options: dict[str, Any] = {"technique": WordAT(), "schedule": "linear", "select": "last"}
        teachers = [
            Stage(
                f"snapshot {i + 1}", model=f"teacher-{i}", start=f"teacher-{i - 1}" if i else None, epochs=e, **options
            )
            for i, e in enumerate(self.cycles)
        ]
        start = f"teacher-{len(self.cycles) - 1}"
        return *teachers, Stage("student", start=start, epochs=self.student, select="last", schedule="linear")


@settings
class SelfAnchor(WordAT):
    """Word-at and substitutions, with the moving average of the weights as the reference."""

    closeness: float = 1.0
    overlap: float = 14.3

    @property
    def substitutes_words(self) -> bool:
        return True

    def modules(self, model: Any) -> dict[str, nn.Module]:
        return {"average": copy.deepcopy(model).requires_grad_(False)}

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        average: Any = context.modules["average"].eval()
        with torch.no_grad():
            for mean, value in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(value, 1 - DECAY)
            reference = average(batch)
        terms = super().loss(model, batch, context)
        copies = substitute_synonyms(batch, context, context.key.child(2), 1.0)
        output = model(batch if copies is None else copies)
        distance = top_k_distance(reference.weights, output.weights, batch.mask, 7)
        terms["anchor"] = self.closeness * cross_entropy(reference.logits.softmax(-1), output.logits)
        terms["anchor"] = terms["anchor"] + self.overlap * distance
        terms["substituted"] = label_cross_entropy(output.logits, batch.gold, reduction="none")
        return terms


@dataclass(frozen=True)
class Row:
    technique: Any
    """A name, or a class."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    teacher: str = ""
    """Row of the teachers."""
    teachers: int = 0
    epochs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of a class; numbers of epochs."""
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
    return Row(Snapshots, {"learning_rate": 2e-3}, options={"cycles": cycles, "student": student})


def _tempered_row(epochs: int, factor: int, student: int, temperature: float) -> Row:
    return Row("consensus", {"target_temperature": temperature}, f"fast-{epochs}-{factor}", 2, student)


def _own_table_row(student: int, temperature: float, swaps: float = 1.0) -> tuple[str, Row]:
    name = f"4-4-t2-e{student}-own-x{temperature}" + f"-s{swaps:g}" * (swaps != 1)
    settings = {"target_temperature": temperature, "swaps": swaps}
    return name, Row("consensus", settings, "fast-4-4", 2, student, own_tables=True)


def _sharper_row(student: int, temperature: float, attention: float) -> tuple[str, Row]:
    options = {"target_temperature": temperature, "attention_temperature": attention}
    row = Row(SharperAttention, {}, "fast-4-4", 2, student, options, own_tables=True)
    return f"4-4-t2-e{student}-own-x{temperature}-a{attention}", row


def _scorers(scorers: int, teacher: int, student: int) -> Row:
    return Row(Scorers, {}, options={"scorers": scorers, "teacher": teacher, "student": student})


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
    "t2-e2-equal-entropy": Row(EqualEntropy, {}, "word-at", 2, 2),
    **{f"{e}-{r}-t2-e{s}-x{t}": _tempered_row(e, r, s, t) for e, r, s, t in TEMPERED_STUDENTS},
    **OWN_TABLE_ROWS,
    "4-4-t2-e1-mean-logits": Row(MeanLogits, {}, "fast-4-4", 2, 1),
    "scorers-4-4-e2": _scorers(4, 4, 2),
    "scorers-4-6-e2": _scorers(4, 6, 2),
    "snapshots-4-2-e2": _snapshots(2, 4, 2),
    "snapshots-6-3-e1": _snapshots(1, 6, 3),
    "snapshots-5-3-e2": _snapshots(2, 5, 3),
    "snapshots-4-2-2-e1": _snapshots(1, 4, 2, 2),
    "self-anchor": Row(SelfAnchor),
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


def seeds_of(name: str, groups: str, corpus: str, cheaper: bool) -> int:
    if not cheaper or (corpus not in ("imdb", "sst2-minilm") and (groups == "linked" or name == "vanilla")):
        return 5
    return 3 if name in ("vanilla", "t3-e2", *SELECTABLE) or name.endswith("t2-e2") else 2


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
