"""How much the predicted class hangs on each word's vector.

    g_t = | Σ_d ∂p_c/∂x_td · x_td |           c the predicted class

`detach_attention`: whether the weights are held fixed, as Jain & Wallace 2019 (arXiv:1902.10186) have it, so that the
gradient cannot take credit for what attention does; else it flows through them too.
"""

import torch
from torch import Tensor

from steadygaze.audit.probe.look import slopes
from steadygaze.model import Classifier
from steadygaze.types import Batch


def gradient(model: Classifier, batch: Batch, *, detach_attention: bool = True) -> Tensor:
    """(B,T), 0 outside the mask"""
    with slopes(model):
        embedded = model.embed(batch).detach().requires_grad_()
        encoded = model.encode(batch, embedded)
        weights = model.attend(model.score(encoded), batch.mask)
        logits = model.decode(encoded, weights.detach() if detach_attention else weights)
        # Doubles: singles round a sure prediction to 1, whose slope is 0.  Not `amax`: it mixes the slopes of equals.
        best = logits.double().softmax(-1).gather(-1, logits.argmax(-1, keepdim=True))
        (slope,) = torch.autograd.grad(best.sum(), embedded)
    return (slope * embedded.detach()).sum(-1).abs().masked_fill(~batch.mask, 0.0).double()
