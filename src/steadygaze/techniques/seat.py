"""SEAT: attention close to a frozen reference's, and steady when its weights are moved.

Hu et al., "SEAT: Stable and Explainable Attention", AAAI 2023 (arXiv:2211.12290), Eq. 6.

    L  =  D1( y(w), y(w̃) )  +  λ2 · L_topk(w, w̃)  +  λ1 · max_{‖δ‖ ≤ R} D2( y(w̃), y(w̃ + δ) )

    w, y(w)   attention and prediction of the frozen reference, a vanilla model      D1  cross-entropy
    w̃, y(w̃)   the model's own                                                       L_topk, D2: techniques/seat.py
    λ1 `stability`   λ2 `overlap`   R `radius`   k `k`   D2 `divergence`: cross-entropy as printed, or kl

    variant    what trains                           from                    the loss
    paper      a copy of the attention module alone  the reference           as above; hidden states are made once
    joint      the whole model                       the reference           as above
    released   the whole model                       fresh weights           the authors' code, below; no reference

    released:  L = ℓ(y, f(x))  +  λ1 · ℓ(y, f(x + r))  +  λ2 · L_topk(w̃(x), w̃(x + r)),
               r: ten sign steps inside ‖r‖∞ ≤ `embedding_radius` that raise ℓ; y gold labels; `clamp`: x + r in [0, 1]

D2 as cross-entropy minimizes the entropy of the prediction: at R = 0.001 its gradient is that of the entropy
(techniques/seat.py).  It is the default because the paper names it; `divergence=kl` measures the change alone.

An attention that does not depend on the text makes the released top-k term exactly 0: see the collapse guard.
Departs from the paper: D1 = −Σ y(w) ln y(w̃), the reference's prediction being the target, where Eq. 6 writes the
arguments the other way round.  Algorithm 1 subtracts the two regularisers in its descent step, which would maximise
them; Eq. 6 adds.  λ2 = 143 is the released 1000 with Eq. 5's normalisation at k = 7, where the code divides by k once
more.  The paper gives neither R nor λ1, λ2, k or the norm: those here are of the released code's own command line.
Pinned by tests/objective/test_seat.py.

The two distances that SEAT and its kin are made of.

Hu et al., "SEAT: Stable and Explainable Attention", AAAI 2023 (arXiv:2211.12290), Eq. 5 and the inner maximum of Eq. 6.

    L_topk(w, w̃)  =  1/(2k) ( Σ_{t ∈ top-k(w)} |w_t − w̃_t|  +  Σ_{t ∈ top-k(w̃)} |w_t − w̃_t| )
    D2            =  max_{‖δ‖ ≤ R}  D( y(w̃), y(w̃ + δ) )

    w reference, w̃ own weights   k `k`, or the number of words where that is smaller   R `radius`

    divergence      D(p, q)               reading
    cross-entropy   CE = −Σ p ln q        the paper's "binary cross entropy"
    kl              KL = CE(p, q) − H(p)  the paper's "some divergence function"; H(p) = −Σ p ln p

Cross-entropy as D2 is entropy minimization.  Both arguments are the model's own and carry gradients, so that
CE = KL + H(p).  KL is of order R², H is not: at SEAT's default radius of 0.001 the gradient of D2 has a cosine above
0.9999 with the gradient of H.  The term then raises confidence and hardly touches stability.  The gradient of `kl`
holds no entropy term: it vanishes with R.  Both have the same worst δ, because H does not depend on δ.

`solver` of the maximum: `pairs`, the best of the class-pair corners (techniques/perturbations/closed_form.py), which
with two classes is
the maximum itself; `exact`, the same but refused for more than two; `pgd`, ten sign steps from a random start, and the
only one for a decoder that is not linear.  δ is a constant: no gradient flows through the choice of it,
except through the ℓ2 corners of more than two classes.  Both arguments of D are live: nothing else is detached.
Departs from the paper: it ascends along the gradient's mean over a batch, and is silent about start, step and k > T;
sign steps for each text from a random start are the authors' code.  Pinned by tests/objective/test_closeness.py.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy as labelled

from steadygaze.core.errors import UserError
from steadygaze.core.maths.divergence import cross_entropy, entropy, kl_logits
from steadygaze.core.maths.ranking import Norm
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Forward, Terms
from steadygaze.models.attention_layers import Linear
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.techniques.perturbations.closed_form import Divergence, worst_own, worst_pairs
from steadygaze.techniques.perturbations.gradient_ascent import ascend
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla


@settings
class WeightBall:
    """Changes of the attention weights that are to change nothing."""

    radius: Annotated[float, Field(gt=0, le=10)] = 0.01
    """R: how far the weights may be moved."""
    norm: Norm = "linf"
    """In which norm R is measured: linf, or l2."""
    solver: Literal["exact", "pairs", "pgd"] = "pairs"
    """How the worst change is found; exact is for two classes, where pairs is the same."""
    divergence: Divergence = "cross-entropy"
    """How the change of the prediction is measured: cross-entropy (as SEAT is printed; minimizes entropy), or kl."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 10
    """Steps of pgd."""
    stability: Annotated[float, Field(ge=0)] = 1.0
    """λ1: how much the worst change of the prediction, the weights moved, counts."""

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        """What the solver cannot do."""
        if not self.stability:
            return None
        if self.solver != "pgd" and architecture.decoder != "linear":
            needs = f"solver={self.solver} needs a decoder that is linear in the weights"
            return f"{needs}, found decoder={architecture.decoder}: use decoder=linear, or solver=pgd"
        if self.solver == "exact" and classes > 2:
            return f"solver=exact is for two classes, found {classes}: use solver=pairs, or pgd"
        return None


def cached_reference(technique: Technique, batch: Batch, given: LossContext) -> CachedTargets:
    """What was remembered of the batch; made anew where the weights were too large to be kept."""
    if "weights" in given.cached_targets.tokens:
        return given.cached_targets
    with torch.no_grad():
        return technique.cache_targets(given.models, batch)


def top_k_distance(w: Tensor, own: Tensor, mask: Tensor, k: int) -> Tensor:
    """L_topk; the choice of the top words is a constant.  (B,T), (B,T) -> (B,)"""
    outside = ~mask
    both = torch.stack([w, own.detach().to(w.dtype)]).masked_fill(outside, -1.0)  # one sort for both
    order = both.sort(dim=-1, descending=True, stable=True).indices[..., :k]  # of equals, the earlier
    apart = (own - w).masked_fill(outside, 0.0).abs()  # a text of fewer than k words has nothing more to add
    return apart.expand(2, -1, -1).gather(-1, order).sum((0, 2)) / (2 * mask.sum(-1).clamp(1, k))


def worst_change(
    model: Classifier,
    encoded: Encoded,
    weights: Tensor,
    logits: Tensor,
    batch: Batch,
    ball: WeightBall,
    chance: RandomKey,
) -> Tensor:
    """D2.  (B,)"""
    own = logits.softmax(-1)
    if ball.solver == "pgd":
        measure = kl_logits if ball.divergence == "kl" else cross_entropy
        shift = 2 * chance.uniform(batch.index, weights.shape[1], dtype=weights.dtype) - 1

        def change(moved: Tensor) -> Tensor:
            return measure(own.detach(), model.decode(encoded, moved))

        how = {"radius": ball.radius, "norm": ball.norm, "steps": ball.steps}
        delta = ascend(change, ball.radius * shift, centre=weights, keep=batch.mask, **how)  # type: ignore[arg-type]
        return measure(own, model.decode(encoded, weights + delta))
    reach = _reach(model, encoded).to(own.dtype)
    if logits.shape[-1] == 2:
        return worst_own(reach, logits.to(own.dtype), batch.mask, ball.radius, ball.norm, ball.divergence)
    kl = worst_pairs(reach, logits.to(own.dtype), own, batch.mask, ball.radius, ball.norm, simplex=False)
    return kl if ball.divergence == "kl" else kl + entropy(own, torch.ones_like(own, dtype=batch.mask.dtype))


def _reach(model: Classifier, encoded: Encoded) -> Tensor:
    """(B,T,C), where there is such a thing."""
    if not isinstance(model.decoder, Linear):
        raise UserError("solver=exact and solver=pairs need a decoder that is linear in the weights: use solver=pgd")
    return model.decoder.reach(encoded)


@settings
class Seat(WeightBall, Technique):
    """Attention drawn to a frozen reference's and steady in its own weights (Hu et al. 2023)."""

    variant: Literal["paper", "joint", "released"] = "paper"
    """What trains: the attention module, the whole model, or as the authors' code has it."""
    radius: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """R: how far the weights may be moved."""
    k: Annotated[int, Field(ge=1)] = 7
    """Heaviest words whose weights are compared."""
    overlap: Annotated[float, Field(ge=0)] = 143.0
    """λ2: how much the distance of the top-k weights counts."""
    embedding_radius: Annotated[float, Field(gt=0, le=100)] = 0.01
    """How far `released` moves each entry of a word vector."""
    clamp: bool = False
    """Whether `released` presses perturbed embeddings into [0, 1], as its code does."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        if self.variant == "released":
            return self._released(model, batch, given)
        memory = cached_reference(self, batch, given)
        target, w = memory.texts["probs"], memory.tokens["weights"]
        encoded = self._encoded(model, batch, memory)
        own = model.attend(model.score(encoded), batch.mask)
        logits = model.decode(encoded, own)
        terms = {"task": cross_entropy(target, logits)}
        if self.overlap:
            terms["top-k"] = self.overlap * top_k_distance(w, own, batch.mask, self.k)
        if self.stability:
            terms["stable"] = self.stability * worst_change(model, encoded, own, logits, batch, self, given.key)
        return terms

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        return None if self.variant == "released" else super().validate(architecture, classes)

    def stages(self, seed: int) -> tuple[Stage, ...]:
        if self.variant == "released":
            return (Stage("train"),)
        moves = ("model.scorer",) if self.variant == "paper" else ("model.",)
        student = Stage("student", start="reference", trains=moves, select="last", schedule="linear")
        return Stage("reference", technique=Vanilla(), model="reference"), student

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        if self.variant == "released":
            return CachedTargets()
        said: Forward = models["reference"](batch)
        texts, tokens = {"probs": said.logits.softmax(-1)}, {"weights": said.weights}
        if self.variant == "paper":
            tokens["hidden"] = said.encoded.hidden
            if said.encoded.question is not None:
                texts["question"] = said.encoded.question
        return CachedTargets(texts, tokens)

    def _encoded(self, model: Classifier, batch: Batch, memory: CachedTargets) -> Encoded:
        """A frozen encoder says what it said before."""
        if "hidden" in memory.tokens:
            return Encoded(memory.tokens["hidden"], memory.texts.get("question"))
        return model.encode(batch)

    def _released(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        embedded = model.embed(batch)

        def read(vectors: Tensor) -> tuple[Tensor, Tensor]:  # ℓ and w̃
            encoded = model.encode(batch, vectors.clamp(0, 1) if self.clamp else vectors)
            weights = model.attend(model.score(encoded), batch.mask)
            return labelled(model.decode(encoded, weights), batch.gold, reduction="none"), weights

        size = self.embedding_radius
        start = size * (2 * given.key.uniform(batch.index, *embedded.shape[1:], dtype=embedded.dtype) - 1)
        how = {"radius": size, "norm": "linf", "steps": self.steps, "keep": batch.mask}
        r = ascend(lambda vectors: read(vectors)[0], start, centre=embedded, **how)  # type: ignore[arg-type]
        moved, moved_weights = read(embedded + r)
        clean = model.encode(batch, embedded)
        own = model.attend(model.score(clean), batch.mask)
        return {
            "task": labelled(model.decode(clean, own), batch.gold, reduction="none"),
            "adversarial": self.stability * moved,
            "top-k": self.overlap * top_k_distance(own, moved_weights, batch.mask, self.k),
        }
