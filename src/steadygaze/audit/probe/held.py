"""Hidden states held, to be read with other attention weights than the model's own.

    z(w̃) = decode(h, w̃);     linear:  z(w̃) = z(w) + Σ_t (w̃_t − w_t) A_t,   A = HΘᵀ

The encoder reads each text once, however many weights are tried; of a linear decoder (T,C) numbers a text are enough.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.decode import Linear
from steadygaze.infer import inference
from steadygaze.model import Classifier
from steadygaze.types import Batch, Encoded, Forward


@dataclass(frozen=True, slots=True)
class Held:
    """Of one batch, in double precision."""

    model: Classifier
    encoded: Encoded
    weights: Tensor  # (B,T)
    logits: Tensor  # (B,C)
    reach: Tensor | None  # (B,T,C): A, where the decoder is linear

    def read(self, weights: Tensor) -> Tensor:
        """Probabilities under so many other weights of each text.  (B,K,T) -> (B,K,C)"""
        if self.reach is None:
            logits = [self.model.decode(self.encoded, one).double() for one in weights.unbind(1)]
            return torch.stack(logits, 1).softmax(-1)
        return (self.logits.unsqueeze(1) + (weights - self.weights.unsqueeze(1)) @ self.reach).softmax(-1)


def hold(model: Classifier, batch: Batch) -> Held:
    with inference(model):
        forward: Forward = model(batch)
        reach = model.decoder.reach(forward.encoded).double() if isinstance(model.decoder, Linear) else None
    return Held(model, forward.encoded, forward.weights.double(), forward.logits.double(), reach)
