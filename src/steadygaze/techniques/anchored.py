"""Anchoring: a student matches a frozen reference's prediction and attention on the clean text, under perturbations.

Equation
--------
    L  =  A(x)  +  λ1 · D2(x)  +  ν · A(x + r)  +  ρ · A(x′)
    A(x)  =  λp · CE( p, y(x) )  +  λ2 · L_topk( w, w̃(x) )

    w, p      attention and prediction of the reference on the *clean* text; rules out uninformative attention
    y, w̃      the student's own
    r         one sign step that raises A, from a random start, with ‖r‖∞ ≤ `noise_radius` × σ(word vectors)
    x′        the text with synonyms, each word replaced with probability `share`; omitted without a synonym table
    D2        the largest change of the prediction under a shift of w̃ by up to R, as KL (techniques/seat.py)

    λp `closeness`   λ1 `stability`   λ2 `overlap`   ν `noise`   ρ `swaps`   k `k`   R `radius`

`anchored` has one reference, which is provided or trained first, and the student starts from it.  The student inherits
the reference's dependence on its seed.  `consensus` averages several references.

Clean, perturbed and substituted texts are encoded as one batch; the search for r is a second pass.

Cost
----
A reference is trained first.  A step of the student costs 2.6 vanilla steps on a GPU, 3.1 on a CPU.

When to use
-----------
For stable attention that stays close to one existing model.  Use `consensus` if models of different seeds must agree.

Departs from the paper
----------------------
Not from a paper: ours.  SEAT's Eq. 6 is the part with ν = ρ = 0 and λp = 1, except for D2: SEAT's cross-entropy would
add the entropy of y, whose gradient outweighs the rest.  CE(p, y) is KL(p ‖ y) plus a constant, because p carries no
gradient.

Tested by tests/techniques/test_anchored.py.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import cross_entropy
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Forward, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.closed_form import Divergence
from steadygaze.perturbations.gradient_ascent import ascend, embedding_std, widen
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques.seat import WeightBall, cached_reference, reference_targets, top_k_distance, worst_change
from steadygaze.techniques.synonym_augmentation import substitute_synonyms
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique, is_zero
from steadygaze.techniques.vanilla import REFERENCE


@settings
class AnchoringTechnique(WeightBall, Technique):
    """Base class: a subclass declares the reference models."""

    stacked_settings: ClassVar[tuple[str, ...]] = (
        "radius", "stability", "closeness", "overlap", "noise", "noise_radius", "swaps", "share",
    )  # fmt: skip

    divergence: Divergence = "kl"
    """Measure of the largest change of the prediction: kl, or cross-entropy, which also minimizes entropy."""
    k: Annotated[int, Field(ge=1)] = 7
    """Number of top-weighted words whose weights are compared."""
    closeness: Annotated[float, Field(ge=0), SearchRange(0.1, 100.0, log=True)] = 10.0
    """λp: weight of the distance from the reference's prediction."""
    overlap: Annotated[float, Field(ge=0), SearchRange(1.0, 1000.0, log=True)] = 143.0
    """λ2: weight of the distance between the top-k weights."""
    noise: Annotated[float, Field(ge=0), SearchRange(0.1, 10.0, log=True)] = 2.0
    """ν: weight of the loss under perturbed word vectors."""
    noise_radius: Annotated[float, Field(gt=0, le=10)] = 0.1
    """Largest perturbation of an entry of a word vector, in standard deviations of all entries."""
    swaps: Annotated[float, Field(ge=0)] = 1.0
    """ρ: weight of the loss under synonym substitution."""
    share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the words with a synonym that are substituted."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        context = replace(context, cached_targets=cached_reference(self, batch, context))
        versions = self._versions(model, batch, context)
        stacked = stack_versions(batch, len(versions))
        output: Forward = model(stacked, torch.cat(list(versions.values())))
        encoded, weights, logits = output.encoded, output.weights, output.logits
        target, w = (
            v.repeat(len(versions), 1)
            for v in (context.cached_targets.texts["probs"], context.cached_targets.tokens["weights"])
        )
        close = self.closeness * cross_entropy(target, logits).view(len(versions), -1)
        distance = self.overlap * top_k_distance(w, weights, stacked.mask, self.k).view(len(versions), -1)
        terms: Terms = {"task": close[0], "top-k": distance[0]}
        for i, name in list(enumerate(versions))[1:]:
            terms[name] = {"noise": self.noise, "swaps": self.swaps}[name] * (close[i] + distance[i])
        if not is_zero(self.stability):
            size, question = len(batch), encoded.question
            clean = Encoded(encoded.hidden[:size], None if question is None else question[:size])
            worst = worst_change(model, clean, weights[:size], logits[:size], batch, self, context.key.child(3))
            terms["stable"] = self.stability * worst
        return terms

    @property
    def substitutes_words(self) -> bool:
        return not (is_zero(self.swaps) or is_zero(self.share))

    def on_epoch_start(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        """σ."""
        return {"sigma": embedding_std(model.vectors)}

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        return reference_targets(models, batch)

    def _versions(self, model: Classifier, batch: Batch, context: LossContext) -> dict[str, Tensor]:
        """Return the embeddings of each version of the text, the clean one first.  (B,T,E) each"""
        embedded = model.embed(batch)
        versions = {"clean": embedded}
        if not is_zero(self.noise):
            versions["noise"] = embedded + self._noise_step(model, batch, embedded, context)
        copy = substitute_synonyms(batch, context, context.key.child(2), self.share) if self.substitutes_words else None
        if copy is not None:
            versions["swaps"] = model.embed(copy)
        return versions

    def _noise_step(self, model: Classifier, batch: Batch, embedded: Tensor, context: LossContext) -> Tensor:
        """r.  (B,T,E)"""
        target, w = context.cached_targets.texts["probs"], context.cached_targets.tokens["weights"]

        def distance(vectors: Tensor) -> Tensor:  # A
            output: Forward = model(batch, vectors)
            close = self.closeness * cross_entropy(target, output.logits)
            return close + self.overlap * top_k_distance(w, output.weights, batch.mask, self.k)

        size = (self.noise_radius * context.epoch_tables["sigma"]).to(embedded.dtype)
        uniform = context.key.child(1).uniform(batch.index, *embedded.shape[1:], dtype=embedded.dtype)
        start = widen(size, uniform) * (2 * uniform - 1)
        return ascend(
            distance, start, center=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask
        )


def stack_versions(batch: Batch, times: int) -> Batch:
    """Return `times` copies of a batch as one batch."""
    names = {field.name for field in fields(batch)} - {"label", "weight"}
    copies = {n: torch.cat([v] * times) for n in names if (v := getattr(batch, n)) is not None}
    return replace(batch, **copies, label=None, weight=None)


@settings
class Anchored(AnchoringTechnique):
    """Attention anchored to a vanilla model's, under perturbed vectors and synonym substitution."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return REFERENCE, Stage("student", start="reference", select="last", schedule="linear")
