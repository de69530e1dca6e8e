"""Models of the transformers library from a folder or the hub, with or without a LoRA adapter of peft.

Weights are read from .safetensors only, and no code is loaded from the hub.  Synonym groups of `StableTrainer` in
synonym_groups.json replace words before a text is split into pieces.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from steadygaze.adapters.chat_template import of_folder
from steadygaze.adapters.huggingface import TYPES, TokenizerFiles, assemble, check_attention, check_head, longest
from steadygaze.adapters.load_options import LoadOptions
from steadygaze.adapters.lora_folder import LoraFolder, is_adapter, read_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import read_object_or_empty, read_text
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.text_tokenizer import read_engine
from steadygaze.estimator.model_folder import GROUPS as GROUPS
from steadygaze.models.encoders.pretrained import inside, load_network, read_config
from steadygaze.models.inference import best_device


def from_folder(folder: Path, name: str, options: LoadOptions) -> ModelAdapter:
    check_attention(options.attention)
    kind = "classifier" if options.prompt is None else "language model"
    adapter = read_adapter(folder) if is_adapter(folder) else None
    if adapter is None and options.base_model is not None:
        raise UserError(f"base_model= (--base-model) is for a LoRA adapter, and {name} is not one: leave it out")
    base = folder if adapter is None else adapter.base(options.base_model)
    config = read_config(base, kind)
    if adapter is None or adapter.classes is None:
        architectures = ", ".join(config.architectures or ["no architecture"])
        check_head(config.architectures or (), name, options.prompt, f"its config.json names {architectures}; ")
    network = _load(base, name, config, adapter, options)
    words = folder if (folder / "tokenizer.json").exists() else base
    pieces = load_subword_tokenizer(words, max_length=longest(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    files = TokenizerFiles(engine, pieces.pad_id or None, _typed(words, config), of_folder(words))
    facts = {} if adapter is None else {"adapter": f"LoRA, r = {adapter.values.get('r')}", "base model": base.name}
    if options.prompt is None and (folder / GROUPS).exists():
        groups = SynonymGroups.from_json(read_text(inside(folder, GROUPS)), folder / GROUPS)
        files, facts = replace(files, synonym_groups=groups), {**facts, "synonym groups": groups.summary}
    return assemble(network, files, name, options.attention, options.prompt, facts, options.votes)


def _load(base: Path, name: str, config: Any, adapter: LoraFolder | None, options: LoadOptions) -> Any:
    import transformers

    auto, kind = transformers.AutoModelForSequenceClassification, "classifier"
    if options.prompt is not None:
        auto, kind = transformers.AutoModelForCausalLM, "language model"
    changes = {}
    if adapter is not None and adapter.classes not in (None, config.num_labels):
        changes = {"num_labels": adapter.classes}
    device = best_device(options.device)
    network, missing = load_network(base, auto, kind, options.weights, device, changes, attn_implementation="eager")
    missing = [weight for weight in missing if adapter is None or not adapter.completes(weight)]
    if missing:
        raise UserError(f"{name} is not a trained {kind}: its weights lack {missing[0]}")
    whole = network if adapter is None else adapter.applied(network)
    return whole.requires_grad_(False)  # gradients of word vectors then keep fewer activations


def _typed(folder: Path, config: Any) -> bool:
    """True if the tokenizer of this folder returns token types, or if that is unknown."""
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

    values = read_object_or_empty(folder / "tokenizer_config.json")
    inputs = values.get("model_input_names")
    if not isinstance(inputs, list):
        name = values.get("tokenizer_class") or TOKENIZER_MAPPING_NAMES.get(config.model_type)
        inputs = getattr(tokenizer_class_from_name(str(name)), "model_input_names", [TYPES])
    return TYPES in inputs
