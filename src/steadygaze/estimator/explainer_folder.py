"""A fitted explainer as a folder: written atomically, read without executing code.

config.json          explainer, kind of inputs, settings, classes, black box and measures
vocabulary.json      the vocabulary; explainers of images have none
model.safetensors    the networks
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from steadygaze.core.atomic_files import new_folder, recover_folder, unknown_entries
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.output_paths import check_new_folder
from steadygaze.core.settings import build
from steadygaze.core.tensor_files import layout, layout_difference, read_tensors
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import LARGEST_TEXT, foreign_error, read_json, read_object, read_object_or_empty
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.fit_config import Method
from steadygaze.results.row import Row

P = TypeVar("P")
SCHEMA = 1
"""Increased when older versions of the package cannot read a folder."""
CONFIG, WORDS, NETS = "config.json", "vocabulary.json", "model.safetensors"
KIND = "steadygaze explainer"
SORTS = ("texts", "images")


@dataclass(frozen=True)
class ExplainerFiles:
    config: Mapping[str, Any]
    words: tuple[str, ...] = ()
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def sort(self) -> str:
        """Kind of inputs: texts or images."""
        return str(self.config.get("inputs", "texts"))


def save(folder: Path, written: ExplainerFiles) -> None:
    """Write the folder; an existing explainer is replaced, anything else is refused."""
    check_explainer_folder(folder)
    config = {"kind": KIND, "schema": SCHEMA, **written.config}
    weights = {name: value.detach().cpu().contiguous() for name, value in written.weights.items()}
    try:
        with new_folder(folder) as new:
            (new / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
            if written.sort == "texts":
                words = json.dumps(
                    written.words, ensure_ascii=True
                )  # a word may contain surrogates, which UTF-8 cannot encode
                (new / WORDS).write_text(words + "\n", encoding="utf-8")
            save_file(weights, new / NETS, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise UserError(f"could not write {folder}: {error}; existing files are unchanged") from None


def load(folder: Path, sort: Literal["texts", "images"] | None = None) -> ExplainerFiles:
    """`sort`: required kind of inputs; None: any."""
    recover_folder(folder)
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} is not a fitted explainer: it has no {CONFIG}; create one with fit-explainer")
    config = read_object(folder / CONFIG)
    if config.get("kind") != KIND:
        raise UserError(f"{folder} is not a fitted explainer; create one with fit-explainer")
    if not isinstance(schema := config.get("schema"), int) or schema > SCHEMA:
        raise UserError(f"{folder} has schema {schema!r:.40}; this package reads up to {SCHEMA}: upgrade to read it")
    inputs = ExplainerFiles(config).sort
    if inputs not in SORTS or sort not in (None, inputs):
        raise UserError(
            f"{folder} explains {inputs!s:.40}; use an explainer of {' or '.join([sort] if sort else SORTS)}"
        )
    words = read_json(folder / WORDS, LARGEST_TEXT) if inputs == "texts" else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UserError(f"{folder / WORDS} is damaged: it must contain a list of words")
    return ExplainerFiles(config, tuple(words), read_tensors(folder / NETS))


def check_consistent_rows(written: ExplainerFiles, rows: Iterable[Row], where: Path) -> None:
    """Raise an error if fields of a folder contradict each other."""
    config, texts = written.config, written.sort == "texts"
    if any((name in config) == texts for name in ("canvas", "shape")) or (where / WORDS).exists() != texts:
        raise UserError(f"{where / CONFIG} contradicts itself: inputs is {written.sort!r}, but other fields are not")
    facts = config_value(written, "facts", dict, where)
    own = {"explainer": config.get("explainer"), "k": config_value(written, "settings", dict, where).get("k"), **facts}
    for row in rows:
        for name in ("explainer", "k", "seed", "fitted-to"):
            if name in row.settings and name in own and row.settings[name] != own[name]:
                conflict = f"{name} is {own[name]!r:.40}, and {row.settings[name]!r:.40} in rows"
                raise UserError(f"{where / CONFIG} contradicts itself: {conflict}")


def config_value(written: ExplainerFiles, key: str, kind: type[P], where: Path) -> P:
    """The value of a key in config.json."""
    value = written.config.get(key)
    if not isinstance(value, kind):
        raise UserError(f"{where / CONFIG} is damaged: it has no {key}")
    return value


def settings_of(written: ExplainerFiles, where: Path) -> Method:
    """Settings of the fit."""
    name, values = written.config.get("explainer"), config_value(written, "settings", dict, where)
    if not isinstance(name, str) or name not in METHODS:
        raise unknown("explainer", name, METHODS)
    try:
        return build(METHODS[name], values)
    except UserError as error:
        raise UserError(f"{where / CONFIG} is damaged: {error}") from None


def load_networks(make: Callable[[], nn.ModuleDict], written: ExplainerFiles, where: Path) -> nn.ModuleDict:
    """Networks with the saved weights, in evaluation mode."""
    with (
        torch.device("meta"),
        foreign_error(f"{where / CONFIG} is damaged"),
    ):  # no memory: a damaged file may claim any size
        nets = make()
    if "reader" in nets and not any(name.startswith("reader.") for name in written.weights):
        del nets["reader"]  # version 0.1.0 has no reader
    if (difference := layout_difference(layout(written.weights), layout(nets.state_dict()))) is not None:
        raise UserError(f"{where / NETS} does not match the networks that {CONFIG} describes: {difference}")
    nets.load_state_dict(dict(written.weights), assign=True)
    return nets.eval().requires_grad_(False)


def check_same_black_box(written: ExplainerFiles, classes: Sequence[Label], fingerprint: str, where: Path) -> None:
    """Raise an error for another black box than the one of the fit."""
    black_box = config_value(written, "black_box", dict, where)
    if written.config.get("classes") != list(classes):
        raise UserError(
            f"{where} was fitted to a black box with the classes {json.dumps(written.config.get('classes')):.80}, "
            f"this one has {json.dumps(list(classes)):.80}; run fit-explainer for this model"
        )
    if black_box.get("fingerprint") != fingerprint:
        raise UserError(
            f"{where} was fitted to another model, {black_box.get('name')!r:.80}, or to other weights of it: "
            "it cannot explain this one; run fit-explainer for this model"
        )


def is_fitted(folder: Path) -> bool:
    """Whether the folder is a fitted explainer."""
    return read_object_or_empty(folder / CONFIG).get("kind") == KIND


def check_explainer_folder(folder: Path) -> None:
    """An output folder may be new, empty, or a fitted explainer."""
    check_new_folder(folder)
    recover_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not is_fitted(folder):
        raise UserError(f"{folder} exists and is not a fitted explainer; choose another folder")
    if others := unknown_entries(folder, (CONFIG, WORDS, NETS)):
        raise UserError(
            f"{folder} contains {others[0]!r} besides an explainer, which would be lost; choose another folder"
        )
