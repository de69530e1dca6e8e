"""Any sequence classifier of the transformers library: from a folder, the hub, a live pair or a pipeline.

Weights are read from .safetensors only, and no code is ever loaded from a hub.  A live model is the user's: what is
examined is a twin that shares its weights and nothing else, so that its configuration, mode and hooks stay as they are.
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
from torch import nn

from steadygaze.encode.transformer import limit, plain, read_config, readable
from steadygaze.errors import UserError, unknown
from steadygaze.store import fits
from steadygaze.subject import templates
from steadygaze.subject.looking import LOOKS
from steadygaze.subject.network import Attentive, Network
from steadygaze.subject.subject import Subject
from steadygaze.subject.trial import check, tried
from steadygaze.tokens.pieces import load_pieces
from steadygaze.tokens.tokenizer import read_engine
from steadygaze.train.device import best

HEAD = "ForSequenceClassification"
"""How the library calls its classifiers."""
TYPES = "token_type_ids"
TRIAL = "This is a text of a few words."
UNBOUNDED = 512
"""Tokens read by a network that has no limit of its own."""


def from_folder(folder: Path, name: str, device: str, attention: str) -> Subject:
    _known(attention)
    config = read_config(folder, "classifier")
    _single_label(config, name)
    if not any(HEAD in architecture for architecture in config.architectures or ()):
        found = ", ".join(config.architectures or ["no architecture"])
        raise UserError(f"{name} is no classifier: its config.json names {found}, and a classifier would be a …{HEAD}")
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"{name} has no .safetensors weights; other formats can run code when they are opened")
    pieces = load_pieces(folder, max_length=_limit(config))
    engine = read_engine(pieces.to_json(), f"the tokenizer of {name}")
    network = _load(folder, name).to(best(device))
    return _subject(network, Written(engine, pieces.pad_id or None, _typed(folder)), name, attention)


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
    return _subject(_twin(network), Written(engine, tokenizer.pad_token_id, typed), name, attention)


def from_pipeline(pipeline: Any, attention: str) -> Subject:
    if pipeline.task not in ("text-classification", "sentiment-analysis"):
        raise UserError(f"a pipeline for {pipeline.task} classifies no texts; one for text-classification does")
    return from_live(pipeline.model, pipeline.tokenizer, attention)


def fingerprint(network: nn.Module) -> str:
    """SHA-256 of the weights, of whatever precision."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        flat = value.detach().cpu().contiguous().reshape(-1)
        digest.update(name.encode() + flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Written:
    """How texts are to be written for a network."""

    engine: Tokenizer
    pad_id: int | None
    typed: bool
    """Whether the network is told which part of a pair is the question."""


def _subject(network: Any, written: Written, name: str, attention: str) -> Subject:
    config, engine = network.config, written.engine
    padding = _padding(config, written.pad_id)
    config._attn_implementation = "eager"  # the others show no attention
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = padding  # some read no two texts at once without, and never look at it
    tokens = templates.single(engine, most=_limit(config), pad_id=padding)
    fits(tokens.size, getattr(config, "vocab_size", None), Path(name))
    pair = templates.template(engine)
    pairs = None if pair is None else templates.paired(engine, pair, most=_limit(config), pad_id=padding)
    ids = torch.from_numpy(tokens.encode([TRIAL]).ids).long().to(network.device)
    ids = ids[ids != padding].unsqueeze(0)
    with _quiet():
        found = tried(network, ids)
        kind = Attentive if found.attentive else Network
        model = kind(network, padding, found.read, attention, pair.question_type if pair and written.typed else 0)
        check(model, ids)
    return Subject(
        name=name,
        kind=f"a Hugging Face classifier ({config.model_type})",
        model=model.eval(),
        tokens=tokens,
        classes=[config.id2label[i] for i in range(config.num_labels)],
        pair=False if pair is None else None,
        fingerprint=fingerprint(network),
        facts={"architecture": type(network).__name__, "attention": attention if found.attentive else "none shown"},
        pairs=pairs,
    )


def _load(folder: Path, name: str) -> Any:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    with readable(folder, "classifier"), _quiet():
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
        with _quiet():
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception:  # what it needs beyond tokenizer.json, we do not
        return True
    return TYPES in tokenizer.model_input_names


def _twin(network: Any) -> Any:
    """The same weights, not copied; everything else its own."""
    shared = [*network.parameters(), *network.buffers()]
    return copy.deepcopy(network, {id(tensor): tensor for tensor in shared})


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the library's warnings: of what is missing or odd we say ourselves what follows from it."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def _single_label(config: Any, name: str) -> None:
    kind = getattr(config, "problem_type", None)
    if kind == "regression" or config.num_labels < 2:
        raise UserError(f"{name} predicts a number (regression); an audit needs classes, at least two")
    if kind == "multi_label_classification":
        raise UserError(f"{name} gives a text several labels at once; an audit needs one label for each text")


def _known(attention: str) -> None:
    if attention not in LOOKS:
        raise unknown("attention", attention, LOOKS)


def _limit(config: Any) -> int:
    try:
        most = limit(config)
    except NotImplementedError:  # one of the library's ways of saying that there is none; another is −1
        return UNBOUNDED
    return most if most > 0 else UNBOUNDED


def _padding(config: Any, pad_id: int | None) -> int:
    """The configuration's, the tokenizer's, or the end of a text."""
    size = int(getattr(config, "vocab_size", 0) or 0)
    for one in (getattr(config, "pad_token_id", None), pad_id, getattr(config, "eos_token_id", None)):
        if isinstance(one, int) and 0 <= one < size:
            return one
    return 0


def _name(network: Any) -> str:
    """What it was loaded from: a hub id, or a folder's name without its path."""
    given = str(getattr(network, "name_or_path", "") or getattr(network.config, "_name_or_path", ""))
    if not given:
        return type(network).__name__
    return Path(given).name if Path(given).is_absolute() or Path(given).exists() else given
