"""Gradient: how much the prediction hangs on each word's vector.

    w_t = ‖∂p_c/∂x_t‖₂

Simonyan, Vedaldi & Zisserman 2014 (arXiv:1312.6034), §3; the slope is taken by Captum's `Saliency`.  The length, not
the sum of the entries' sizes: it is what the prediction changes by at most for a step of length one of that vector,
whatever axes the vectors are written in.  It has no sign.  Of a sure prediction every slope is small; what can be read
is which word's is the largest.

Departs from the paper, which takes the largest entry of three colours.  audit/probes/observation.py has that of Jain &
Wallace, which is gradient × input with the attention held fixed.  Pinned by tests/explain/test_gradient.py.

Explainers of word vectors: a text, and what Captum takes its slopes by.

    f(x) = p_c(x)         how likely the class asked about is, x (T,E) the vectors of the words

Of a pair x has the vectors of the question after those of the text: T + Q = W.  Where something is to be put in a
word's place, it is the vector of padding; other tokens than words stay as they are.  Texts of like length are read
together, so that little of a pass is padding.

Input × gradient: what the prediction would lose without each word, were it a straight line.

    w_t = Σ_d x_td · ∂p_c/∂x_td

Shrikumar et al. 2016 (arXiv:1605.01713); taken by Captum's `InputXGradient`.  Above 0: the word speaks for the class.

Departs from the paper: nothing known.  Pinned by tests/explain/test_input_x_gradient.py.

Integrated gradients: the slopes on the way from a text of padding to the text, added up.

Sundararajan, Taly & Yan, "Axiomatic Attribution for Deep Networks", ICML 2017 (arXiv:1703.01365), Eq. 1.

    w_t = Σ_d (x_td − x′_td) · ∫₀¹ ∂p_c/∂x_td (x′ + α (x − x′)) dα
    Σ_t w_t = p_c(x) − p_c(x′)                            completeness

    x′  every word's vector that of padding (0 in our word models); all other tokens as they are

By Captum's `IntegratedGradients`: Gauss and Legendre's rule with `steps` points, whose error the sum above tells.

Departs from the paper: the baseline of a word is the vector of padding, not 0, where the two differ.
Pinned by tests/explain/test_integrated_gradients.py.
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
    """Some texts as a method of Captum sees them."""

    f: Callable[[Tensor, Tensor], Tensor]  # (K,W,E), (K,) rows -> (K,)
    vectors: Tensor  # (B,W,E)
    baseline: Tensor  # (B,W,E) with padding in place of words
    rows: Tensor  # (B,) which Captum repeats with the vectors, so that f knows whose they are


def slopes_by(
    method: Callable[[ExplainedBatch], Tensor],
    model: Model,
    batch: Batch,
    target: Tensor | None,
    embedded: Tensor | None,
    near: float = NEAR,
) -> Saliency:
    """What a method that draws nothing, (B,W,E) -> (B,W), makes of each word's vector; 0 outside the mask.

    `near`: how short a text may be beside the longest; 1 where one text fills a pass, so that padding is only a cost.
    """
    seen = clean_prediction(model, batch, target, embedded)
    weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=batch.ids.device)
    question = None if batch.question_mask is None else weights.new_zeros(batch.question_mask.shape)
    with with_gradients(model):
        for rows, _ in length_groups(lengths(batch), SLOPED, near=near):
            part = shortest(take_rows(batch, rows))
            width = part.ids.shape[1]
            own = None if embedded is None else embedded[rows, :width].detach()
            found = method(asked_of(model, part, seen.target_class[rows], own)).detach().double()
            weights[rows, :width] = found[:, :width]
            if question is not None:
                question[rows, : found.shape[1] - width] = found[:, width:]
    if question is not None and batch.question_mask is not None:
        question = question.masked_fill(~batch.question_mask, 0.0)
    return Saliency(weights.masked_fill(~batch.mask, 0.0), seen.logits, question=question)


def lengths(batch: Batch) -> Tensor:
    """Tokens of each text, those of its question included.  (B,)"""
    own = batch.present.sum(-1)
    return own if batch.question_present is None else own + batch.question_present.sum(-1)


def shortest(batch: Batch) -> Batch:
    """As wide as the longest text and the longest question."""
    asked = None if batch.question_present is None else max(1, int(batch.question_present.sum(-1).max()))
    return trim_padding(batch, max(1, int(batch.present.sum(-1).max())), asked)


def asked_of(model: Model, batch: Batch, aim: Tensor, embedded: Tensor | None = None) -> ExplainedBatch:
    """`embedded`: vectors of the texts (B,T,E) in place of their own."""
    vectors, nothing = own_vectors(model, batch, embedded), own_vectors(model, _blank(batch, model.padding))
    baseline = torch.where(words_of(batch).unsqueeze(-1), nothing, vectors)
    rows = torch.arange(len(batch), device=vectors.device)
    return ExplainedBatch(
        probability_of_embeddings(model, batch, aim), vectors.clone().requires_grad_(), baseline, rows
    )


def own_vectors(model: Model, batch: Batch, embedded: Tensor | None = None) -> Tensor:
    """(B,W,E), without dropout and apart from the parameters"""
    with inference(model):
        vectors = model.embed(batch) if embedded is None else embedded
        if batch.question_mask is None:
            return vectors
        asked = model.embed_question(batch)
        return vectors if asked is None else torch.cat([vectors, asked], 1)


def at_once(vectors: Tensor) -> int:
    """Texts that can be read at once with slopes.  (B,W,E) -> number"""
    return max(1, SLOPED // vectors.shape[1])


def _blank(batch: Batch, padding: int) -> Batch:
    """With padding in place of every word."""
    blank = replace(batch, ids=batch.ids.masked_fill(batch.mask, padding))
    if batch.question_ids is None or batch.question_mask is None:
        return blank
    return replace(blank, question_ids=batch.question_ids.masked_fill(batch.question_mask, padding))


class Gradient(Explainer):
    """Gradient: how far the prediction can move with each word's vector; no sign."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 3

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_slope, model, batch, target, embedded)


def _slope(asked: ExplainedBatch) -> Tensor:
    from captum.attr import Saliency

    slope: Tensor = Saliency(asked.f).attribute(asked.vectors, abs=False, additional_forward_args=(asked.rows,))
    length: Tensor = slope.double().norm(dim=-1)
    return length


class InputXGradient(Explainer):
    """Input × gradient: what a straight line says of each word's vector (Shrikumar et al. 2016)."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 3

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_product, model, batch, target, embedded)


def _product(asked: ExplainedBatch) -> Tensor:
    from captum.attr import InputXGradient

    product: Tensor = InputXGradient(asked.f).attribute(asked.vectors, additional_forward_args=(asked.rows,))
    return product.double().sum(-1)


@settings
class IntegratedGradients(Explainer):
    """Integrated gradients: sums to what the words change against padding (Sundararajan et al. 2017)."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    forward_passes: ClassVar[int] = 150  # a step is a pass with slopes, which costs about three without

    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Points on the way at which slopes are taken."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(self._integral, model, batch, target, embedded, near=1.0)

    def _integral(self, asked: ExplainedBatch) -> Tensor:
        from captum.attr import IntegratedGradients

        integral: Tensor = IntegratedGradients(asked.f).attribute(
            asked.vectors,
            baselines=asked.baseline,
            additional_forward_args=(asked.rows,),
            n_steps=self.steps,
            internal_batch_size=at_once(asked.vectors),
        )
        return integral.double().sum(-1)
