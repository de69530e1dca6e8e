"""Anchored: a model that keeps to what a frozen vanilla model says of the clean text, whatever is done to the text.

The loss is that of techniques/anchored.py; the anchor is one reference: given, or trained first.  The model starts from
it.  Its attention is as steady as the reference's is good: which seed the reference had, it inherits.
Ours.  Pinned by tests/objective/test_anchored.py.

Anchoring: what `anchored` and `consensus` share.

    L  =  A(x)  +  λ1 · D2(x)  +  ν · A(x + r)  +  ρ · A(x′)
    A(x)  =  λp · CE( p, y(x) )  +  λ2 · L_topk( w, w̃(x) )

    w, p      attention and prediction of the reference on the *clean* text, whatever is done to x: so that no attention
              that says nothing can win
    y, w̃      the model's own
    r         one sign step from a random start inside ‖r‖∞ ≤ `noise_radius` × σ(word vectors), uphill in A
    x′        the text with each swappable word exchanged, with probability `share`, for one of its synonyms; without a
              table of synonyms the last term is left out
    D2        the worst change of the prediction when w̃ is moved by up to R, as KL (techniques/seat.py)

    λp `closeness`   λ1 `stability`   λ2 `overlap`   ν `noise`   ρ `swaps`   k `k`   R `radius`

Clean, perturbed and exchanged text go through the encoder as one batch; the search for r is a second pass.
Ours; SEAT's Eq. 6 is the part with ν = ρ = 0 and λp = 1, but for D2: SEAT's cross-entropy would add the entropy of y,
whose gradient outweighs the rest.  CE(p, y) is KL(p ‖ y) plus a constant, because p carries no gradient.
Pinned by tests/objective/test_anchored.py.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated

import torch
from torch import Tensor

from steadygaze.core.maths.divergence import cross_entropy
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.perturbations.closed_form import Divergence
from steadygaze.techniques.perturbations.gradient_ascent import ascend, embedding_std
from steadygaze.techniques.perturbations.word_substitution import Synonyms
from steadygaze.techniques.seat import WeightBall, cached_reference, top_k_distance, worst_change
from steadygaze.techniques.synonym_augmentation import substitute_synonyms
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla


@settings
class AnchoringTechnique(WeightBall, Technique):
    """Abstract: a subclass says whose attention and prediction the anchor are."""

    divergence: Divergence = "kl"
    """How the worst change of the prediction is measured: kl, or cross-entropy, which minimizes entropy as well."""
    k: Annotated[int, Field(ge=1)] = 7
    """Heaviest words whose weights are compared."""
    closeness: Annotated[float, Field(ge=0)] = 10.0
    """λp: how much the distance from the reference's prediction counts."""
    overlap: Annotated[float, Field(ge=0)] = 143.0
    """λ2: how much the distance of the top-k weights counts."""
    noise: Annotated[float, Field(ge=0)] = 2.0
    """How much closeness under moved word vectors counts."""
    noise_radius: Annotated[float, Field(gt=0, le=10)] = 0.1
    """How far each entry of a word vector is moved, in standard deviations of all entries."""
    swaps: Annotated[float, Field(ge=0)] = 1.0
    """How much closeness under exchanged words counts."""
    share: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the words with a synonym that are exchanged."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        given = replace(given, cached_targets=cached_reference(self, batch, given))
        versions = self._versions(model, batch, given)
        together = stack_versions(batch, len(versions))
        encoded = model.encode(together, torch.cat(list(versions.values())))
        own = model.attend(model.score(encoded), together.mask)
        logits = model.decode(encoded, own)
        target, w = (
            v.repeat(len(versions), 1)
            for v in (given.cached_targets.texts["probs"], given.cached_targets.tokens["weights"])
        )
        close = (self.closeness * cross_entropy(target, logits)).view(len(versions), -1)
        apart = (self.overlap * top_k_distance(w, own, together.mask, self.k)).view(len(versions), -1)
        terms: Terms = {"task": close[0], "top-k": apart[0]}
        for i, name in list(enumerate(versions))[1:]:
            terms[name] = {"noise": self.noise, "swaps": self.swaps}[name] * (close[i] + apart[i])
        if self.stability:
            size, asked = len(batch), encoded.question
            clean = Encoded(encoded.hidden[:size], None if asked is None else asked[:size])
            worst = worst_change(model, clean, own[:size], logits[:size], batch, self, given.key.child(3))
            terms["stable"] = self.stability * worst
        return terms

    @property
    def substitutes_words(self) -> bool:
        return self.swaps > 0 and self.share > 0

    def on_epoch_start(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        """σ."""
        return {"sigma": embedding_std(model.encoder.vectors)}

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        """The mean prediction and the mean attention of all references."""
        said = [model(batch) for model in models.values()]
        probs = torch.stack([forward.logits.softmax(-1) for forward in said]).mean(0)
        return CachedTargets({"probs": probs}, {"weights": torch.stack([forward.weights for forward in said]).mean(0)})

    def _versions(self, model: Classifier, batch: Batch, given: LossContext) -> dict[str, Tensor]:
        """The embeddings of each version of the text, the clean one first.  (B,T,E) each"""
        embedded = model.embed(batch)
        versions = {"clean": embedded}
        if self.noise:
            versions["noise"] = embedded + self._uphill(model, batch, embedded, given)
        copy = substitute_synonyms(batch, given, given.key.child(2), self.share) if self.substitutes_words else None
        if copy is not None:
            versions["swaps"] = model.embed(copy)
        return versions

    def _uphill(self, model: Classifier, batch: Batch, embedded: Tensor, given: LossContext) -> Tensor:
        """r.  (B,T,E)"""
        target, w = given.cached_targets.texts["probs"], given.cached_targets.tokens["weights"]

        def apart(vectors: Tensor) -> Tensor:  # A
            encoded = model.encode(batch, vectors)
            own = model.attend(model.score(encoded), batch.mask)
            close = self.closeness * cross_entropy(target, model.decode(encoded, own))
            return close + self.overlap * top_k_distance(w, own, batch.mask, self.k)

        size = (self.noise_radius * given.epoch_tables["sigma"]).to(embedded.dtype)
        start = size * (2 * given.key.child(1).uniform(batch.index, *embedded.shape[1:], dtype=embedded.dtype) - 1)
        return ascend(apart, start, centre=embedded, radius=size, norm="linf", steps=1, step_size=size, keep=batch.mask)


def stack_versions(batch: Batch, times: int) -> Batch:
    """So many copies of a batch as one."""
    names = {field.name for field in fields(batch)} - {"label", "weight"}
    several = {n: torch.cat([v] * times) for n in names if (v := getattr(batch, n)) is not None}
    return replace(batch, **several, label=None, weight=None)


@settings
class Anchored(AnchoringTechnique):
    """Attention anchored to a vanilla model's, under moved vectors and exchanged words."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        reference = Stage("reference", technique=Vanilla(), model="reference")
        return reference, Stage("student", start="reference", select="last", schedule="linear")
