"""Train an image classifier with Adadelta; save it as config.json and model.safetensors."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core import __version__
from steadygaze.core.atomic_files import recover_folder
from steadygaze.core.errors import UserError
from steadygaze.core.random_key import derive_seed, forked_generators
from steadygaze.core.settings import Field, build, field_names, settings
from steadygaze.core.tensor_files import (
    layout,
    layout_difference,
    read_layout,
    read_tensors,
    without_memory,
    write_network_folder,
)
from steadygaze.core.types import Label, Terms
from steadygaze.core.untrusted_files import read_json
from steadygaze.estimator.model_folder import check_model_folder
from steadygaze.images.image_inputs import MAX_CHANNELS, Images
from steadygaze.images.patch_networks import SMALLEST, PatchConfig, Shape, bai_image_network, shuffled_rows
from steadygaze.techniques.technique import Player, Stage
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.training_loop import Rows, StageLoop, StageState

DROPOUTS = (0.25, 0.5)
"""Dropout rates before the dense layers."""
DECAY, EPSILON = 0.95, 1e-7
"""Adadelta with Keras' defaults."""


@settings
class ImageTrainConfig:
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 12
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 128
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 1.0


def network_for(shape: Shape, classes: int) -> nn.Sequential:
    """An untrained network with a buffer for the mean training image."""
    if min(shape[1:]) < SMALLEST:
        raise UserError(f"images of {shape[1]} × {shape[2]} pixels are too small: each side needs {SMALLEST} or more")
    network = bai_image_network(shape, classes, DROPOUTS)
    network.register_buffer("mean", torch.zeros(shape))
    return network


class ImageClassifierLoop(StageLoop):
    def __init__(self, config: ImageTrainConfig, network: nn.Module, pixels: Tensor, labels: Tensor) -> None:
        self.config, self.pixels, self.labels = config, pixels, labels
        parameters = list(network.parameters())
        state = StageState(
            networks=network,
            parameters_by_player={"all": parameters},
            optimizer=torch.optim.Adadelta(parameters, config.learning_rate, DECAY, EPSILON),
        )
        stage = Stage("train", epochs=config.epochs, select="last")
        super().__init__(stage, state, SilentWatcher(), len(labels), (Player(terms=("loss",)),))

    def batches(self) -> list[Rows]:
        return shuffled_rows(len(self.labels), self.config.batch_size, (self.config.seed, self.state.epoch))

    def train_step(self, rows: Rows) -> Terms:
        index = torch.from_numpy(rows).to(self.labels.device)
        logits, labels = self.state.networks(self.pixels[index]), self.labels[index]
        accuracy = (logits.argmax(-1) == labels).float()
        terms = {"loss": cross_entropy(logits, labels, reduction="none"), "accuracy": accuracy}
        self.update(terms, None)
        return terms


def train(
    config: ImageTrainConfig, images: Images, labels: Tensor, device: torch.device
) -> tuple[nn.Module, list[dict[str, Any]]]:
    """The network in evaluation mode, and one record per epoch."""
    with forked_generators():
        torch.manual_seed(derive_seed(config.seed))
        network = network_for(images.shape, int(labels.max()) + 1).to(device)
        network.get_buffer("mean").copy_(PatchConfig(fill="mean").blank(images.pixels, images.whole))
        loop = ImageClassifierLoop(config, network, images.pixels.to(device), labels.to(device))
        loop.execute()
    return network.eval(), [{"epoch": record["epoch"], **record["terms"]} for record in loop.state.history]


SCHEMA = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
LARGEST = 1 << 14
"""Most pixels per side: a damaged file may claim any number."""


@settings
class ImageModelConfig:
    schema: int = SCHEMA
    steadygaze: str = __version__
    kind: Literal["image-classifier"] = "image-classifier"
    classes: Annotated[list[Label], Field(min_length=2)]
    shape: Shape
    """Channels, height and width."""
    learning: ImageTrainConfig
    history: list[dict[str, Any]] = Field(default_factory=list)
    """One record per epoch: epoch, loss, accuracy."""

    def __post_init__(self) -> None:
        channels, height, width = self.shape
        if not (1 <= channels <= MAX_CHANNELS and 1 <= height <= LARGEST and 1 <= width <= LARGEST):
            raise ValueError(f"has images of {height} × {width} pixels with {channels} channels")


def write_folder(folder: Path, description: ImageModelConfig, network: nn.Module) -> None:
    """Write the folder; an existing model is replaced, anything else is refused."""
    recover_folder(folder)
    check_model_folder(folder)
    write_network_folder(folder, dataclasses.asdict(description), {WEIGHTS: network.state_dict()}, {})


def read_folder(folder: Path) -> tuple[ImageModelConfig, nn.Module]:
    recover_folder(folder)
    description = _describe(folder / CONFIG)
    file = folder / WEIGHTS
    with without_memory():  # no weights are allocated: a damaged file may claim any size
        network = network_for(description.shape, len(description.classes))
    if (difference := layout_difference(read_layout(file), layout(network.state_dict()))) is not None:
        raise UserError(f"{file} does not match the network that {CONFIG} describes: {difference}")
    network.load_state_dict(read_tensors(file), assign=True)
    return description, network.eval()


def _describe(file: Path) -> ImageModelConfig:
    if not file.is_file():
        raise UserError(f"{file.parent} is not an image classifier: it has no {CONFIG}")
    values = read_json(file)
    if not isinstance(values, dict) or values.get("kind") != "image-classifier":
        raise UserError(f"{file} does not describe an image classifier")
    if not isinstance(values.get("schema"), int) or values["schema"] > SCHEMA:
        raise UserError(f"{file} has schema {values.get('schema')!r}; steadygaze {__version__} reads up to {SCHEMA}")
    try:
        names = field_names(ImageModelConfig)
        return build(ImageModelConfig, {key: value for key, value in values.items() if key in names})
    except UserError as error:
        raise UserError(f"{file} is damaged: {error}") from None
