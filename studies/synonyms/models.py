"""Forms of consensus that the study compares beside those of steadygaze; `plan.py` describes their rows."""

import copy
from collections.abc import Mapping
from dataclasses import replace
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


TECHNIQUES = {
    "equal-entropy": EqualEntropy,
    "mean-logits": MeanLogits,
    "sharper-attention": SharperAttention,
    "scorers": Scorers,
    "snapshots": Snapshots,
    "self-anchor": SelfAnchor,
}
"""Names in `plan.ROWS`."""
