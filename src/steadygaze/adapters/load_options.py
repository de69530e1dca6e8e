"""LoadOptions: how a model of the transformers library is loaded by name."""

from dataclasses import dataclass
from pathlib import Path

from steadygaze.adapters.prompt import Prompt
from steadygaze.core.errors import UserError
from steadygaze.models.encoders.weight_options import WeightOptions

DEFAULT_ATTENTION = "last"
AS_STORED = WeightOptions()


@dataclass(frozen=True)
class LoadOptions:
    device: str = "auto"
    attention: str = DEFAULT_ATTENTION
    """How heads and layers are aggregated: last or rollout."""
    prompt: Prompt | None = None
    weights: WeightOptions = AS_STORED
    base_model: str | Path | None = None
    """The base model of an adapter; None: the name in its folder."""

    votes: int | None = None
    """Sampled answers per text of a prompted language model; None: the probabilities of the label words."""

    def refuse_weights(self, name: str) -> None:
        """Refuse options of weights for a model that is not loaded from a Hugging Face folder."""
        if self.weights == AS_STORED and self.base_model is None:
            return
        raise UserError(
            "dtype=, device_map=, quantization_config= and base_model= (--dtype, --device-map, --quantize, "
            f"--base-model) are for folders and hub ids of Hugging Face models, and {name} is not one: leave them out"
        )
