"""What a model shows: its weights and its prediction, in evaluation mode, with nothing left behind.

How much the predicted class hangs on each word's vector.

    g_t = | Σ_d ∂p_c/∂x_td · x_td |           c the predicted class

`detach_attention`: whether the weights are held fixed, as Jain & Wallace 2019 (arXiv:1902.10186) have it, so that the
gradient cannot take credit for what attention does; else it flows through them too.  Weights can be held fixed in a
model with open seams alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import inference, with_gradients
from steadygaze.models.model_protocol import Model


@dataclass(frozen=True, slots=True)
class PerturbedBatch:
    """An input as a probe leaves it."""

    batch: Batch
    embedded: Tensor | None  # (B,T,E) in place of the batch's own vectors
    touched: Tensor  # (B,) how many words of each text were changed


@dataclass(frozen=True, slots=True)
class Observation:
    """Of one batch, in double precision: differences of interest may be smaller than single precision tells."""

    probs: Tensor  # (B,C)
    shown: Tensor | None  # (B,T), 0 outside the mask; None: the model shows none
    special_token_share: Tensor | None = None  # (B,) how much of its look lies on special tokens, where it says so

    @property
    def weights(self) -> Tensor:
        if self.shown is None:
            raise ValueError("this model shows no attention")
        return self.shown


def observe(model: Model, batch: Batch, embedded: Tensor | None = None) -> Observation:
    """At a batch, or at these embeddings (B,T,E) of it."""
    with inference(model):
        said = model(batch, embedded)
    weights = None if said.weights is None else said.weights.double()
    return Observation(said.logits.double().softmax(-1), weights, getattr(said, "special_token_share", None))


def gradient(model: Model, batch: Batch, *, detach_attention: bool = True) -> Tensor:
    """(B,T), 0 outside the mask"""
    with with_gradients(model):
        embedded = model.embed(batch).detach().requires_grad_()
        logits: Tensor = _fixed(model, batch, embedded) if detach_attention else model(batch, embedded).logits
        # Doubles: singles round a sure prediction to 1, whose slope is 0.  Not `amax`: it mixes the slopes of equals.
        best = logits.double().softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
        (slope,) = torch.autograd.grad(best.sum(), embedded)
    return (slope * embedded.detach()).sum(-1).abs().masked_fill(~batch.mask, 0.0).double()


def _fixed(model: Model, batch: Batch, embedded: Tensor) -> Tensor:
    """Logits (B,C), to which the weights are constants."""
    if not isinstance(model, Classifier):
        raise ValueError("the weights of a model without open seams cannot be held fixed")
    encoded = model.encode(batch, embedded)
    return model.decode(encoded, model.attend(model.score(encoded), batch.mask).detach())
