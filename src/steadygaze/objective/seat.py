"""SEAT: attention close to a frozen reference's, and steady when its weights are moved.

Hu et al., "SEAT: Stable and Explainable Attention", AAAI 2023 (arXiv:2211.12290), Eq. 6.

    L  =  D1( y(w), y(w̃) )  +  λ2 · L_topk(w, w̃)  +  λ1 · max_{‖δ‖ ≤ R} D2( y(w̃), y(w̃ + δ) )

    w, y(w)   attention and prediction of the frozen reference, a vanilla model      D1  cross-entropy
    w̃, y(w̃)   the model's own                                                       L_topk, D2: objective/closeness.py
    λ1 `stability`   λ2 `overlap`   R `radius`   k `k`   D2 `divergence`: cross-entropy as printed, or kl

    variant    what trains                           from                    the loss
    paper      a copy of the attention module alone  the reference           as above; hidden states are made once
    joint      the whole model                       the reference           as above
    released   the whole model                       fresh weights           the authors' code, below; no reference

    released:  L = ℓ(y, f(x))  +  λ1 · ℓ(y, f(x + r))  +  λ2 · L_topk(w̃(x), w̃(x + r)),
               r: ten sign steps inside ‖r‖∞ ≤ `embedding_radius` that raise ℓ; y gold labels; `clamp`: x + r in [0, 1]

D2 as cross-entropy minimizes the entropy of the prediction: at R = 0.001 its gradient is that of the entropy
(objective/closeness.py).  It is the default because the paper names it; `divergence=kl` measures the change alone.

An attention that does not depend on the text makes the released top-k term exactly 0: see the collapse guard.
Departs from the paper: D1 = −Σ y(w) ln y(w̃), the reference's prediction being the target, where Eq. 6 writes the
arguments the other way round.  Algorithm 1 subtracts the two regularisers in its descent step, which would maximise
them; Eq. 6 adds.  λ2 = 143 is the released 1000 with Eq. 5's normalisation at k = 7, where the code divides by k once
more.  The paper gives neither R nor λ1, λ2, k or the norm: those here are of the released code's own command line.
Pinned by tests/objective/test_seat.py.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from torch import Tensor
from torch.nn.functional import cross_entropy as labelled

from steadygaze.config import Field, settings
from steadygaze.maths.divergence import cross_entropy
from steadygaze.model import Architecture, Classifier
from steadygaze.objective.closeness import Ball, recalled, top_k_distance, worst_change
from steadygaze.objective.technique import Given, Memory, Stage, Technique
from steadygaze.objective.vanilla import Vanilla
from steadygaze.perturb.ascent import ascend
from steadygaze.types import Batch, Encoded, Forward, Terms


@settings
class Seat(Ball, Technique):
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

    def loss(self, model: Classifier, batch: Batch, given: Given) -> Terms:
        if self.variant == "released":
            return self._released(model, batch, given)
        memory = recalled(self, batch, given)
        target, w = memory.texts["probs"], memory.tokens["weights"]
        encoded = self._encoded(model, batch, memory)
        own = model.attend(model.score(encoded), batch.mask)
        logits = model.decode(encoded, own)
        terms = {"task": cross_entropy(target, logits)}
        if self.overlap:
            terms["top-k"] = self.overlap * top_k_distance(w, own, batch.mask, self.k)
        if self.stability:
            terms["stable"] = self.stability * worst_change(model, encoded, own, logits, batch, self, given.chance)
        return terms

    def objection(self, architecture: Architecture, classes: int) -> str | None:
        return None if self.variant == "released" else super().objection(architecture, classes)

    def stages(self, seed: int) -> tuple[Stage, ...]:
        if self.variant == "released":
            return (Stage("train"),)
        moves = ("model.scorer",) if self.variant == "paper" else ("model.",)
        student = Stage("student", start="reference", trains=moves, select="last", schedule="linear")
        return Stage("reference", technique=Vanilla(), model="reference"), student

    def remember(self, models: Mapping[str, Classifier], batch: Batch) -> Memory:
        if self.variant == "released":
            return Memory()
        said: Forward = models["reference"](batch)
        texts, tokens = {"probs": said.logits.softmax(-1)}, {"weights": said.weights}
        if self.variant == "paper":
            tokens["hidden"] = said.encoded.hidden
            if said.encoded.question is not None:
                texts["question"] = said.encoded.question
        return Memory(texts, tokens)

    def _encoded(self, model: Classifier, batch: Batch, memory: Memory) -> Encoded:
        """A frozen encoder says what it said before."""
        if "hidden" in memory.tokens:
            return Encoded(memory.tokens["hidden"], memory.texts.get("question"))
        return model.encode(batch)

    def _released(self, model: Classifier, batch: Batch, given: Given) -> Terms:
        embedded = model.embed(batch)

        def read(vectors: Tensor) -> tuple[Tensor, Tensor]:  # ℓ and w̃
            encoded = model.encode(batch, vectors.clamp(0, 1) if self.clamp else vectors)
            weights = model.attend(model.score(encoded), batch.mask)
            return labelled(model.decode(encoded, weights), batch.gold, reduction="none"), weights

        size = self.embedding_radius
        start = size * (2 * given.chance.uniform(batch.index, *embedded.shape[1:], dtype=embedded.dtype) - 1)
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
