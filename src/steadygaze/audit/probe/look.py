"""What a model shows: its weights and its prediction, in evaluation mode, with nothing left behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.infer import evaluation, inference
from steadygaze.maths.chance import Chance
from steadygaze.reader import Reader
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Moved:
    """An input as a probe leaves it."""

    batch: Batch
    embedded: Tensor | None  # (B,T,E) in place of the batch's own vectors
    touched: Tensor  # (B,) how many words of each text were changed


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one batch, in double precision: differences of interest may be smaller than single precision tells."""

    probs: Tensor  # (B,C)
    shown: Tensor | None  # (B,T), 0 outside the mask; None: the model shows none

    @property
    def weights(self) -> Tensor:
        if self.shown is None:
            raise ValueError("this model shows no attention")
        return self.shown


def look(model: Reader, batch: Batch, embedded: Tensor | None = None) -> Seen:
    """At a batch, or at these embeddings (B,T,E) of it."""
    with inference(model):
        said = model(batch, embedded)
    return Seen(said.logits.double().softmax(-1), None if said.weights is None else said.weights.double())


@contextmanager
def slopes(model: Reader) -> Iterator[None]:
    """Evaluation mode with gradients: cuDNN would refuse those of a recurrent network that is not in training."""
    cudnn = torch.backends.cudnn
    with evaluation(model), cudnn.flags(enabled=False, allow_tf32=False), torch.enable_grad():
        yield


def text_key(batch: Batch) -> Tensor:
    """A number that belongs to the text, whatever split or batch it stands in: its chance is drawn from it.  (B,)"""
    places = torch.arange(1, batch.ids.shape[1] + 1, device=batch.ids.device)
    mixed = Chance(1).scramble(batch.ids * 1_000_003 + places).masked_fill(~batch.present, 0)
    return mixed.sum(-1)  # wraps around, as it may
