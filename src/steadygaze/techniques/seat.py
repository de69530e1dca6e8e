"""SEAT: attention close to a frozen reference's, and stable under perturbations of its own weights.

Hu et al., "SEAT: Stable and Explainable Attention", AAAI 2023 (arXiv:2211.12290), Eq. 5 and 6.

Equation
--------
    L  =  D1( y(w), y(w̃) )  +  λ2 · L_topk(w, w̃)  +  λ1 · D2

    L_topk(w, w̃)  =  1/(2k) ( Σ_{t ∈ top-k(w)} |w_t − w̃_t|  +  Σ_{t ∈ top-k(w̃)} |w_t − w̃_t| )
    D2            =  max_{‖δ‖ ≤ R}  D( y(w̃), y(w̃ + δ) )

    w, y(w)   attention and prediction of the frozen reference, a vanilla model      D1  cross-entropy
    w̃, y(w̃)   the model's own
    λ1 `stability`   λ2 `overlap`   R `radius`   k `k`, at most the number of words   D `divergence`

    variant    trained parameters                    initial weights    loss
    paper      a copy of the attention module        the reference      as above; hidden states are computed once
    joint      the whole model                       the reference      as above
    released   the whole model                       fresh              the authors' code, below; no reference

    released:  L = ℓ(y, f(x))  +  λ1 · ℓ(y, f(x + r))  +  λ2 · L_topk(w̃(x), w̃(x + r)),
               r: ten sign steps inside ‖r‖∞ ≤ `embedding_radius` that raise ℓ; y gold labels; `clamp`: x + r in [0, 1]

    divergence      D(p, q)               reading
    cross-entropy   CE = −Σ p ln q        the paper's "binary cross entropy"
    kl              KL = CE(p, q) − H(p)  the paper's "some divergence function"; H(p) = −Σ p ln p

Cross-entropy as D2 is entropy minimization.  Both arguments are the model's own and carry gradients, so that
CE = KL + H(p).  KL is of order R², H is not: at SEAT's default radius of 0.001 the gradient of D2 has a cosine above
0.9999 with the gradient of H.  The term then raises confidence and hardly affects stability.  The gradient of `kl` has
no entropy term: it vanishes with R.  Both have the same worst δ, because H does not depend on δ.  Cross-entropy is the
default because the paper names it.

`solver` of the maximum:

    pairs      the best of the class-pair corners (perturbations/closed_form.py); exact for two classes
    exact      the same, for two classes only
    pgd        ten sign steps from a random start; the only solver for a decoder that is not linear

δ is a constant: no gradient flows through its choice, except through the ℓ2 corners of more than two classes.  Both
arguments of D carry gradients.

Attention that does not depend on the text makes the released top-k term exactly 0: see the collapse guard.

Cost
----
A reference is trained first.  Then `joint` costs 1.30 vanilla steps on a GPU, and `paper`, which trains attention
alone, 0.71.

When to use
-----------
To repeat the paper.  Do not use it for stability: under synonyms attention shifts at most 2 % less in our study, and
`paper` is not active at its defaults.  With two classes and frozen hidden states D2 depends on w̃ only through the size
of the margin, which δ changes by at most R‖hθ‖₁: D2 rewards confidence, not stable attention.

Departs from the paper
----------------------
D1 = −Σ y(w) ln y(w̃) with the reference's prediction as the target; Eq. 6 swaps the arguments.  Algorithm 1 subtracts
the two regularizers in its descent step, which would maximize them; Eq. 6 adds them.  The paper gives neither R nor λ1,
λ2, k or the norm.  The defaults are a hybrid that no code released: λ1, λ2 and k are of the authors' command line.  Its
λ2 = 1000 equals 143 with Eq. 5's normalization at k = 7, because the code divides by k once more.  It weights the
overlap of the model's attention with its own attention under perturbed word vectors.  Its R = 0.001 is a radius of the
baselines alone.  The paper ascends along the mean gradient of a batch and does not specify start, step and k > T.  Sign
steps per text from a random start follow the authors' code.

Tested by tests/techniques/test_seat.py and tests/techniques/test_seat_distances.py.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import Norm, cross_entropy, entropy, kl_logits
from steadygaze.core.random_key import RandomKey
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Forward, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.perturbations.closed_form import Divergence, worst_own, worst_pairs
from steadygaze.perturbations.gradient_ascent import ascend, widen
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique, is_zero, task_loss
from steadygaze.techniques.vanilla import REFERENCE


@settings
class WeightBall:
    """Perturbations of the attention weights that must not change the prediction."""

    radius: Annotated[float, Field(gt=0, le=10)] = 0.01
    """R: radius of the perturbation of the weights."""
    norm: Norm = "linf"
    """Norm of the perturbation: linf, or l2."""
    solver: Literal["exact", "pairs", "pgd"] = "pairs"
    """Solver of the largest change; exact is for two classes, where pairs is the same."""
    divergence: Divergence = "cross-entropy"
    """Measure of the change of the prediction: cross-entropy (as in the paper; minimizes entropy), or kl."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 10
    """Steps of pgd."""
    stability: Annotated[float, Field(ge=0), SearchRange(0.01, 100.0, log=True)] = 1.0
    """λ1: weight of the largest change of the prediction under perturbed weights."""

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        """Return an error message if the solver does not support the architecture."""
        if not self.stability:
            return None
        if self.solver != "pgd" and architecture.decoder != "linear":
            requirement = f"solver={self.solver} needs a decoder that is linear in the weights"
            return f"{requirement}, found decoder={architecture.decoder}: use decoder=linear, or solver=pgd"
        if self.solver == "exact" and classes > 2:
            return f"solver=exact is for two classes, found {classes}: use solver=pairs, or pgd"
        return None


def cached_reference(technique: Technique, batch: Batch, context: LossContext) -> CachedTargets:
    """Return the cached targets of the batch; recompute them if the weights were too large for the cache."""
    if "weights" in context.cached_targets.tokens:
        return context.cached_targets
    with torch.no_grad():
        return technique.cache_targets(context.models, batch)


def reference_targets(models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
    """Return the mean prediction and the mean attention of reference models."""
    outputs: list[Forward] = [model(batch) for model in models.values()]
    probs = torch.stack([output.logits.softmax(-1) for output in outputs]).mean(0)
    return CachedTargets({"probs": probs}, {"weights": torch.stack([output.weights for output in outputs]).mean(0)})


def top_k_distance(reference: Tensor, weights: Tensor, mask: Tensor, k: int) -> Tensor:
    """Return L_topk; the choice of the top words is a constant.  (B,T), (B,T) -> (B,)"""
    outside = ~mask
    both = torch.stack([reference, weights.detach().to(reference.dtype)])  # one sort for both
    order = (
        both.masked_fill(outside, -1.0).sort(dim=-1, descending=True, stable=True).indices[..., :k]
    )  # ties: the earlier
    distance = (weights - reference).masked_fill(outside, 0.0).abs()  # words beyond the text add 0
    return distance.expand(2, -1, -1).gather(-1, order).sum((0, 2)) / (2 * mask.sum(-1).clamp(1, k))


def worst_change(
    model: Classifier,
    encoded: Encoded,
    weights: Tensor,
    logits: Tensor,
    batch: Batch,
    ball: WeightBall,
    key: RandomKey,
) -> Tensor:
    """D2.  (B,)"""
    probs = logits.softmax(-1)
    if ball.solver == "pgd":
        measure = kl_logits if ball.divergence == "kl" else cross_entropy
        shift = 2 * key.uniform(batch.index, weights.shape[1], dtype=weights.dtype) - 1

        def change(perturbed: Tensor) -> Tensor:
            return measure(probs.detach(), model.decode(encoded, perturbed))

        options = {"radius": ball.radius, "norm": ball.norm, "steps": ball.steps}
        delta = ascend(change, widen(ball.radius, shift) * shift, center=weights, keep=batch.mask, **options)  # type: ignore[arg-type]
        return measure(probs, model.decode(encoded, weights + delta))
    reach = model.reach(encoded)
    if reach is None:
        raise UserError("solver=exact and solver=pairs need a decoder that is linear in the weights: use solver=pgd")
    reach = reach.to(probs.dtype)
    if logits.shape[-1] == 2:
        return worst_own(reach, logits.to(probs.dtype), batch.mask, ball.radius, ball.norm, ball.divergence)
    kl = worst_pairs(reach, logits.to(probs.dtype), probs, batch.mask, ball.radius, ball.norm, simplex=False)
    return kl if ball.divergence == "kl" else kl + entropy(probs, torch.ones_like(probs, dtype=batch.mask.dtype))


@settings
class Seat(WeightBall, Technique):
    """Attention close to a frozen reference's and stable under weight perturbations (Hu et al. 2023)."""

    stacked_settings: ClassVar[tuple[str, ...]] = ("radius", "stability", "overlap", "embedding_radius")

    variant: Literal["paper", "joint", "released"] = "paper"
    """Trained parameters: the attention module (paper), the whole model (joint); released: the authors' code."""
    radius: Annotated[float, Field(gt=0, le=10), SearchRange(1e-4, 0.1, log=True)] = 1e-3
    """R: radius of the perturbation of the weights."""
    k: Annotated[int, Field(ge=1)] = 7
    """Number of top-weighted words whose weights are compared."""
    overlap: Annotated[float, Field(ge=0), SearchRange(1.0, 1000.0, log=True)] = 143.0
    """λ2: weight of the distance between the top-k weights."""
    embedding_radius: Annotated[float, Field(gt=0, le=100)] = 0.01
    """Largest perturbation of an entry of a word vector in `released`."""
    clamp: bool = False
    """Clamp perturbed embeddings to [0, 1] in `released`, as in the authors' code."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        if self.variant == "released":
            return self._released(model, batch, context)
        targets = cached_reference(self, batch, context)
        target, w = targets.texts["probs"], targets.tokens["weights"]
        if "hidden" in targets.tokens:  # of a frozen encoder
            encoded = Encoded(targets.tokens["hidden"], targets.texts.get("question"))
        else:
            encoded = model.encode(batch)
        weights = model.attend(model.score(encoded), batch.mask)
        logits = model.decode(encoded, weights)
        terms = {"task": cross_entropy(target, logits)}
        if not is_zero(self.overlap):
            terms["top-k"] = self.overlap * top_k_distance(w, weights, batch.mask, self.k)
        if not is_zero(self.stability):
            terms["stable"] = self.stability * worst_change(model, encoded, weights, logits, batch, self, context.key)
        return terms

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        return None if self.variant == "released" else super().validate(architecture, classes)

    def stages(self, seed: int) -> tuple[Stage, ...]:
        if self.variant == "released":
            return (Stage("train"),)
        trained = ("model.scorer",) if self.variant == "paper" else ("model.",)
        student = Stage("student", start="reference", trains=trained, select="last", schedule="linear")
        return REFERENCE, student

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        if self.variant == "released":
            return CachedTargets()
        output: Forward = models["reference"](batch)
        texts, tokens = {"probs": output.logits.softmax(-1)}, {"weights": output.weights}
        if self.variant == "paper":
            tokens["hidden"] = output.encoded.hidden
            if output.encoded.question is not None:
                texts["question"] = output.encoded.question
        return CachedTargets(texts, tokens)

    def _released(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        embedded = model.embed(batch)

        def read(vectors: Tensor) -> tuple[Tensor, Tensor]:  # ℓ and w̃
            output: Forward = model(batch, vectors.clamp(0, 1) if self.clamp else vectors)
            return task_loss(output.logits, batch), output.weights

        size = self.embedding_radius
        uniform = context.key.uniform(batch.index, *embedded.shape[1:], dtype=embedded.dtype)
        start = widen(size, embedded) * (2 * uniform - 1)
        options = {"radius": size, "norm": "linf", "steps": self.steps, "keep": batch.mask}
        r = ascend(lambda vectors: read(vectors)[0], start, center=embedded, **options)  # type: ignore[arg-type]
        perturbed, perturbed_weights = read(embedded + r)
        clean: Forward = model(batch, embedded)
        return {
            "task": task_loss(clean.logits, batch),
            "adversarial": self.stability * perturbed,
            "top-k": self.overlap * top_k_distance(clean.weights, perturbed_weights, batch.mask, self.k),
        }
