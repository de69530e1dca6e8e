"""Saliency of tokens to a classifier's own prediction, as a distribution over the text.

    attention           the attention weights
    gradient            ‖∂p_c/∂x_t‖₂ / Σ ‖∂p_c/∂x‖₂            c the predicted class, x_t the vector of token t
    input-x-gradient    |x_t · ∂p_c/∂x_t| / Σ |x · ∂p_c/∂x|

The gradients are those of explainers/gradient.py; here they have no sign.
They are constants: no gradient flows through them.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import with_gradients

Saliency = Literal["attention", "gradient", "input-x-gradient"]
GRADIENT_TOKENS = 1 << 12
"""Tokens per forward pass with gradients, which limits memory."""


def token_saliency(
    model: Classifier, batch: Batch, kind: Saliency, embedded: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the hidden states (B,T,H) and the saliency (B,T), 0 outside the mask."""
    if kind == "attention":
        output = model(batch, embedded)
        return output.encoded.hidden, output.weights
    vectors = (model.embed(batch) if embedded is None else embedded).detach()
    texts = max(1, GRADIENT_TOKENS // batch.ids.shape[1])
    starts = range(0, len(batch), texts)
    parts = [_gradient(model, batch, vectors, slice(start, start + texts)) for start in starts]
    hidden, slope = (torch.cat(values) for values in zip(*parts, strict=True))
    size = slope.norm(dim=-1) if kind == "gradient" else (slope * vectors).sum(-1)
    return hidden, distributions.normalize(size, batch.mask).to(vectors.dtype)


def _gradient(model: Classifier, batch: Batch, vectors: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
    """Return the hidden states and ∂p_c/∂x of these texts.  (K,T,H), (K,T,E)"""
    tensors = {name: getattr(batch, name) for name in batch.__slots__}
    texts = replace(batch, **{name: value[rows] for name, value in tensors.items() if value is not None})
    with with_gradients(model):
        inputs = vectors[rows].requires_grad_()
        output = model(texts, inputs)
        probability = output.logits.double().softmax(-1).amax(-1)
        slope = torch.autograd.grad(probability.sum(), inputs)[0].double()
    return output.encoded.hidden.detach(), slope
