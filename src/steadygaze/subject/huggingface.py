"""Any sequence classifier of the transformers library: from a folder, the hub, a live pair or a pipeline.

Weights are read from .safetensors only, and no code is ever loaded from a hub.  A live model is the user's: what is
examined is a twin that shares its weights and nothing else, so that its configuration, mode and hooks stay as they are.
"""

import copy
from pathlib import Path
from typing import Any

from steadygaze.encode.pretrained import load_network, read_config
from steadygaze.errors import UserError, unknown
from steadygaze.foreign_files import peek
from steadygaze.subject.assemble import Written, assemble, longest
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
    pieces = load_pieces(folder, max_length=longest(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    network = _load(folder, name).to(best(device))
    return assemble(network, Written(engine, pieces.pad_id or None, _typed(folder, config)), name, attention)


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
    engine = read_engine(tokenizer.backend_tokenizer.to_str(), f"the tokenizer of {name}")
    typed = TYPES in tokenizer.model_input_names
    return assemble(_twin(network), Written(engine, tokenizer.pad_token_id, typed), name, attention)


def from_pipeline(pipeline: Any, attention: str) -> Subject:
    if pipeline.task not in ("text-classification", "sentiment-analysis"):
        raise UserError(f"a pipeline for {pipeline.task} classifies no texts; one for text-classification does")
    return from_live(pipeline.model, pipeline.tokenizer, attention)


def _load(folder: Path, name: str) -> Any:
    from transformers import AutoModelForSequenceClassification

    network, missing = load_network(
        folder, AutoModelForSequenceClassification, "classifier", attn_implementation="eager"
    )
    if missing:
        raise UserError(f"{name} is not a trained classifier: its weights lack {missing[0]}")
    return network


def _typed(folder: Path, config: Any) -> bool:
    """Whether the tokenizer of this folder tells a network the type of each token; where that is not known: yes."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

    values = peek(folder / "tokenizer_config.json")
    given = values.get("model_input_names")
    if not isinstance(given, list):
        name = values.get("tokenizer_class") or TOKENIZER_MAPPING_NAMES.get(config.model_type)
        given = getattr(tokenizer_class_from_name(str(name)), "model_input_names", [TYPES])
    return TYPES in given


def _twin(network: Any) -> Any:
    """The same weights, not copied; everything else its own."""
    shared = [*network.parameters(), *network.buffers()]
    return copy.deepcopy(network, {id(tensor): tensor for tensor in shared})


def _single_label(config: Any, name: str) -> None:
    kind = getattr(config, "problem_type", None)
    if kind == "regression" or config.num_labels < 2:
        raise UserError(f"{name} predicts a number (regression); an audit needs classes, at least two")
    if kind not in (None, "single_label_classification", "multi_label_classification"):
        raise UserError(f"{name}: problem_type is {kind!r:.80}; an audit needs a single_label_classification")
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
