"""How much the predicted class hangs on each word's vector.

    g_t = | Σ_d ∂p_c/∂x_td · x_td |           c the predicted class

`detach_attention`: whether the weights are held fixed, as Jain & Wallace 2019 (arXiv:1902.10186) have it, so that the
gradient cannot take credit for what attention does; else it flows through them too.  Weights can be held fixed in a
model with open seams alone.
"""

import torch
from torch import Tensor

from steadygaze.infer import slopes
from steadygaze.model import Classifier
from steadygaze.reader import Reader
from steadygaze.types import Batch


def gradient(model: Reader, batch: Batch, *, detach_attention: bool = True) -> Tensor:
    """(B,T), 0 outside the mask"""
    with slopes(model):
        embedded = model.embed(batch).detach().requires_grad_()
        logits: Tensor = _fixed(model, batch, embedded) if detach_attention else model(batch, embedded).logits
        # Doubles: singles round a sure prediction to 1, whose slope is 0.  Not `amax`: it mixes the slopes of equals.
        best = logits.double().softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
        (slope,) = torch.autograd.grad(best.sum(), embedded)
    return (slope * embedded.detach()).sum(-1).abs().masked_fill(~batch.mask, 0.0).double()


def _fixed(model: Reader, batch: Batch, embedded: Tensor) -> Tensor:
    """Logits (B,C), to which the weights are constants."""
    if not isinstance(model, Classifier):
        raise ValueError("the weights of a model without open seams cannot be held fixed")
    encoded = model.encode(batch, embedded)
    return model.decode(encoded, model.attend(model.score(encoded), batch.mask).detach())
