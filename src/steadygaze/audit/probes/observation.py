"""Observe a model's attention and prediction in evaluation mode, and its input × gradient saliency.

    g_t = | Σ_d ∂p_c/∂x_td · x_td |           c: the predicted class

`detach_attention` excludes the gradient through the attention weights, as in Jain & Wallace 2019 (arXiv:1902.10186).
It needs a model with extension points.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.models.classifier import has_extension_points
from steadygaze.models.inference import inference, with_gradients
from steadygaze.models.model_protocol import Model


@dataclass(frozen=True, slots=True)
class PerturbedBatch:
    """An input after a probe."""

    batch: Batch
    embedded: Tensor | None  # (B,T,E) replaces the batch's embeddings
    touched: Tensor  # (B,) number of changed words


@dataclass(frozen=True, slots=True)
class Observation:
    """The outputs for one batch, in double precision: some differences are below single precision."""

    probs: Tensor  # (B,C)
    shown: Tensor | None  # (B,T), 0 outside the mask; None: the model has no attention
    special_token_share: Tensor | None = None  # (B,) share of the attention on special tokens, if known

    @property
    def weights(self) -> Tensor:
        if self.shown is None:
            raise ValueError("this model shows no attention")
        return self.shown


def observe(model: Model, batch: Batch, embedded: Tensor | None = None) -> Observation:
    """Run the model on a batch, or on these embeddings (B,T,E) of it."""
    with inference(model):
        forward = model(batch, embedded)
    weights = None if forward.weights is None else forward.weights.double()
    return Observation(forward.logits.double().softmax(-1), weights, getattr(forward, "special_token_share", None))


def gradient(model: Model, batch: Batch, *, detach_attention: bool = True) -> Tensor:
    """(B,T), 0 outside the mask"""
    with with_gradients(model):
        embedded = model.embed(batch).detach().requires_grad_()
        logits: Tensor = (
            _constant_attention_logits(model, batch, embedded) if detach_attention else model(batch, embedded).logits
        )
        # Single precision rounds a confident prediction to 1, with gradient 0.  `amax` averages the gradients of ties.
        best = logits.double().softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
        (slope,) = torch.autograd.grad(best.sum(), embedded)
    return (slope * embedded.detach()).sum(-1).abs().masked_fill(~batch.mask, 0.0).double()


def _constant_attention_logits(model: Model, batch: Batch, embedded: Tensor) -> Tensor:
    """(B,C)"""
    if not has_extension_points(model):
        raise ValueError("detach_attention=True needs a model with extension points; pass detach_attention=False")
    encoded = model.encode(batch, embedded)
    return model.decode(encoded, model.attend(model.score(encoded), batch.mask).detach())
