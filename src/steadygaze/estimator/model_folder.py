"""A model as a folder: written atomically, read without executing code.

config.json          schema, labels, encoder, technique and its fields, seed, data fingerprint, epochs
model.safetensors    the weights
tokenizer.json       the vocabulary
synonym_groups.json  groups of words with one id; only of a model with synonym groups
training_texts.safetensors  hashes of the training texts, unless the setting text_hashes is false
README.md            a model card

The hashes count the training texts among audited or evaluated texts.  A hash is BLAKE2b of the normalized text (NFKC,
folded case, single spaces), keyed with the fingerprint of the training data.  Texts for validation count as training
texts, because they select the epoch.  With the folder, anyone can test whether a known text was used in training.
A folder without the file is complete.
"""

import dataclasses
import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from steadygaze.core import __version__
from steadygaze.core.atomic_files import recover_folder, unknown_entries
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_new_folder
from steadygaze.core.settings import build, field_names
from steadygaze.core.tensor_files import (
    check_counts,
    layout,
    layout_difference,
    read_layout,
    read_tensors,
    sketch,
    write_network_folder,
)
from steadygaze.core.types import Sentences
from steadygaze.core.untrusted_files import foreign_error, read_json, read_object_or_empty, read_text
from steadygaze.data.batches import Data, placed_data
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.text_tokenizer import Kind, TextTokenizer, read_engine
from steadygaze.data.word_tokenizer import WordTokenizer
from steadygaze.estimator.model_config import SCHEMA, ModelConfig, build_model, contradiction
from steadygaze.estimator.model_health import assess
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.inference import Model, selects
from steadygaze.results.health import Health
from steadygaze.results.model_card import card
from steadygaze.techniques import TECHNIQUES

KINDS: dict[Kind, type[TextTokenizer]] = {kind.kind: kind for kind in (WordTokenizer, PieceTokenizer)}


def read_tokenizer(
    text: str, *, kind: Kind, max_length: int, synonym_groups: SynonymGroups | None = None
) -> TextTokenizer:
    """Read the output of `TextTokenizer.to_json`, or any file of the `tokenizers` library."""
    return KINDS[kind](read_engine(text, "tokenizer.json"), max_length=max_length, synonym_groups=synonym_groups)


WEIGHTS = "model.safetensors"
FILES = ("config.json", WEIGHTS, "tokenizer.json")
GROUPS = "synonym_groups.json"
READER = "reader.safetensors"
"""The independent reader of a rationalizer."""
PREFIX = "reader."
"""Prefix of its tensor names in the model."""
TRAINING_TEXTS = "training_texts.safetensors"
HASH_SIZE = 8
"""Bytes of a hash: a billion pairs of different texts have an equal pair with probability 5e-11."""
HASHES = "hashes"
Hashes = NDArray[np.int64]
CARD = "README.md"
MODEL_KINDS = {
    "image-classifier": "classifies images, and a text classifier is needed here.  In Python load it with "
    "sg.load(folder), and explain it with its explain(images) or with sg.fit_explainer",
    "steadygaze explainer": "is a fitted explainer, not a model: pass it to steadygaze explain MODEL --explainer, "
    "in Python load it with sg.load_explainer",
}
"""Messages for other folders of this package, by the kind in their config.json."""

UNREADABLE = (
    "was trained by the unknown technique {0!r}, and its weights are not those of a plain classifier; if you have the "
    "class, register it with steadygaze.techniques.TECHNIQUES[{0!r}] = {0}"
)


@dataclasses.dataclass(frozen=True)
class SavedModel:
    description: ModelConfig
    model: Model
    tokenizer: TextTokenizer
    training_hashes: Hashes | None = None
    """Sorted hashes of the texts for training and validation; None: not stored."""

    @cached_property
    def health(self) -> Health:
        """Known-bad states, judged by the records of the training and the weights."""
        return assess(self.description, self.model)

    def training_overlap(self, inputs: Sequence[Any]) -> int | None:
        """The number of training texts among these texts or pairs; None: unknown."""
        if self.training_hashes is None:
            return None
        return int(np.isin(hash_texts(inputs, self.description.corpus), self.training_hashes).sum())

    def data(self, texts: Sequence[str], questions: Sequence[str] | None, sentences: Sentences | None = None) -> Data:
        """Encode texts for this model; `sentences`: given sentences, for a model that selects them."""
        if sentences is not None and selects(self.model):
            return placed_data(self.tokenizer.place(texts), whole_words=False, sentences=sentences)
        encoded_questions = None if questions is None else self.tokenizer.encode(questions, question=True)
        return Data(self.tokenizer.encode(texts), encoded_questions)


def hash_texts(inputs: Iterable[Any], key: str) -> Hashes:
    """Hashes of texts or pairs (text, question).  N -> (N,)"""
    secret = key.encode()[:64]
    digests = (hashlib.blake2b(_normalized(item), digest_size=HASH_SIZE, key=secret).digest() for item in inputs)
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


def _normalized(item: Any) -> bytes:
    parts = [item] if isinstance(item, str) else item
    words = (" ".join(unicodedata.normalize("NFKC", part).casefold().split()) for part in parts)
    return "\0".join(words).encode(errors="surrogatepass")


def read_hashes(file: Path) -> Hashes | None:
    """The hashes of a model folder; None: it has none."""
    if not file.exists():
        return None
    stored = read_layout(file)
    if stored.keys() != {HASHES} or len(stored[HASHES][0]) != 1 or stored[HASHES][1] != torch.int64:
        raise UserError(f"{file} is damaged: it must have one list of whole numbers, {HASHES!r}")
    hashes: Hashes = read_tensors(file)[HASHES].numpy()
    return hashes


def fingerprint(model: nn.Module) -> str:
    """SHA-256 of the weights, in any precision."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        flat = value.detach().cpu().contiguous().reshape(-1)
        digest.update(name.encode())
        digest.update(flat.view(torch.uint8).numpy())  # without a copy
    return digest.hexdigest()


def save(folder: Path, saved: SavedModel) -> None:
    """Write the folder; an existing model is replaced, anything else is refused."""
    recover_folder(folder)
    check_model_folder(folder)
    values, state = dataclasses.asdict(saved.description), saved.model.state_dict()
    values["health"] = assess(saved.description, saved.model).to_list()  # the weights may have changed
    reader = {name.removeprefix(PREFIX): value for name, value in state.items() if name.startswith(PREFIX)}
    weights = {name: value for name, value in state.items() if not name.startswith(PREFIX)}
    texts = {"tokenizer.json": saved.tokenizer.to_json(), CARD: card(values).encode(errors="replace").decode()}
    if saved.tokenizer.synonym_groups is not None:
        texts[GROUPS] = saved.tokenizer.synonym_groups.to_json()
    tensors = {**({READER: reader} if reader else {}), WEIGHTS: weights}
    if saved.training_hashes is not None:
        tensors[TRAINING_TEXTS] = {HASHES: torch.from_numpy(saved.training_hashes)}
    write_network_folder(folder, values, tensors, texts)


def export_encoder(folder: Path, saved: SavedModel) -> None:
    """Write the transformer encoder as a Hugging Face folder, which must be new or empty."""
    encoder = saved.model.predictor.encoder if selects(saved.model) else getattr(saved.model, "encoder", None)
    if not isinstance(encoder, Transformer):
        raise UserError(f"the encoder {saved.description.encoder} is not a transformer: use save() instead")
    check_new_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; choose another folder")
    config = {**encoder.config.to_dict(), "architectures": [type(encoder.network).__name__]}
    rules = json.loads(tokenizer_file := saved.tokenizer.to_json())
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": rules["truncation"]["max_length"],
        "pad_token": rules["padding"]["pad_token"],
    }
    texts = {"tokenizer.json": tokenizer_file, "tokenizer_config.json": json.dumps(tokenizer_config) + "\n"}
    write_network_folder(folder, config, {WEIGHTS: encoder.network.state_dict()}, texts)


def check_model_folder(folder: Path) -> None:
    """An output folder may be new, empty, or a steadygaze model."""
    check_new_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if "steadygaze" not in read_object_or_empty(folder / "config.json"):
        raise UserError(f"{folder} exists and is not a steadygaze model; choose another folder")
    if extra := unknown_entries(folder, (*FILES, READER, GROUPS, TRAINING_TEXTS, CARD)):
        raise UserError(f"{folder} contains {extra[0]!r} besides a model, which would be lost; choose another folder")


def check_free_folder(folder: Path) -> None:
    """Raise an error if the folder already has a model."""
    recover_folder(folder)
    if (folder / "config.json").exists():
        raise UserError(f"{folder} already has a model; pass --replace to replace it, or choose another folder")


def load(folder: Path) -> SavedModel:
    recover_folder(folder)
    description, file = _describe(folder), folder / WEIGHTS
    tokenizer = read_tokenizer(
        read_text(folder / "tokenizer.json"),
        kind=description.kind,
        max_length=description.max_length,
        synonym_groups=_read_groups(folder, description),
    )
    if description.network is not None:
        check_counts(description.network, folder / "config.json")
        matches_layout(tokenizer.size, description.network.get("vocab_size"), folder)
    stored_layout = read_layout(file)
    if tokenizer.size > max((max(shape, default=0) for shape, _ in stored_layout.values()), default=0):
        raise UserError(f"{file}: no tensor has a vector for each of the {tokenizer.size:,} tokens of tokenizer.json")
    # no weights are allocated: a damaged file may claim any size
    expected = sketch(lambda: _empty(description, tokenizer, folder), len(stored_layout), folder / "config.json")
    if problem := contradiction(description):
        raise UserError(f"{folder / 'config.json'} contradicts itself: {problem}")
    if description.technique not in TECHNIQUES and stored_layout.keys() != expected.state_dict().keys():
        raise UserError(f"{folder} {UNREADABLE.format(description.technique)}")
    _check_layout(expected, stored_layout, file)
    model = _empty(description, tokenizer, folder)
    model.load_state_dict(read_tensors(file))
    if selects(model) and (folder / READER).exists():
        file, reader = folder / READER, model.add_reader()
        _check_layout(reader, read_layout(file), file)
        reader.load_state_dict(read_tensors(file))
        description.describe_reader(reader)
    return SavedModel(description, model.eval(), tokenizer, read_hashes(folder / TRAINING_TEXTS))


def _read_groups(folder: Path, description: ModelConfig) -> SynonymGroups | None:
    """The groups that the model was trained with; raise an error if their file is missing or has others."""
    if description.synonym_groups is None:
        return None
    if not (folder / GROUPS).is_file():
        raise UserError(f"{folder} is not complete: it has no {GROUPS}, which its model needs")
    groups = SynonymGroups.from_json(read_text(folder / GROUPS), folder / GROUPS)
    if groups.summary != description.synonym_groups:
        raise UserError(
            f"{folder / GROUPS} has {groups.summary:.80}…; the model was trained with {description.synonym_groups:.80}…"
        )
    return groups


def _check_layout(model: nn.Module, stored_layout: Any, file: Path) -> None:
    if (difference := layout_difference(stored_layout, layout(model.state_dict()))) is not None:
        raise UserError(f"{file}: {difference}")


def matches_layout(words: int, vectors: Any, folder: Path) -> None:
    """Every id of a tokenizer must have a vector; the network may have more."""
    if isinstance(vectors, int) and words > vectors:
        raise UserError(f"{folder}: tokenizer.json has {words:,} tokens, but the network has vectors for {vectors:,}")


def _describe(folder: Path) -> ModelConfig:
    if (kind := str(read_object_or_empty(folder / "config.json").get("kind"))) in MODEL_KINDS:
        raise UserError(f"{folder} {MODEL_KINDS[kind]}")
    for name in FILES:
        if not (folder / name).is_file():
            raise UserError(f"{folder} is not a steadygaze model: it has no {name}{_instead(folder)}")
    file = folder / "config.json"
    values = read_json(file)
    schema = values.get("schema") if isinstance(values, dict) else None
    if not isinstance(schema, int):
        raise UserError(f"{file} does not describe a steadygaze model: it has no schema number{_instead(folder)}")
    if schema > SCHEMA:
        raise UserError(
            f"{folder} has schema {schema}, written by steadygaze {values.get('steadygaze')}; "
            f"this is {__version__}, which reads up to schema {SCHEMA}: upgrade to read it"
        )
    fields = {key: value for key, value in values.items() if key in field_names(ModelConfig)}
    try:
        return build(ModelConfig, fields)
    except UserError as error:
        raise UserError(f"{file} is damaged: {error}") from None


def _instead(folder: Path) -> str:
    """Advice for the folder of a Hugging Face model."""
    if "model_type" not in read_object_or_empty(folder / "config.json"):
        return ""
    advice = (
        "; it is a Hugging Face model, which certify accepts with --substitutions, as do predict, explain, evaluate, "
    )
    return f"{advice}word-weights, audit and fit-explainer; here, use a model of train --encoder transformer:{folder}"


def _empty(description: ModelConfig, tokenizer: TextTokenizer, folder: Path) -> Model:
    """The model without its weights."""
    failure = f"{folder / 'config.json'} does not describe a network that can be built"
    with foreign_error(failure), torch.random.fork_rng(devices=[]):  # the random weights are overwritten
        try:
            return build_model(description, tokenizer)
        except UserError as error:
            raise UserError(f"{failure}: {error}") from None
