"""Sequence classifiers of the transformers library: (model, tokenizer) or a pipeline, with or without peft.

A model in memory is copied with shared weights, so that its configuration, mode and hooks do not change.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from steadygaze.adapters import transformer_checks
from steadygaze.adapters.chat_template import of_tokenizer
from steadygaze.adapters.encoder_decoder import EncoderDecoderModel
from steadygaze.adapters.hosted.label_reading import LabelWords
from steadygaze.adapters.model_adapter import TRIAL, ModelAdapter
from steadygaze.adapters.prompt import FIELD, USAGE, ChatTemplate, Prompt
from steadygaze.adapters.prompt_tokenizer import PromptTokenizer, SegmentTokenizer
from steadygaze.adapters.prompted_model import PromptedModel, supports_shared_prompt
from steadygaze.adapters.transformer_checks import (
    check_network,
    supports_fused_attention,
    tokens_after_end,
    try_network,
)
from steadygaze.adapters.transformer_network import AGGREGATIONS, ForwardOptions, TransformerModel, configurations
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.tensor_files import refuse_non_finite
from steadygaze.core.types import Batch, Label, Task
from steadygaze.core.untrusted_files import digest_json
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.text_tokenizer import Tokens, read_engine
from steadygaze.estimator.model_folder import fingerprint, matches_layout
from steadygaze.models.encoders.transformer import limit
from steadygaze.models.inference import inference

UNBOUNDED = 512
"""Tokens per text for a network without a limit."""
NO_FACTS: Mapping[str, str] = {}


@dataclass(frozen=True)
class TokenizerFiles:
    """The tokenizer of a network."""

    engine: Tokenizer
    pad_id: int | None
    typed: bool
    """True if the network reads token types, which mark the question of a pair."""
    chat_template: ChatTemplate | None = None
    synonym_groups: SynonymGroups | None = None


def assemble(
    network: Any,
    files: TokenizerFiles,
    name: str,
    attention: str,
    prompt: Prompt | None = None,
    facts: Mapping[str, str] = NO_FACTS,
    votes: int | None = None,
) -> ModelAdapter:
    """`facts`: further facts about the model, for the report.  `votes`: with a prompt, sampled answers per text."""
    config, engine = network.config, files.engine
    task: Task = "classification" if prompt is not None else _task(config, name)
    padding = _padding(config, files.pad_id)
    for part in configurations(network):
        part._attn_implementation = "eager"  # other implementations return no attention
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = padding  # some networks need it for batches
    if prompt is not None:
        make = _prompted if votes is None else partial(_sampled, votes=votes)
        return make(network, files, name, ForwardOptions(padding, attention), prompt, facts)
    groups = files.synonym_groups
    tokens = transformer_checks.single(engine, token_limit=longest(config), pad_id=padding, synonym_groups=groups)
    matches_layout(tokens.size, len(network.get_input_embeddings().weight), Path(name))
    pair = transformer_checks.template(engine)
    pairs = None
    if pair is not None:
        pairs = transformer_checks.paired(
            engine, pair, token_limit=longest(config), pad_id=padding, synonym_groups=groups
        )
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
        facts={**_facts(model), **facts},
        pairs=pairs,
    )


def _prompted(
    network: Any, files: TokenizerFiles, name: str, options: ForwardOptions, prompt: Prompt, facts: Mapping[str, str]
) -> ModelAdapter:
    config, words = network.config, list(prompt.label_words.values())
    rendered = prompt.rendered(files.chat_template)
    tokens = PromptTokenizer(files.engine, rendered, words, token_limit=longest(config), pad_id=options.padding)
    matches_layout(tokens.size, len(network.get_input_embeddings().weight), Path(name))

    def untested(ids: Tensor) -> TransformerModel:
        model = PromptedModel(network, options, tokens.label_ids, try_network(network, ids).attentive)
        model.shares_prompt = model.shares_prompt and supports_shared_prompt(model, ids)
        return model

    model = _tested(network, options, tokens, untested)
    assert isinstance(model, PromptedModel)
    if prompt.calibrate:
        model.offset = _scores_of_nothing(model, tokens)
    written = {"prompt": rendered.fill(FIELD)} if prompt.chat else {}
    return ModelAdapter(
        name=name,
        kind=f"a prompted language model ({config.model_type})",
        model=model,
        tokens=tokens,
        classes=list(prompt.label_words),
        pair=False,
        fingerprint=digest_json([[fingerprint(network), prompt.facts]]),
        facts={**_facts(model), **facts, **prompt.facts, **written},
        segments=SegmentTokenizer(tokens),
    )


def _sampled(
    network: Any,
    files: TokenizerFiles,
    name: str,
    options: ForwardOptions,
    prompt: Prompt,
    facts: Mapping[str, str],
    *,
    votes: int,
) -> ModelAdapter:
    from steadygaze.adapters.black_box import black_box
    from steadygaze.adapters.sampled_model import SampledModel

    if prompt.calibrate:
        raise UserError("calibrate= (--calibrate) needs scores, and votes= (--votes) samples answers: leave out one")
    rendered, words = prompt.rendered(files.chat_template), prompt.label_words
    limit = longest(network.config)
    tokens = PromptTokenizer(files.engine, rendered, list(words.values()), token_limit=limit, pad_id=options.padding)
    model = SampledModel(network.eval(), tokens, files.engine, LabelWords.of(words), votes, options.padding)
    adapter = black_box(model, list(words), name)
    own = {"architecture": type(network).__name__, **facts, **model.facts, **prompt.facts}
    return replace(adapter, kind=f"a sampled language model ({network.config.model_type})", pair=False, facts=own)


def _scores_of_nothing(model: PromptedModel, tokens: PromptTokenizer) -> Tensor:
    """Scores of an empty text.  (1,C)"""
    ids = torch.from_numpy(tokens.encode([""]).ids).long().unsqueeze(0).to(model.device)
    present = torch.ones_like(ids, dtype=torch.bool)
    with inference(model):
        logits: Tensor = model(Batch(ids, present, torch.zeros_like(present), torch.arange(1))).logits
    return logits


def _facts(model: TransformerModel) -> dict[str, str]:
    network = model.network
    facts = {
        "architecture": type(network).__name__,
        "attention": model.attention if "attention" in model.capabilities else "none shown",
    }
    quantization = getattr(network.config, "quantization_config", None)
    if quantization is not None:
        method = getattr(quantization, "quant_method", type(quantization).__name__)
        facts["quantization"] = str(getattr(method, "value", method))
    if network.dtype != torch.float32:
        facts["precision"] = str(network.dtype).removeprefix("torch.")
    return facts


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


def check_head(names: Iterable[str], subject: str, prompt: Prompt | None, reason: str = "") -> None:
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


def from_live(
    network: Any, tokenizer: Any, attention: str, prompt: Prompt | None = None, votes: int | None = None
) -> ModelAdapter:
    """Adapter of a model and its tokenizer in memory, on their device."""
    check_attention(attention)
    if hasattr(network, "peft_type") and hasattr(network, "get_base_model"):
        network = _adapted(network)
    name = _name(network)
    refuse_non_finite(network.state_dict(), name)
    kinds = [kind.__name__ for kind in type(network).__mro__]
    check_head(kinds, f"a {type(network).__name__}", prompt)
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            f"{type(tokenizer).__name__} is not a fast tokenizer of the transformers library, and others do not return "
            "the position of each token; load it with AutoTokenizer.from_pretrained(…)"
        )
    engine = read_engine(tokenizer.backend_tokenizer.to_str(), f"the tokenizer of {name}")
    typed = TYPES in tokenizer.model_input_names
    tensors = [*network.parameters(), *network.buffers()]
    twin = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})  # shares the weights
    files = TokenizerFiles(engine, tokenizer.pad_token_id, typed, of_tokenizer(tokenizer))
    return assemble(twin, files, name, attention, prompt, votes=votes)


def _adapted(network: Any) -> Any:
    """The network of a model of peft, with its adapters in place."""
    if getattr(network.active_peft_config, "is_prompt_learning", False):
        raise UserError(
            f"a {type(network).__name__} with {network.active_peft_config.peft_type.value} adds vectors to the text, "
            "which have no words; pass a function texts -> probabilities, to audit it as a black box"
        )
    return network.get_base_model()


def from_pipeline(
    pipeline: Any, attention: str, prompt: Prompt | None = None, votes: int | None = None
) -> ModelAdapter:
    if pipeline.task not in ("text-classification", "sentiment-analysis") and prompt is None:
        raise UserError(f"a pipeline for {pipeline.task} does not classify texts; use one for text-classification")
    return from_live(pipeline.model, pipeline.tokenizer, attention, prompt, votes)


def _task(config: Any, name: str) -> Task:
    kind = getattr(config, "problem_type", None)
    if not isinstance(kind, str | None) or kind not in PROBLEM_TYPES:
        raise UserError(f"{name}: problem_type is {kind!r:.80}; known ones are {', '.join(map(str, PROBLEM_TYPES))}")
    return "regression" if config.num_labels < 2 and kind != "multi_label_classification" else PROBLEM_TYPES[kind]


def check_attention(attention: str) -> None:
    if attention not in AGGREGATIONS:
        raise unknown("attention", attention, AGGREGATIONS)


def _name(network: Any) -> str:
    """Source of the network: a hub id, or the name of a folder without its path."""
    source = str(getattr(network, "name_or_path", "") or getattr(network.config, "_name_or_path", ""))
    if not source:
        return type(network).__name__
    return Path(source).name if Path(source).is_absolute() or Path(source).exists() else source
