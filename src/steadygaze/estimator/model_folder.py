"""A saved tokenizer read back: the one place that knows both kinds.

A model as a folder: written whole or not at all, read without running anything it holds.

config.json          what it is: schema, labels, encoder, technique and its fields, seed, data fingerprint, epochs
model.safetensors    the weights
tokenizer.json       the vocabulary
README.md            a model card
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from steadygaze.core import __version__
from steadygaze.core.atomic_files import new_folder, recover_folder, unknown_entries
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_new_folder
from steadygaze.core.settings import build, field_names
from steadygaze.core.tensor_files import layout, layout_difference, read_layout, read_tensors
from steadygaze.core.untrusted_files import foreign_error, read_json, read_object_or_empty, read_text
from steadygaze.data.batches import Data
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.data.text_tokenizer import Kind, TextTokenizer, read_engine
from steadygaze.data.word_tokenizer import WordTokenizer
from steadygaze.estimator.model_config import SCHEMA, ModelConfig, build_model, contradiction
from steadygaze.models.encoders.size_limits import check_counts, sketch
from steadygaze.models.model_protocol import Model
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.results.model_card import card
from steadygaze.techniques import TECHNIQUES

KINDS: dict[Kind, type[TextTokenizer]] = {kind.kind: kind for kind in (WordTokenizer, PieceTokenizer)}


def read_tokenizer(text: str, *, kind: Kind, max_length: int) -> TextTokenizer:
    """What `TextTokenizer.to_json` wrote, or any document of the `tokenizers` library."""
    return KINDS[kind](read_engine(text, "tokenizer.json"), max_length=max_length)


WEIGHTS = "model.safetensors"
FILES = ("config.json", WEIGHTS, "tokenizer.json")
READER = "reader.safetensors"
"""The independent reader of a rationalizer, where it has one: a file of its own, which version 0.1.0 does not read."""
PREFIXES = {READER: "reader.", WEIGHTS: ""}
"""Of the tensors in each file."""
CARD = "README.md"
MODEL_KINDS = {
    "image-classifier": "classifies images, and texts are read here: in Python sg.load(folder) gives it back, its "
    "explain(images) and sg.fit_explainer(it, images) explain it",
    "steadygaze explainer": "is a fitted explainer and no model: steadygaze explain MODEL --explainer takes it, "
    "in Python sg.load_explainer",
}
"""Folders of ours that hold something else, by the kind in their config.json; what can be done with each."""

UNREADABLE = (
    "was trained by {0!r}, a technique that is not known here, and its weights are no plain classifier's; where the "
    "class is at hand, steadygaze.techniques.TECHNIQUES[{0!r}] = {0} makes it known, and it can be loaded"
)


@dataclasses.dataclass(frozen=True)
class SavedModel:
    description: ModelConfig
    model: Model
    tokenizer: TextTokenizer

    def data(self, texts: Sequence[str], questions: Sequence[str] | None) -> Data:
        """Texts as this model reads them."""
        asked = None if questions is None else self.tokenizer.encode(questions, question=True)
        return Data(self.tokenizer.encode(texts), asked)


def fingerprint(model: Model) -> str:
    """SHA-256 of the weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def save(folder: Path, stored: SavedModel) -> None:
    """Replaces a model that stands there; refuses to replace anything else."""
    recover_folder(folder)
    check_model_folder(folder)
    values = dataclasses.asdict(stored.description)
    weights = {name: value.detach().cpu().contiguous() for name, value in stored.model.state_dict().items()}
    try:
        with new_folder(folder) as new:
            (new / "config.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
            (new / "tokenizer.json").write_text(stored.tokenizer.to_json(), encoding="utf-8")
            (new / CARD).write_text(card(values), encoding="utf-8", errors="replace")
            for file in (READER, WEIGHTS):  # the first takes its tensors away, the second has the rest
                prefix = PREFIXES[file]
                part = {
                    name.removeprefix(prefix): weights.pop(name) for name in list(weights) if name.startswith(prefix)
                }
                if part:
                    save_file(part, new / file, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise UserError(f"could not write {folder}: {error}; what stood there before is untouched") from None


def check_model_folder(folder: Path) -> None:
    """An output folder may be new, empty, or one of ours."""
    check_new_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if "steadygaze" not in read_object_or_empty(folder / "config.json"):
        raise UserError(f"{folder} exists and is not a steadygaze model: it is left alone; name another folder")
    if others := unknown_entries(folder, (*FILES, READER, CARD)):
        raise UserError(f"{folder} holds {others[0]!r} beside a model, which would be lost; name another folder")


def check_free_folder(folder: Path) -> None:
    """A model is trained over only by those who say so."""
    recover_folder(folder)
    if (folder / "config.json").exists():
        raise UserError(f"{folder} holds a model: --replace trains another in its place, or name another folder")


def load(folder: Path) -> SavedModel:
    recover_folder(folder)
    description, file = _describe(folder), folder / WEIGHTS
    tokenizer = read_tokenizer(
        read_text(folder / "tokenizer.json"), kind=description.kind, max_length=description.max_length
    )
    if description.network is not None:
        check_counts(description.network, folder / "config.json")
        matches_layout(tokenizer.size, description.network.get("vocab_size"), folder)
    found = read_layout(file)
    # neither drawn nor allocated: a damaged file may claim any size
    described = sketch(lambda: _empty(description, tokenizer, folder), len(found), folder / "config.json")
    if why := contradiction(description):
        raise UserError(f"{folder / 'config.json'} contradicts itself: {why}")
    if description.technique not in TECHNIQUES and found.keys() != described.state_dict().keys():
        raise UserError(f"{folder} {UNREADABLE.format(description.technique)}")
    _check_layout(described, found, file)
    model = _empty(description, tokenizer, folder)
    model.load_state_dict(read_tensors(file))
    if isinstance(model, Rationalizer) and (folder / READER).exists():
        file, reader = folder / READER, model.add_reader()
        _check_layout(reader, read_layout(file), file)
        reader.load_state_dict(read_tensors(file))
        reader.accuracy = description.reader_accuracy
    return SavedModel(description, model.eval(), tokenizer)


def _check_layout(model: nn.Module, found: Any, file: Path) -> None:
    if (difference := layout_difference(found, layout(model.state_dict()))) is not None:
        raise UserError(f"{file}: {difference}")


def matches_layout(words: int, vectors: Any, folder: Path) -> None:
    """Every id of a tokenizer must have a vector; the network may have some to spare."""
    if isinstance(vectors, int) and words > vectors:
        raise UserError(f"{folder}: tokenizer.json has {words:,} tokens, but the network has vectors for {vectors:,}")


def _describe(folder: Path) -> ModelConfig:
    if (kind := str(read_object_or_empty(folder / "config.json").get("kind"))) in MODEL_KINDS:
        raise UserError(f"{folder} {MODEL_KINDS[kind]}")
    for name in FILES:
        if not (folder / name).is_file():
            raise UserError(f"{folder} is no steadygaze model: it has no {name}{_instead(folder)}")
    file = folder / "config.json"
    values = read_json(file)
    schema = values.get("schema") if isinstance(values, dict) else None
    if not isinstance(schema, int):
        raise UserError(f"{file} describes no steadygaze model: it has no schema number{_instead(folder)}")
    if schema > SCHEMA:
        raise UserError(
            f"{folder} has schema {schema}, written by steadygaze {values.get('steadygaze')}; "
            f"this is {__version__}, which reads up to schema {SCHEMA}: upgrade to read it"
        )
    known = {key: value for key, value in values.items() if key in field_names(ModelConfig)}
    try:
        return build(ModelConfig, known)
    except UserError as error:
        raise UserError(f"{file} is damaged: {error}") from None


def _instead(folder: Path) -> str:
    """What can be done with a folder that is not ours."""
    if "model_type" not in read_object_or_empty(folder / "config.json"):
        return ""
    said = "; it is a Hugging Face model, which steadygaze audit and steadygaze explain take as it is; "
    return f"{said}the rest needs a model made by train (--encoder transformer:{folder} starts from it)"


def _empty(description: ModelConfig, tokenizer: TextTokenizer, folder: Path) -> Model:
    """The model without its weights."""
    what = f"{folder / 'config.json'} does not describe a network that can be built"
    try:
        with foreign_error(what), torch.random.fork_rng(devices=[]):  # what is drawn here is overwritten
            return build_model(description, tokenizer)
    except UserError as error:
        raise UserError(str(error) if str(error).startswith(what) else f"{what}: {error}") from None
