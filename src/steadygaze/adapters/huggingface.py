"""Sequence classifiers of the transformers library: from a folder, the hub, (model, tokenizer) or a pipeline.

Weights are read from .safetensors only, and no code is loaded from the hub.  A model in memory is copied with shared
weights, so that its configuration, mode and hooks do not change.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from steadygaze.adapters import transformer_checks
from steadygaze.adapters.encoder_decoder import EncoderDecoderModel
from steadygaze.adapters.model_adapter import TRIAL, ModelAdapter
from steadygaze.adapters.prompt import USAGE, Prompt, PromptTokenizer
from steadygaze.adapters.prompted_model import PromptedModel
from steadygaze.adapters.transformer_checks import (
    check_network,
    supports_fused_attention,
    tokens_after_end,
    try_network,
)
from steadygaze.adapters.transformer_network import AGGREGATIONS, ForwardOptions, TransformerModel, configurations
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.tensor_files import refuse_non_finite
from steadygaze.core.types import Label, Task
from steadygaze.core.untrusted_files import digest_json, read_object_or_empty
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.text_tokenizer import Tokens, read_engine
from steadygaze.estimator.model_folder import fingerprint, matches_layout
from steadygaze.models.encoders.pretrained import load_network, read_config
from steadygaze.models.encoders.transformer import limit
from steadygaze.models.encoders.weight_options import WeightOptions
from steadygaze.models.inference import best_device

UNBOUNDED = 512
"""Tokens per text for a network without a limit."""


@dataclass(frozen=True)
class TokenizerFiles:
    """The tokenizer of a network."""

    engine: Tokenizer
    pad_id: int | None
    typed: bool
    """True if the network reads token types, which mark the question of a pair."""


def assemble(
    network: Any, files: TokenizerFiles, name: str, attention: str, prompt: Prompt | None = None
) -> ModelAdapter:
    config, engine = network.config, files.engine
    task: Task = "classification" if prompt is not None else _task(config, name)
    padding = _padding(config, files.pad_id)
    for part in configurations(network):
        part._attn_implementation = "eager"  # other implementations return no attention
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = padding  # some networks need it for batches
    if prompt is not None:
        return _prompted(network, engine, name, ForwardOptions(padding, attention), prompt)
    tokens = transformer_checks.single(engine, token_limit=longest(config), pad_id=padding)
    matches_layout(tokens.size, len(network.get_input_embeddings().weight), Path(name))
    pair = transformer_checks.template(engine)
    pairs = None
    if pair is not None:
        pairs = transformer_checks.paired(engine, pair, token_limit=longest(config), pad_id=padding)
    options = ForwardOptions(padding, attention, pair.question_type if pair and files.typed else 0)
    model = _tested(network, options, tokens, partial(_untested, network, options))
    return ModelAdapter(
        name=name,
        kind=f"a Hugging Face {NOUNS[task]} ({config.model_type})",
        task=task,
        model=model,
        tokens=tokens,
        classes=_classes(config, name),
        pair=False if pairs is None else None,
        fingerprint=fingerprint(network),
        facts=_facts(model),
        pairs=pairs,
    )


def _prompted(network: Any, engine: Tokenizer, name: str, options: ForwardOptions, prompt: Prompt) -> ModelAdapter:
    config = network.config
    tokens = PromptTokenizer(engine, prompt, token_limit=longest(config), pad_id=options.padding)
    matches_layout(tokens.size, len(network.get_input_embeddings().weight), Path(name))

    def untested(ids: Tensor) -> TransformerModel:
        return PromptedModel(network, options, tokens.label_ids, try_network(network, ids).attentive)

    model = _tested(network, options, tokens, untested)
    return ModelAdapter(
        name=name,
        kind=f"a prompted language model ({config.model_type})",
        model=model,
        tokens=tokens,
        classes=list(prompt.label_words),
        pair=False,
        fingerprint=digest_json([[fingerprint(network), prompt.facts]]),
        facts={**_facts(model), **prompt.facts},
    )


def _facts(model: TransformerModel) -> dict[str, str]:
    attention = model.attention if "attention" in model.capabilities else "none shown"
    return {"architecture": type(model.network).__name__, "attention": attention}


def longest(config: Any) -> int:
    """Most tokens per text, special tokens included."""
    try:
        token_limit = limit(config)
    except NotImplementedError:  # some networks have no limit; others return −1
        return UNBOUNDED
    return token_limit if token_limit > 0 else UNBOUNDED


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the library's warnings; this package reports problems itself."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _tested(
    network: Any, options: ForwardOptions, tokens: Tokens, make: Callable[[Tensor], TransformerModel]
) -> TransformerModel:
    """The model in evaluation mode, after a trial with one text."""
    trial = torch.from_numpy(tokens.encode([TRIAL]).ids).long()
    ids = trial[trial != options.padding].unsqueeze(0).to(network.device)
    with quiet():
        model = make(ids)
        check_network(model, ids)
        model.fused = supports_fused_attention(model, ids)
    return model.eval()


def _untested(network: Any, options: ForwardOptions, ids: Tensor) -> TransformerModel:
    if network.config.is_encoder_decoder:
        return EncoderDecoderModel(network, options, tokens_after_end(network, ids))
    trial_result = try_network(network, ids)
    return TransformerModel(network, options, trial_result.read, trial_result.attentive)


def _classes(config: Any, name: str) -> list[Label]:
    """The labels in the order of the logits."""
    names = config.id2label if isinstance(config.id2label, dict) else {}
    labels: list[Label] = [label for i in range(len(names)) if isinstance(label := names.get(i), str | int)]
    if len(labels) != config.num_labels:
        raise UserError(f"{name}: id2label in config.json must name each of the classes 0 to {config.num_labels - 1}")
    return ["value"] if labels == ["LABEL_0"] else labels


def _padding(config: Any, pad_id: int | None) -> int:
    """Padding id of the configuration or the tokenizer, or the end-of-text id."""
    size = int(getattr(config, "vocab_size", 0) or 0)
    for candidate in (getattr(config, "pad_token_id", None), pad_id, getattr(config, "eos_token_id", None)):
        if isinstance(candidate, int) and 0 <= candidate < size:
            return candidate
    return 0


HEAD, IMAGE_HEAD = "ForSequenceClassification", "ForImageClassification"
"""Class name suffixes of the library's classifiers of texts and of images."""
PROBLEM_TYPES: dict[str | None, Task] = {
    None: "classification",
    "single_label_classification": "classification",
    "multi_label_classification": "multi-label",
    "regression": "regression",
}
"""problem_type of a configuration; a network with one output is a regression model."""
NOUNS: dict[Task, str] = {
    "classification": "classifier",
    "multi-label": "multi-label classifier",
    "regression": "regression model",
}
LANGUAGE_MODEL_HEADS = ("ForCausalLM", "LMHeadModel")
"""Class name suffixes of its causal language models."""
TYPES = "token_type_ids"
STORED_WEIGHTS = WeightOptions()


def from_folder(
    folder: Path,
    name: str,
    device: str,
    attention: str,
    prompt: Prompt | None = None,
    weights_as: WeightOptions = STORED_WEIGHTS,
) -> ModelAdapter:
    _check_attention(attention)
    config = read_config(folder, "classifier" if prompt is None else "language model")
    architectures = ", ".join(config.architectures or ["no architecture"])
    _check_head(config.architectures or (), name, prompt, f"its config.json names {architectures}; ")
    pieces = load_subword_tokenizer(folder, max_length=longest(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    network = _load(folder, name, prompt, weights_as, best_device(device))
    files = TokenizerFiles(engine, pieces.pad_id or None, _typed(folder, config))
    return assemble(network, files, name, attention, prompt)


def _check_head(names: Iterable[str], subject: str, prompt: Prompt | None, reason: str = "") -> None:
    """Refuse a network without the head that is needed."""
    names = list(names)
    writes = any(head in name for name in names for head in LANGUAGE_MODEL_HEADS)
    if prompt is not None and not writes:
        raise UserError(
            f"{subject} is not a causal language model: {reason}a prompt needs a …{LANGUAGE_MODEL_HEADS[0]}"
        )
    if any(IMAGE_HEAD in name for name in names):
        raise UserError(
            f"{subject} classifies images: {reason}this call is for texts.  Load the network with transformers, for "
            "sg.explain_images(network, images, classes=...)"
        )
    if prompt is None and not any(HEAD in name for name in names):
        more = f", or, for a language model, prompt= and label_words= (--prompt, --label-word): {USAGE}"
        raise UserError(f"{subject} is not a classifier: {reason}a …{HEAD} is needed{more if writes else ''}")


def from_live(network: Any, tokenizer: Any, attention: str, prompt: Prompt | None = None) -> ModelAdapter:
    """Adapter of a model and its tokenizer in memory, on their device."""
    _check_attention(attention)
    name = _name(network)
    refuse_non_finite(network.state_dict(), name)
    kinds = [kind.__name__ for kind in type(network).__mro__]
    _check_head(kinds, f"a {type(network).__name__}", prompt)
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"{type(tokenizer).__name__} is not a fast tokenizer of the transformers library, and others do not return "
            "the position of each token; load it with AutoTokenizer.from_pretrained(…)"
        )
    engine = read_engine(tokenizer.backend_tokenizer.to_str(), f"the tokenizer of {name}")
    typed = TYPES in tokenizer.model_input_names
    tensors = [*network.parameters(), *network.buffers()]
    twin = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})  # shares the weights
    return assemble(twin, TokenizerFiles(engine, tokenizer.pad_token_id, typed), name, attention, prompt)


def from_pipeline(pipeline: Any, attention: str, prompt: Prompt | None = None) -> ModelAdapter:
    if pipeline.task not in ("text-classification", "sentiment-analysis") and prompt is None:
        raise UserError(f"a pipeline for {pipeline.task} does not classify texts; use one for text-classification")
    return from_live(pipeline.model, pipeline.tokenizer, attention, prompt)


def _load(folder: Path, name: str, prompt: Prompt | None, weights_as: WeightOptions, device: torch.device) -> Any:
    import transformers

    auto, kind = transformers.AutoModelForSequenceClassification, "classifier"
    if prompt is not None:
        auto, kind = transformers.AutoModelForCausalLM, "language model"
    network, missing = load_network(folder, auto, kind, weights_as, device, attn_implementation="eager")
    if missing:
        raise UserError(f"{name} is not a trained {kind}: its weights lack {missing[0]}")
    return network


def _typed(folder: Path, config: Any) -> bool:
    """True if the tokenizer of this folder returns token types, or if that is unknown."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

    values = read_object_or_empty(folder / "tokenizer_config.json")
    inputs = values.get("model_input_names")
    if not isinstance(inputs, list):
        name = values.get("tokenizer_class") or TOKENIZER_MAPPING_NAMES.get(config.model_type)
        inputs = getattr(tokenizer_class_from_name(str(name)), "model_input_names", [TYPES])
    return TYPES in inputs


def _task(config: Any, name: str) -> Task:
    kind = getattr(config, "problem_type", None)
    if not isinstance(kind, str | None) or kind not in PROBLEM_TYPES:
        raise UserError(f"{name}: problem_type is {kind!r:.80}; known ones are {', '.join(map(str, PROBLEM_TYPES))}")
    return "regression" if config.num_labels < 2 and kind != "multi_label_classification" else PROBLEM_TYPES[kind]


def _check_attention(attention: str) -> None:
    if attention not in AGGREGATIONS:
        raise unknown("attention", attention, AGGREGATIONS)


def _name(network: Any) -> str:
    """Source of the network: a hub id, or the name of a folder without its path."""
    source = str(getattr(network, "name_or_path", "") or getattr(network.config, "_name_or_path", ""))
    if not source:
        return type(network).__name__
    return Path(source).name if Path(source).is_absolute() or Path(source).exists() else source
