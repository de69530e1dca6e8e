"""A network of the transformers library and its tokenizer, put together to a Subject."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from steadygaze.encode.transformer import limit
from steadygaze.errors import UserError
from steadygaze.store import fits
from steadygaze.subject import templates
from steadygaze.subject.network import Asked, Attentive, Network
from steadygaze.subject.subject import Subject
from steadygaze.subject.trial import check, fused, tried
from steadygaze.tensor_files import refuse_non_finite
from steadygaze.types import Label

TRIAL = "This is a text of a few words."
UNBOUNDED = 512
"""Tokens read by a network that has no limit of its own."""


@dataclass(frozen=True)
class Written:
    """How texts are to be written for a network."""

    engine: Tokenizer
    pad_id: int | None
    typed: bool
    """Whether the network is told which part of a pair is the question."""


def assemble(network: Any, written: Written, name: str, attention: str) -> Subject:
    config, engine = network.config, written.engine
    refuse_non_finite(network.state_dict(), name)
    padding = _padding(config, written.pad_id)
    config._attn_implementation = "eager"  # the others show no attention
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = padding  # some read no two texts at once without, and never look at it
    tokens = templates.single(engine, most=longest(config), pad_id=padding)
    fits(tokens.size, len(network.get_input_embeddings().weight), Path(name))
    pair = templates.template(engine)
    pairs = None if pair is None else templates.paired(engine, pair, most=longest(config), pad_id=padding)
    asked = Asked(padding, attention, pair.question_type if pair and written.typed else 0)
    model = _model(network, asked, torch.from_numpy(tokens.encode([TRIAL]).ids).long())
    shown = attention if "weights" in model.abilities else "none shown"
    return Subject(
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


def _model(network: Any, asked: Asked, trial: Tensor) -> Network:
    """In evaluation mode, once it has shown by these ids (T,) how it answers."""
    ids = trial[trial != asked.padding].unsqueeze(0).to(network.device)
    with quiet():
        found = tried(network, ids)
        model = (Attentive if found.attentive else Network)(network, asked, found.read)
        check(model, ids)
        model.fused = fused(model, ids)
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
