"""Gradient explainers of word vectors: Gradient, InputXGradient and IntegratedGradients, computed by Captum.

    f(x) = p_c(x)         probability of the explained class, x (T,E) the word vectors

For a pair, x is the vectors of the text followed by those of the question: T + Q = W.  Texts of similar length share a
forward pass, so that little of it is padding.

Gradient: Simonyan, Vedaldi & Zisserman 2014 (arXiv:1312.6034), §3.

    w_t = ‖∂p_c/∂x_t‖₂

The L2 norm bounds the change of the prediction per unit step of the vector in any basis.  It has no sign.  Gradients of
a confident prediction are all small; only their order is informative.  The paper takes the largest entry instead.

Input × gradient: Shrikumar et al. 2016 (arXiv:1605.01713).  Above 0: the word supports the class.

    w_t = Σ_d x_td · ∂p_c/∂x_td

Integrated gradients: Sundararajan, Taly & Yan, "Axiomatic Attribution for Deep Networks", ICML 2017 (arXiv:1703.01365),
Eq. 1.

    w_t = Σ_d (x_td − x′_td) · ∫₀¹ ∂p_c/∂x_td (x′ + α (x − x′)) dα
    Σ_t w_t = p_c(x) − p_c(x′)                            completeness

    x′  the padding vector for every word (0 in our word models); all other tokens unchanged

The integral uses the Gauss–Legendre rule with `steps` points; completeness measures its error.  The paper's baseline is
0; ours is the padding vector.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import (
    NEAR,
    SLOPED,
    clean_prediction,
    length_groups,
    probability_of_embeddings,
)
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import inference, with_gradients
from steadygaze.models.model_protocol import Capability, Model
from steadygaze.techniques.perturbations.word_removal import take_rows, trim_padding, words_of


@dataclass(frozen=True, slots=True)
class ExplainedBatch:
    """Texts as inputs of a Captum method."""

    f: Callable[[Tensor, Tensor], Tensor]  # (K,W,E), (K,) rows -> (K,)
    vectors: Tensor  # (B,W,E)
    baseline: Tensor  # (B,W,E) with padding in place of words
    rows: Tensor  # (B,) row of each text; Captum repeats it with the vectors


def slopes_by(
    method: Callable[[ExplainedBatch], Tensor],
    model: Model,
    batch: Batch,
    target: Tensor | None,
    embedded: Tensor | None,
    near: float = NEAR,
) -> Saliency:
    """Weights by a deterministic method, (B,W,E) -> (B,W); 0 outside the mask.

    `near`: smallest length relative to the longest text of a forward pass; 1 if one text fills a pass.
    """
    clean = clean_prediction(model, batch, target, embedded)
    weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=batch.ids.device)
    question = None if batch.question_mask is None else weights.new_zeros(batch.question_mask.shape)
    with with_gradients(model):
        for rows, _ in length_groups(lengths(batch), SLOPED, near=near):
            part = shortest(take_rows(batch, rows))
            width = part.ids.shape[1]
            own = None if embedded is None else embedded[rows, :width].detach()
            scores = method(asked_of(model, part, clean.target_class[rows], own)).detach().double()
            weights[rows, :width] = scores[:, :width]
            if question is not None:
                question[rows, : scores.shape[1] - width] = scores[:, width:]
    if question is not None and batch.question_mask is not None:
        question = question.masked_fill(~batch.question_mask, 0.0)
    return Saliency(weights.masked_fill(~batch.mask, 0.0), clean.logits, question=question)


def lengths(batch: Batch) -> Tensor:
    """Tokens of each text, those of its question included.  (B,)"""
    own = batch.present.sum(-1)
    return own if batch.question_present is None else own + batch.question_present.sum(-1)


def shortest(batch: Batch) -> Batch:
    """Trim padding to the longest text and the longest question."""
    question_width = None if batch.question_present is None else max(1, int(batch.question_present.sum(-1).max()))
    return trim_padding(batch, max(1, int(batch.present.sum(-1).max())), question_width)


def asked_of(model: Model, batch: Batch, aim: Tensor, embedded: Tensor | None = None) -> ExplainedBatch:
    """`embedded` (B,T,E) replaces the vectors of the texts."""
    vectors, nothing = own_vectors(model, batch, embedded), own_vectors(model, _blank(batch, model.padding))
    baseline = torch.where(words_of(batch).unsqueeze(-1), nothing, vectors)
    rows = torch.arange(len(batch), device=vectors.device)
    return ExplainedBatch(
        probability_of_embeddings(model, batch, aim), vectors.clone().requires_grad_(), baseline, rows
    )


def own_vectors(model: Model, batch: Batch, embedded: Tensor | None = None) -> Tensor:
    """(B,W,E), without dropout, detached from the parameters"""
    with inference(model):
        vectors = model.embed(batch) if embedded is None else embedded
        if batch.question_mask is None:
            return vectors
        question = model.embed_question(batch)
        return vectors if question is None else torch.cat([vectors, question], 1)


def at_once(vectors: Tensor) -> int:
    """Texts per forward pass with gradients.  (B,W,E) -> number"""
    return max(1, SLOPED // vectors.shape[1])


def _blank(batch: Batch, padding: int) -> Batch:
    """Replace every word by padding."""
    blank = replace(batch, ids=batch.ids.masked_fill(batch.mask, padding))
    if batch.question_ids is None or batch.question_mask is None:
        return blank
    return replace(blank, question_ids=batch.question_ids.masked_fill(batch.question_mask, padding))


class Gradient(Explainer):
    """Gradient: norm of the gradient with respect to each word vector; unsigned."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 3

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_gradient_norm, model, batch, target, embedded)


def _gradient_norm(explained: ExplainedBatch) -> Tensor:
    from captum.attr import Saliency

    gradient: Tensor = Saliency(explained.f).attribute(
        explained.vectors, abs=False, additional_forward_args=(explained.rows,)
    )
    length: Tensor = gradient.double().norm(dim=-1)
    return length


class InputXGradient(Explainer):
    """Input × gradient: first-order effect of each word vector (Shrikumar et al. 2016)."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 3

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_product, model, batch, target, embedded)


def _product(explained: ExplainedBatch) -> Tensor:
    from captum.attr import InputXGradient

    product: Tensor = InputXGradient(explained.f).attribute(
        explained.vectors, additional_forward_args=(explained.rows,)
    )
    return product.double().sum(-1)


@settings
class IntegratedGradients(Explainer):
    """Integrated gradients: sums to the change of the prediction against padding (Sundararajan et al. 2017)."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 150  # a step needs gradients and costs about three forward passes

    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Integration points on the path from the baseline."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(self._integral, model, batch, target, embedded, near=1.0)

    def _integral(self, explained: ExplainedBatch) -> Tensor:
        from captum.attr import IntegratedGradients

        integral: Tensor = IntegratedGradients(explained.f).attribute(
            explained.vectors,
            baselines=explained.baseline,
            additional_forward_args=(explained.rows,),
            n_steps=self.steps,
            internal_batch_size=at_once(explained.vectors),
        )
        return integral.double().sum(-1)
