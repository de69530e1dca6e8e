"""Any sequence classifier of the transformers library: from a folder, the hub, a live pair or a pipeline.

Weights are read from .safetensors only, and no code is ever loaded from a hub.  A live model is the user's: what is
examined is a twin that shares its weights and nothing else, so that its configuration, mode and hooks stay as they are.
"""

import copy
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from steadygaze.encode.transformer import plain, read_config, readable
from steadygaze.errors import UserError, unknown
from steadygaze.subject.assemble import Written, assemble, longest, quiet
from steadygaze.subject.looking import LOOKS
from steadygaze.subject.subject import Subject
from steadygaze.tokens.pieces import load_pieces
from steadygaze.tokens.tokenizer import read_engine
from steadygaze.train.device import best

HEAD = "ForSequenceClassification"
"""How the library calls its classifiers."""
TYPES = "token_type_ids"


def from_folder(folder: Path, name: str, device: str, attention: str) -> Subject:
    _known(attention)
    config = read_config(folder, "classifier")
    _single_label(config, name)
    if not any(HEAD in architecture for architecture in config.architectures or ()):
        found = ", ".join(config.architectures or ["no architecture"])
        raise UserError(f"{name} is no classifier: its config.json names {found}, and a classifier would be a …{HEAD}")
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{name} has no .safetensors weights; other formats can run code when they are opened")
    pieces = load_pieces(folder, max_length=longest(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    network = _load(folder, name).to(best(device))
    return assemble(network, Written(engine, pieces.pad_id or None, _typed(folder)), name, attention)


def from_live(network: Any, tokenizer: Any, attention: str) -> Subject:
    """Of a model and its tokenizer that are already in memory, where they are."""
    _known(attention)
    name = _name(network)
    if not any(HEAD in kind.__name__ for kind in type(network).__mro__):
        raise UserError(
            f"a {type(network).__name__} is no classifier of the transformers library: it would be a …{HEAD}"
        )
    if getattr(network.config, "is_encoder_decoder", False):
        raise UserError(f"{name} holds a {network.config.model_type}, which writes text; such models cannot be audited")
    _single_label(network.config, name)
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"{type(tokenizer).__name__} is no fast tokenizer of the transformers library, and only those say where "
            "each token stands; load it with AutoTokenizer.from_pretrained(…)"
        )
    engine = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    typed = TYPES in tokenizer.model_input_names
    return assemble(_twin(network), Written(engine, tokenizer.pad_token_id, typed), name, attention)


def from_pipeline(pipeline: Any, attention: str) -> Subject:
    if pipeline.task not in ("text-classification", "sentiment-analysis"):
        raise UserError(f"a pipeline for {pipeline.task} classifies no texts; one for text-classification does")
    return from_live(pipeline.model, pipeline.tokenizer, attention)


def _load(folder: Path, name: str) -> Any:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    with readable(folder, "classifier"), quiet():
        config = plain(AutoConfig.from_pretrained(folder, trust_remote_code=False))
        network, told = AutoModelForSequenceClassification.from_pretrained(
            folder,
            config=config,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    if missing := sorted(told["missing_keys"]):
        raise UserError(f"{name} is no trained classifier: its weights lack {missing[0]}, which would be made up")
    return network


def _typed(folder: Path) -> bool:
    """Whether the tokenizer of this folder tells a network the type of each token; where that is not known: yes."""
    from transformers import AutoTokenizer

    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception:  # what it needs beyond tokenizer.json, we do not
        return True
    return TYPES in tokenizer.model_input_names


def _twin(network: Any) -> Any:
    """The same weights, not copied; everything else its own."""
    shared = [*network.parameters(), *network.buffers()]
    return copy.deepcopy(network, {id(tensor): tensor for tensor in shared})


def _single_label(config: Any, name: str) -> None:
    kind = getattr(config, "problem_type", None)
    if kind == "regression" or config.num_labels < 2:
        raise UserError(f"{name} predicts a number (regression); an audit needs classes, at least two")
    if kind == "multi_label_classification":
        raise UserError(f"{name} gives a text several labels at once; an audit needs one label for each text")


def _known(attention: str) -> None:
    if attention not in LOOKS:
        raise unknown("attention", attention, LOOKS)


def _name(network: Any) -> str:
    """What it was loaded from: a hub id, or a folder's name without its path."""
    given = str(getattr(network, "name_or_path", "") or getattr(network.config, "_name_or_path", ""))
    if not given:
        return type(network).__name__
    return Path(given).name if Path(given).is_absolute() or Path(given).exists() else given
