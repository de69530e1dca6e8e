"""What a model shows: its weights and its prediction, in evaluation mode, with nothing left behind."""

from dataclasses import dataclass

from torch import Tensor

from steadygaze.infer import inference
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
    elsewhere: Tensor | None = None  # (B,) how much of its look lies on special tokens, where it says so

    @property
    def weights(self) -> Tensor:
        if self.shown is None:
            raise ValueError("this model shows no attention")
        return self.shown


def look(model: Reader, batch: Batch, embedded: Tensor | None = None) -> Seen:
    """At a batch, or at these embeddings (B,T,E) of it."""
    with inference(model):
        said = model(batch, embedded)
    weights = None if said.weights is None else said.weights.double()
    return Seen(said.logits.double().softmax(-1), weights, getattr(said, "elsewhere", None))
