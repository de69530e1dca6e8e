"""Any sequence classifier of the transformers library: from a folder, the hub, a live pair or a pipeline.

Weights are read from .safetensors only, and no code is ever loaded from a hub.  A live model is the user's: what is
examined is a twin that shares its weights and nothing else, so that its configuration, mode and hooks stay as they are.

A network of the transformers library and its tokenizer, put together to a Subject.
"""

import copy
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from steadygaze.adapters import transformer_checks
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.transformer_checks import check_network, supports_fused_attention, try_network
from steadygaze.adapters.transformer_network import LOOKS, AttentionTransformerModel, ForwardOptions, TransformerModel
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.tensor_files import refuse_non_finite
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.text_tokenizer import read_engine
from steadygaze.estimator.model_folder import matches_layout
from steadygaze.models.encoders.pretrained import load_network, read_config
from steadygaze.models.encoders.transformer import limit
from steadygaze.training.device import best_device

TRIAL = "This is a text of a few words."
UNBOUNDED = 512
"""Tokens read by a network that has no limit of its own."""


@dataclass(frozen=True)
class TokenizerFiles:
    """How texts are to be written for a network."""

    engine: Tokenizer
    pad_id: int | None
    typed: bool
    """Whether the network is told which part of a pair is the question."""


def assemble(network: Any, written: TokenizerFiles, name: str, attention: str) -> ModelAdapter:
    config, engine = network.config, written.engine
    refuse_non_finite(network.state_dict(), name)
    padding = _padding(config, written.pad_id)
    config._attn_implementation = "eager"  # the others show no attention
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = padding  # some read no two texts at once without, and never look at it
    tokens = transformer_checks.single(engine, most=longest(config), pad_id=padding)
    matches_layout(tokens.size, len(network.get_input_embeddings().weight), Path(name))
    pair = transformer_checks.template(engine)
    pairs = None if pair is None else transformer_checks.paired(engine, pair, most=longest(config), pad_id=padding)
    asked = ForwardOptions(padding, attention, pair.question_type if pair and written.typed else 0)
    model = _model(network, asked, torch.from_numpy(tokens.encode([TRIAL]).ids).long())
    shown = attention if "attention" in model.capabilities else "none shown"
    return ModelAdapter(
        name=name,
        kind=f"a Hugging Face classifier ({config.model_type})",
        model=model,
        tokens=tokens,
        classes=_classes(config, name),
        pair=False if pairs is None else None,
        fingerprint=fingerprint(network),
        facts={"architecture": type(network).__name__, "attention": shown},
        pairs=pairs,
    )


def fingerprint(network: nn.Module) -> str:
    """SHA-256 of the weights, of whatever precision."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        flat = value.detach().cpu().contiguous().reshape(-1)
        digest.update(name.encode() + flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def longest(config: Any) -> int:
    """How many tokens it can read, special ones included."""
    try:
        most = limit(config)
    except NotImplementedError:  # one of the library's ways of saying that there is none; another is −1
        return UNBOUNDED
    return most if most > 0 else UNBOUNDED


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's warnings: of what is missing or odd we say ourselves what follows from it."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _model(network: Any, asked: ForwardOptions, trial: Tensor) -> TransformerModel:
    """In evaluation mode, once it has shown by these ids (T,) how it answers."""
    ids = trial[trial != asked.padding].unsqueeze(0).to(network.device)
    with quiet():
        found = try_network(network, ids)
        model = (AttentionTransformerModel if found.attentive else TransformerModel)(network, asked, found.read)
        check_network(model, ids)
        model.fused = supports_fused_attention(model, ids)
    return model.eval()


def _classes(config: Any, name: str) -> list[Label]:
    """The labels in the order of the logits."""
    names = config.id2label if isinstance(config.id2label, dict) else {}
    labels: list[Label] = [label for i in range(len(names)) if isinstance(label := names.get(i), str | int)]
    if len(labels) != config.num_labels:
        raise UserError(f"{name}: id2label in config.json must name each of the classes 0 to {config.num_labels - 1}")
    return labels


def _padding(config: Any, pad_id: int | None) -> int:
    """The configuration's, the tokenizer's, or the end of a text."""
    size = int(getattr(config, "vocab_size", 0) or 0)
    for one in (getattr(config, "pad_token_id", None), pad_id, getattr(config, "eos_token_id", None)):
        if isinstance(one, int) and 0 <= one < size:
            return one
    return 0


HEAD = "ForSequenceClassification"
"""How the library calls its classifiers."""
TYPES = "token_type_ids"


def from_folder(folder: Path, name: str, device: str, attention: str) -> ModelAdapter:
    _known(attention)
    config = read_config(folder, "classifier")
    _single_label(config, name)
    if not any(HEAD in architecture for architecture in config.architectures or ()):
        found = ", ".join(config.architectures or ["no architecture"])
        raise UserError(f"{name} is no classifier: its config.json names {found}, and a classifier would be a …{HEAD}")
    pieces = load_subword_tokenizer(folder, max_length=longest(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    network = _load(folder, name).to(best_device(device))
    return assemble(network, TokenizerFiles(engine, pieces.pad_id or None, _typed(folder, config)), name, attention)


def from_live(network: Any, tokenizer: Any, attention: str) -> ModelAdapter:
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
    return assemble(_twin(network), TokenizerFiles(engine, tokenizer.pad_token_id, typed), name, attention)


def from_pipeline(pipeline: Any, attention: str) -> ModelAdapter:
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

    values = read_object_or_empty(folder / "tokenizer_config.json")
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
