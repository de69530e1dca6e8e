"""A fitted explainer as a folder: written whole or not at all, read without running anything it holds.

config.json          which explainer, of texts or images, its settings, the classes and the black box it was fitted to,
                     how well it did
vocabulary.json      the words it knows; an explainer of images has none
model.safetensors    its networks
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
"""Raised when a folder written today could not be read by yesterday's package."""
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
        """Of what it explains."""
        return str(self.config.get("inputs", "texts"))


def save(folder: Path, written: ExplainerFiles) -> None:
    """Replaces an explainer that stands there; refuses to replace anything else."""
    check_explainer_folder(folder)
    config = {"kind": KIND, "schema": SCHEMA, **written.config}
    weights = {name: value.detach().cpu().contiguous() for name, value in written.weights.items()}
    try:
        with new_folder(folder) as new:
            (new / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
            if written.sort == "texts":
                words = json.dumps(written.words, ensure_ascii=True)  # a word may hold what UTF-8 cannot
                (new / WORDS).write_text(words + "\n", encoding="utf-8")
            save_file(weights, new / NETS, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise UserError(f"could not write {folder}: {error}; what stood there before is untouched") from None


def load(folder: Path, sort: Literal["texts", "images"] | None = None) -> ExplainerFiles:
    """`sort`: of what it must be an explainer; None: of anything."""
    recover_folder(folder)
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} is no fitted explainer: it has no {CONFIG}; fit-explainer makes one")
    config = read_object(folder / CONFIG)
    if config.get("kind") != KIND:
        raise UserError(f"{folder} is no fitted explainer; fit-explainer makes one")
    if not isinstance(schema := config.get("schema"), int) or schema > SCHEMA:
        raise UserError(f"{folder} has schema {schema!r:.40}; this package reads up to {SCHEMA}: upgrade to read it")
    found = ExplainerFiles(config).sort
    if found not in SORTS or sort not in (None, found):
        raise UserError(
            f"{folder} explains {found!s:.40}, and {' or '.join([sort] if sort else SORTS)} are asked about"
        )
    words = read_json(folder / WORDS, LARGEST_TEXT) if found == "texts" else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UserError(f"{folder / WORDS} is damaged: it should hold a list of words")
    return ExplainerFiles(config, tuple(words), read_tensors(folder / NETS))


def check_consistent_rows(written: ExplainerFiles, rows: Iterable[Row], where: Path) -> None:
    """Two fields of a folder that cannot both be true."""
    config, texts = written.config, written.sort == "texts"
    if any((name in config) == texts for name in ("canvas", "shape")) or (where / WORDS).exists() != texts:
        raise UserError(f"{where / CONFIG} contradicts itself: inputs is {written.sort!r}, but other fields are not")
    facts = config_value(written, "facts", dict, where)
    own = {"explainer": config.get("explainer"), "k": config_value(written, "settings", dict, where).get("k"), **facts}
    for row in rows:
        for name in ("explainer", "k", "seed", "fitted-to"):
            if name in row.settings and name in own and row.settings[name] != own[name]:
                both = f"{name} is {own[name]!r:.40}, and {row.settings[name]!r:.40} in rows"
                raise UserError(f"{where / CONFIG} contradicts itself: {both}")


def config_value(written: ExplainerFiles, key: str, kind: type[P], where: Path) -> P:
    """What its config.json has under a key."""
    found = written.config.get(key)
    if not isinstance(found, kind):
        raise UserError(f"{where / CONFIG} is damaged: it has no {key}")
    return found


def settings_of(written: ExplainerFiles, where: Path) -> Method:
    """How it was fitted."""
    name, values = written.config.get("explainer"), config_value(written, "settings", dict, where)
    if not isinstance(name, str) or name not in METHODS:
        raise unknown("explainer", name, METHODS)
    try:
        return build(METHODS[name], values)
    except UserError as error:
        raise UserError(f"{where / CONFIG} is damaged: {error}") from None


def load_networks(make: Callable[[], nn.ModuleDict], written: ExplainerFiles, where: Path) -> nn.ModuleDict:
    """Networks with the weights that were kept, in evaluation mode."""
    with torch.device("meta"), foreign_error(f"{where / CONFIG} is damaged"):  # it may claim any size: nothing is drawn
        nets = make()
    if "reader" in nets and not any(name.startswith("reader.") for name in written.weights):
        del nets["reader"]  # version 0.1.0 trained none
    if (difference := layout_difference(layout(written.weights), layout(nets.state_dict()))) is not None:
        raise UserError(
            f"{where / NETS} does not hold the weights of the networks that {CONFIG} describes: {difference}"
        )
    nets.load_state_dict(dict(written.weights), assign=True)
    return nets.eval().requires_grad_(False)


def check_same_black_box(written: ExplainerFiles, classes: Sequence[Label], fingerprint: str, where: Path) -> None:
    """An explainer explains the black box it was fitted to, and no other."""
    then = config_value(written, "black_box", dict, where)
    if written.config.get("classes") != list(classes):
        raise UserError(
            f"{where} was fitted to a black box with the classes {json.dumps(written.config.get('classes')):.80}, "
            f"this one has {json.dumps(list(classes)):.80}: fit-explainer fits one to it"
        )
    if then.get("fingerprint") != fingerprint:
        raise UserError(
            f"{where} was fitted to another model, {then.get('name')!r:.80}, or to other weights of it: "
            "what it selects says nothing of this one; fit-explainer fits one to it"
        )


def is_fitted(folder: Path) -> bool:
    """Whether an explainer stands there."""
    return read_object_or_empty(folder / CONFIG).get("kind") == KIND


def check_explainer_folder(folder: Path) -> None:
    """An output folder may be new, empty, or a fitted explainer."""
    check_new_folder(folder)
    recover_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not is_fitted(folder):
        raise UserError(f"{folder} exists and is no fitted explainer: it is left alone; name another folder")
    if others := unknown_entries(folder, (CONFIG, WORDS, NETS)):
        raise UserError(f"{folder} holds {others[0]!r} beside an explainer, which would be lost; name another folder")
