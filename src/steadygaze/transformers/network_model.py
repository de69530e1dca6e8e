"""A network of the transformers library with its own head, as a technique calls it: word vectors in, logits out.

The network reads the same inputs as without a technique, so padding, positions and the token that the head reads do not
change.  Only the output of its embedding layer is replaced by the vectors of the technique.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model


@dataclass(frozen=True)
class NetworkOutput:
    logits: Tensor  # (B,C)

    @property
    def weights(self) -> Tensor:
        raise _no_attention("weights")


class NetworkModel(Model):
    """`network`: called for each forward pass, so that a wrapper for several devices sees it.

    `layer`: the embedding layer of the network.  `inputs`: further inputs of these texts, such as token types.
    """

    def __init__(self, network: nn.Module, layer: nn.Module, inputs: Mapping[str, Any]) -> None:
        super().__init__()
        self.network, self.layer = network, layer
        self._inputs = dict(inputs)

    def __getattr__(self, name: str) -> Any:
        if name in ("encode", "score", "attend", "decode", "encoder", "scorer", "decoder", "attention"):
            raise _no_attention(name)
        return super().__getattr__(name)

    @property
    def vectors(self) -> Tensor:
        weight = self.layer.weight
        assert isinstance(weight, Tensor)
        return weight

    def embed(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.layer(batch.ids)
        return vectors

    def embed_question(self, batch: Batch) -> Tensor | None:
        return None  # a pair is one sequence

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> NetworkOutput:
        inputs = {**self._inputs, "input_ids": batch.ids}
        if embedded is None:
            return NetworkOutput(self.network(**inputs).logits)
        with _replaced_output(self.layer, embedded):
            return NetworkOutput(self.network(**inputs).logits)


@contextmanager
def _replaced_output(layer: nn.Module, output: Tensor) -> Iterator[None]:
    """Inside the block the layer returns this output; it must be called once."""
    calls = 0

    def replace(*_: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return output

    handle = layer.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()
    if calls != 1:
        raise UserError(
            f"the network calls the layer of get_input_embeddings() {calls} times for a batch instead of once: its "
            "word vectors cannot be perturbed; train with technique='vanilla'"
        )


def _no_attention(name: str) -> UserError:
    return UserError(
        f"the technique reads {name!r} of the model, and a network with its own head has none: use the embeddings and "
        "logits only, or train with TextClassifier(encoder='transformer:…')"
    )
