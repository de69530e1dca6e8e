"""Gradient explainers of word vectors: Gradient, InputXGradient and IntegratedGradients.

    f(x) = p_c(x)         probability of the explained class, or its logit; x (T,E) the word vectors

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

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Unit
from steadygaze.explainers.class_probability import (
    GRADIENT_TOKENS,
    MIN_LENGTH_RATIO,
    Output,
    clean_prediction,
    length_groups,
    output_of_embeddings,
)
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Capability, Model, inference, with_gradients
from steadygaze.perturbations.word_removal import take_rows, trim_padding, words_of


@dataclass(frozen=True, slots=True)
class ExplainedBatch:
    """Texts as inputs of a gradient method or of a method of Captum."""

    batch: Batch
    f: Callable[[Tensor, Tensor], Tensor]  # (K,W,E), (K,) rows -> (K,)
    vectors: Tensor  # (B,W,E)
    baseline: Tensor  # (B,W,E) with padding in place of words
    rows: Tensor  # (B,) row of each text; Captum repeats it with the vectors


class VectorExplainer(Explainer):
    """Base of explainers of word vectors: a subclass defines `weigh`."""

    requires: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})
    output: Output

    @abstractmethod
    def groups(self, batch: Batch) -> Iterable[Tensor]:
        """Rows of the texts to process together; others have weight 0."""

    @abstractmethod
    def weigh(self, explained: ExplainedBatch) -> Tensor:
        """Weight of each word.  (B,W,E) -> (B,W)"""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        clean = clean_prediction(model, batch, target, embedded)
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=batch.ids.device)
        question = None if batch.question_mask is None else weights.new_zeros(batch.question_mask.shape)
        with with_gradients(model):
            for rows in self.groups(batch):
                part = trim_to_longest(take_rows(batch, rows))
                width = part.ids.shape[1]
                vectors = None if embedded is None else embedded[rows, :width].detach()
                explained = explained_batch(model, part, clean.target_class[rows], vectors, self.output)
                scores = self.weigh(explained).detach().double().masked_fill(~words_of(part), 0.0)
                weights[rows, :width] = scores[:, :width]
                if question is not None:
                    question[rows, : scores.shape[1] - width] = scores[:, width:]
        return Saliency(weights, clean.logits, question=question)


def trim_to_longest(batch: Batch) -> Batch:
    question_width = None if batch.question_present is None else max(1, int(batch.question_present.sum(-1).max()))
    return trim_padding(batch, max(1, int(batch.present.sum(-1).max())), question_width)


def explained_batch(model: Model, batch: Batch, aim: Tensor, embedded: Tensor | None, output: Output) -> ExplainedBatch:
    """`embedded` (B,T,E) replaces the vectors of the texts."""
    vectors, padding_vectors = own_vectors(model, batch, embedded), own_vectors(model, _blank(batch, model.padding))
    baseline = torch.where(words_of(batch).unsqueeze(-1), padding_vectors, vectors)
    rows = torch.arange(len(batch), device=vectors.device)
    f = output_of_embeddings(model, batch, aim, output)
    return ExplainedBatch(batch, f, vectors.clone().requires_grad_(), baseline, rows)


def own_vectors(model: Model, batch: Batch, embedded: Tensor | None = None) -> Tensor:
    """(B,W,E), without dropout, detached from the parameters"""
    with inference(model):
        vectors = model.embed(batch) if embedded is None else embedded
        if batch.question_mask is None:
            return vectors
        question = model.embed_question(batch)
        return vectors if question is None else torch.cat([vectors, question], 1)


def gradient_tokens(tensor: Tensor) -> int:
    """Tokens per forward pass with gradients on this tensor's device."""
    return GRADIENT_TOKENS.get(tensor.device.type, GRADIENT_TOKENS["cpu"])


def _blank(batch: Batch, padding: int) -> Batch:
    blank = replace(batch, ids=batch.ids.masked_fill(batch.mask, padding))
    if batch.question_ids is None or batch.question_mask is None:
        return blank
    return replace(blank, question_ids=batch.question_ids.masked_fill(batch.question_mask, padding))


@settings
class GradientExplainer(VectorExplainer):
    """Base of explainers by the gradient of the output."""

    forward_passes: ClassVar[int] = 3
    steps = 1
    """Points at which the gradient is computed."""

    output: Output = "probability"
    """The explained output: the probability or the logit of the class."""

    def groups(self, batch: Batch) -> Iterator[Tensor]:
        """Texts of similar length; of equal length if a text has several points and almost fills a forward pass."""
        lengths = batch.present.sum(-1)
        if batch.question_present is not None:
            lengths = lengths + batch.question_present.sum(-1)
        ratio = MIN_LENGTH_RATIO if self.steps == 1 else 1.0
        for rows, _ in length_groups(lengths, gradient_tokens(batch.ids) // self.steps, min_length_ratio=ratio):
            yield rows


@settings
class Gradient(GradientExplainer):
    """Gradient: norm of the gradient with respect to each word vector; unsigned."""

    def weigh(self, explained: ExplainedBatch) -> Tensor:
        norms: Tensor = _gradients(explained.f, explained.vectors, explained.rows).double().norm(dim=-1)
        return norms


@settings
class InputXGradient(GradientExplainer):
    """Input × gradient: first-order effect of each word vector (Shrikumar et al. 2016)."""

    def weigh(self, explained: ExplainedBatch) -> Tensor:
        gradients = _gradients(explained.f, explained.vectors, explained.rows)
        return (gradients * explained.vectors.detach()).double().sum(-1)


@settings
class IntegratedGradients(GradientExplainer):
    """Integrated gradients: sums to the change of the prediction against padding (Sundararajan et al. 2017)."""

    forward_passes: ClassVar[int] = 150  # a step needs gradients and costs about three forward passes

    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Integration points on the path from the baseline."""

    @property
    def unit(self) -> Unit:
        return self.output

    def weigh(self, explained: ExplainedBatch) -> Tensor:
        nodes, node_weights = np.polynomial.legendre.leggauss(self.steps)
        alphas, alpha_weights = (
            torch.from_numpy(values / 2).to(explained.vectors).view(-1, 1, 1, 1) for values in (nodes + 1, node_weights)
        )
        change = (explained.vectors - explained.baseline).detach()
        texts, width, size = change.shape
        passes = math.ceil(self.steps * texts * width / gradient_tokens(change))
        per_pass = math.ceil(self.steps / passes)
        integral = torch.zeros_like(change)
        for first in range(0, self.steps, per_pass):
            alpha, weight = alphas[first : first + per_pass], alpha_weights[first : first + per_pass]
            vectors = (explained.baseline + alpha * change).flatten(0, 1)
            gradients = _gradients(explained.f, vectors, explained.rows.repeat(len(alpha)))
            integral += (weight * gradients.view(-1, texts, width, size)).sum(0)
        return (integral * change).double().sum(-1)


def _gradients(f: Callable[[Tensor, Tensor], Tensor], vectors: Tensor, rows: Tensor) -> Tensor:
    """Gradient of each text's f with respect to its vectors.  (K,W,E), (K,) -> (K,W,E)"""
    vectors = vectors.detach().requires_grad_()
    gradients: Tensor = torch.autograd.grad(f(vectors, rows).sum(), vectors)[0]
    return gradients
