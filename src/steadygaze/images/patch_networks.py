"""Networks for images, as in Bai et al. (Table 7).  A unit is a square patch; a patch of side 1 is a pixel.

    selector       convolutions 32×3×3 and 64×3×3 that keep the size, then for each patch the sum of
                   local score    mean over the patch → hidden → score
                   global score   maximum of 2×2 → hidden → a score for each patch
                   with ŷ: a dense layer maps the prediction to one more channel
    dense          approximator: all pixels → 128 → classes
    convolution    approximator: the network of Table 7, without its dropout

Approximators and the black box get the selected patches, with the fill in all others:

    x ⊙ m + fill ⊙ (1 − m)

The paper does not specify how explainers differ from Table 7 "to incorporate global information".

    zero   black
    mean   the mean image, as in the papers ("their average values")
    gray   one half
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from steadygaze.core.errors import UserError
from steadygaze.core.settings import Field, build, field_names, settings
from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.l2x import InputBatch, Rows, SelectorConfig, selector_networks
from steadygaze.explainers.learned.vibi import Vibi

Shape = tuple[int, int, int]
"""Channels, height and width."""
SMALLEST = 6
"""Fewest pixels per side for the convolutions of Table 7."""
INNER = 128
"""Width of the dense layer."""


def bai_image_network(shape: Shape, classes: int, dropouts: tuple[float, float] = (0.0, 0.0)) -> nn.Sequential:
    """The classifier of Table 7.  (B,C,H,W) -> (B,classes)"""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropouts[0]),
        nn.Linear(64 * ((height - 4) // 2) * ((width - 4) // 2), INNER),
        nn.ReLU(),
        nn.Dropout(dropouts[1]),
        nn.Linear(INNER, classes),
    )


def spread(mask: Tensor, shape: Shape, patch: int) -> Tensor:
    """From patches to their pixels.  (B,D) -> (B,1,H,W)"""
    grid = mask.view(-1, 1, shape[1] // patch, shape[2] // patch)
    return grid.repeat_interleave(patch, 2).repeat_interleave(patch, 3)


def fill_patches(pixels: Tensor, mask: Tensor, fill: Tensor, patch: int) -> Tensor:
    """x ⊙ m + fill ⊙ (1 − m).  (B,C,H,W), (B,D) -> (B,C,H,W)"""
    _, channels, height, width = pixels.shape
    pixel_mask = spread(mask.to(pixels.dtype), (channels, height, width), patch)
    return pixels * pixel_mask + fill.to(pixels) * (1 - pixel_mask)


class Selector(nn.Module):
    def __init__(self, shape: Shape, patch: int, query: int, hidden: int, dropout: float = 0.0) -> None:
        """`query`: number of classes if conditioned on the prediction, else 0."""
        super().__init__()
        channels, self.height, self.width = shape
        self.patch = patch
        units = (self.height // patch) * (self.width // patch)
        self.query_layer = nn.Linear(query, self.height * self.width) if query else None
        self.near = nn.Sequential(
            nn.Conv2d(channels + bool(query), 32, 3, padding="same"),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding="same"),
            nn.ReLU(),
        )
        self.inner = nn.Sequential(nn.Conv2d(64, hidden, 1), nn.ReLU(), nn.Dropout(dropout))
        self.score = nn.Conv2d(hidden, 1, 1)
        self.whole = nn.Sequential(
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(),
            nn.Linear(64 * ((self.height + 1) // 2) * ((self.width + 1) // 2), hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, units),
        )

    def forward(self, views: InputBatch, query: Tensor | None = None) -> Tensor:
        """(B,C,H,W), (B,classes) -> (B,D)"""
        channels = views.x
        if self.query_layer is not None and query is not None:
            query_channel = self.query_layer(query.to(channels.dtype)).view(-1, 1, self.height, self.width)
            channels = torch.cat([channels, query_channel], 1)
        hidden = self.near(channels)
        patches = hidden if self.patch == 1 else avg_pool2d(hidden, self.patch)
        scores: Tensor = self.score(self.inner(patches)).flatten(1) + self.whole(hidden)
        return scores


class Approximator(nn.Module):
    """A network that gets the selected patches only."""

    fill: Tensor

    def __init__(self, layers: nn.Module, patch: int, fill: Tensor) -> None:
        super().__init__()
        self.layers, self.patch = layers, patch
        self.register_buffer("fill", fill.clone())  # saved with the weights, which depend on it

    def forward(self, views: InputBatch, mask: Tensor) -> Tensor:
        """(B,C,H,W), (B,D) -> (B,classes)"""
        logits: Tensor = self.layers(fill_patches(views.x, mask, self.fill, self.patch))
        return logits


def dense(shape: Shape, classes: int) -> nn.Sequential:
    """(B,C,H,W) -> (B,classes)"""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(shape[0] * shape[1] * shape[2], INNER), nn.ReLU(), nn.Linear(INNER, classes)
    )


APPROXIMATORS = {"simple": dense, "cnn": bai_image_network}


USUAL: dict[str, Any] = {"k": 25, "approximator": "cnn", "epochs": 12, "pretraining_epochs": 12, "batch_size": 128}
"""Settings of the papers for images that differ from those for texts."""
OWN: dict[type[SelectorConfig], dict[str, Any]] = {Ail: {"opponent": 1e-3}, Vibi: {"temperature": 0.5}}
"""Such settings of one method."""


@settings
class PatchConfig:
    """Size of the patches, and the fill of unselected patches."""

    patch: Annotated[int, Field(ge=1, le=4096)] = 1
    """Side of a patch in pixels; 1: single pixels."""
    fill: Literal["zero", "mean", "gray"] = "mean"
    """Fill of unselected patches: black, the mean image, or one half."""
    reader: bool = False
    """True if an independent reader is trained too; from random pixels it seldom recovers more than from none."""

    def units(self, shape: Shape) -> int:
        _, height, width = shape
        if height % self.patch or width % self.patch:
            raise UserError(
                f"images of {height} × {width} pixels cannot be divided into patches of {self.patch} × {self.patch}: "
                f"patch must divide both sides"
            )
        return (height // self.patch) * (width // self.patch)

    def blank(self, pixels: Tensor, whole: bool = False) -> Tensor:
        """The fill.  `whole`: rounded, for images in whole numbers.  (N,C,H,W) -> (C,H,W)"""
        if self.fill == "mean" and len(pixels) < 2:
            raise UserError("the mean image needs several images, found one: pass more, or choose another fill")
        shades = {"zero": torch.zeros_like(pixels[0]), "gray": torch.full_like(pixels[0], 0.5)}
        shade = pixels.mean(0) if self.fill == "mean" else shades[self.fill]
        return (shade * 255).round() / 255 if whole else shade


@dataclass(frozen=True)
class ImageInputs:
    pixels: Tensor  # (N,C,H,W) between 0 and 1, where the networks are
    probs: Tensor  # (N,C)
    units: int

    def __len__(self) -> int:
        return len(self.pixels)

    def shuffled(self, size: int, seed: tuple[int, ...]) -> list[Rows]:
        return shuffled_rows(len(self), size, seed)

    def once(self, size: int) -> list[Rows]:
        return cut_rows(np.arange(len(self)), size)

    def widths(self, rows: Rows) -> tuple[int, ...]:
        return ()

    def gather(self, rows: Tensor, widths: tuple[int, ...]) -> InputBatch:
        probs = self.probs[rows.to(self.probs.device)].to(self.pixels.device, torch.float32)
        selectable = torch.ones(len(rows), self.units, dtype=torch.bool, device=rows.device)
        return InputBatch(self.pixels[rows], selectable, probs, rows)

    def views(self, rows: Rows) -> InputBatch:
        return self.gather(torch.from_numpy(rows).to(self.pixels.device), ())


def image_settings(kind: type[SelectorConfig], values: dict[str, Any]) -> SelectorConfig:
    """A method with the default settings for images, updated by `values`."""
    usual = {**USUAL, **OWN.get(kind, {})}
    return build(kind, {**{name: value for name, value in usual.items() if name in field_names(kind)}, **values})


def image_nets(
    config: SelectorConfig, shape: Shape, classes: int, canvas: PatchConfig, fill: Tensor | None = None
) -> nn.ModuleDict:
    """Untrained networks for images; approximators save the fill."""
    patch, units = canvas.patch, canvas.units(shape)
    check_k(config.k, units, shape)
    if min(shape[1:]) < SMALLEST:
        raise UserError(f"images of {shape[1]} × {shape[2]} pixels are too small: each side needs {SMALLEST} or more")
    blank = torch.zeros(shape) if fill is None else fill

    def approximator() -> nn.Module:
        return Approximator(APPROXIMATORS[config.approximator](shape, classes), patch, blank)

    selector = Selector(shape, patch, classes if config.conditioned else 0, config.hidden, config.dropout)
    nets = selector_networks(config, selector, approximator, units, classes)
    if not canvas.reader:
        del nets["reader"]
    return nets


def check_k(k: Any, units: int, shape: Shape) -> int:
    """Check the number of selected patches."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise UserError(f"k is {k!r:.80}; it must be a whole number, 1 or more")
    if k >= units:
        raise UserError(f"k is {k}, but an image of {shape[1]} × {shape[2]} pixels has {units} patches: k must be less")
    return int(k)


def shuffled_rows(count: int, size: int, seed: tuple[int, ...]) -> list[NDArray[np.int64]]:
    return cut_rows(np.random.default_rng(seed).permutation(count), size)


def cut_rows(order: Rows, size: int) -> list[Rows]:
    """Batches of at most `size` rows."""
    return [order[start : start + size] for start in range(0, len(order), size)]
