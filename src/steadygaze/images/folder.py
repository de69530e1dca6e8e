"""A classifier of images as a folder: config.json and model.safetensors, written whole or not at all."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from steadygaze import __version__
from steadygaze.atomic import new_folder, recover
from steadygaze.config import Field, build, field_names, settings
from steadygaze.errors import UserError
from steadygaze.explain.learned.image_nets import Shape
from steadygaze.foreign_files import read_json
from steadygaze.images.pixels import MOST_COLOURS
from steadygaze.images.training import Learning, network_for
from steadygaze.store import refuse_foreign
from steadygaze.tensor_files import differing, layout, read_layout, read_tensors
from steadygaze.types import Label

SCHEMA = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
LARGEST = 1 << 14
"""Pixels of a side at most: a damaged file may claim any number."""


@settings
class Description:
    """config.json."""

    schema: int = SCHEMA
    steadygaze: str = __version__
    kind: Literal["image-classifier"] = "image-classifier"
    classes: Annotated[list[Label], Field(min_length=2)]
    shape: Shape
    """Colours, height and width."""
    learning: Learning
    history: list[dict[str, Any]] = Field(default_factory=list)
    """One record per epoch: epoch, loss, accuracy."""

    def __post_init__(self) -> None:
        colours, height, width = self.shape
        if not (1 <= colours <= MOST_COLOURS and 1 <= height <= LARGEST and 1 <= width <= LARGEST):
            raise ValueError(f"has images of {height} × {width} pixels with {colours} colours")


def write_folder(folder: Path, description: Description, network: nn.Module) -> None:
    """Replaces a model that stands there; refuses to replace anything else."""
    recover(folder)
    refuse_foreign(folder)
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    try:
        with new_folder(folder) as new:
            (new / CONFIG).write_text(json.dumps(dataclasses.asdict(description), indent=1) + "\n", encoding="utf-8")
            save_file(weights, new / WEIGHTS, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise UserError(f"could not write {folder}: {error}; what stood there before is untouched") from None


def read_folder(folder: Path) -> tuple[Description, nn.Module]:
    recover(folder)
    description = _describe(folder / CONFIG)
    file = folder / WEIGHTS
    with torch.device("meta"):  # neither drawn nor allocated: a damaged file may claim any size
        network = network_for(description.shape, len(description.classes))
    if (difference := differing(read_layout(file), layout(network.state_dict()))) is not None:
        raise UserError(f"{file} does not hold the weights of the network that {CONFIG} describes: {difference}")
    network.load_state_dict(read_tensors(file), assign=True)
    return description, network.eval()


def _describe(file: Path) -> Description:
    if not file.is_file():
        raise UserError(f"{file.parent} is no classifier of images: it has no {CONFIG}")
    values = read_json(file)
    if not isinstance(values, dict) or values.get("kind") != "image-classifier":
        raise UserError(f"{file} does not describe a classifier of images")
    if not isinstance(values.get("schema"), int) or values["schema"] > SCHEMA:
        raise UserError(f"{file} has schema {values.get('schema')!r}; steadygaze {__version__} reads up to {SCHEMA}")
    try:
        return build(Description, {key: value for key, value in values.items() if key in field_names(Description)})
    except UserError as error:
        raise UserError(f"{file} is damaged: {error}") from None
