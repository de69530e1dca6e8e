"""Images as selectors see them: patches of pixels between 0 and 1, and what stands where none is selected.

    zero   black
    mean   the average image: what the papers fill with ("their average values")
    grey   one half

The fill changes which explanation looks best, so it is always said which one it was.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.config import Field, build, field_names, settings
from steadygaze.errors import UserError
from steadygaze.explain.learned.ail import Ail
from steadygaze.explain.learned.image_nets import APPROXIMATORS, SMALLEST, Approximator, Selector, Shape
from steadygaze.explain.learned.selecting import Selecting
from steadygaze.explain.learned.vibi import Vibi
from steadygaze.explain.learned.views import Rows, Views
from steadygaze.maths.judge import Judge

USUAL: dict[str, Any] = {
    "k": 25,
    "approximator": "cnn",
    "epochs": 12,
    "pretraining_epochs": 12,
    "batch_size": 128,
}
"""What the papers set for images, where it is not what they set for texts."""
OWN: dict[type[Selecting], dict[str, Any]] = {Ail: {"opponent": 1e-3}, Vibi: {"temperature": 0.5}}
"""The same, of one method alone."""


@settings
class Canvas:
    """How an image is cut up, and what stands where nothing is selected."""

    patch: Annotated[int, Field(ge=1, le=4096)] = 1
    """Pixels of a patch's side; 1: pixels are selected one by one."""
    fill: Literal["zero", "mean", "grey"] = "mean"
    """What unselected patches are filled with: black, the average image, or one half."""

    def units(self, shape: Shape) -> int:
        """How many patches an image has."""
        _, height, width = shape
        if height % self.patch or width % self.patch:
            raise UserError(
                f"images of {height} × {width} pixels cannot be cut into patches of {self.patch} × {self.patch}: "
                f"patch must divide both sides"
            )
        return (height // self.patch) * (width // self.patch)

    def blank(self, pixels: Tensor, whole: bool = False) -> Tensor:
        """The fill.  `whole`: of images in whole numbers, so that they can hold it.  (N,C,H,W) -> (C,H,W)"""
        if self.fill == "mean" and len(pixels) < 2:
            raise UserError("the mean image needs several images, found one: give more, or choose another fill")
        shades = {"zero": torch.zeros_like(pixels[0]), "grey": torch.full_like(pixels[0], 0.5)}
        shade = pixels.mean(0) if self.fill == "mean" else shades[self.fill]
        return (shade * 255).round() / 255 if whole else shade


@dataclass(frozen=True)
class ImageInputs:
    pixels: Tensor  # (N,C,H,W) between 0 and 1, where the networks are
    probs: Tensor  # (N,C)
    units: int

    def __len__(self) -> int:
        return len(self.pixels)

    def shuffled(self, size: int, seed: tuple[int, ...]) -> list[NDArray[np.int64]]:
        return _cut(np.random.default_rng(seed).permutation(len(self)), size)

    def once(self, size: int) -> list[NDArray[np.int64]]:
        return _cut(np.arange(len(self)), size)

    def views(self, rows: Rows) -> Views:
        index = torch.from_numpy(rows).to(self.pixels.device)
        probs = self.probs[torch.from_numpy(rows).to(self.probs.device)].to(self.pixels.device, torch.float32)
        able = torch.ones(len(rows), self.units, dtype=torch.bool, device=index.device)
        return Views(self.pixels[index], able, probs, index)


def image_settings(kind: type[Selecting], values: dict[str, Any]) -> Selecting:
    """A method with the usual settings for images, but for those that are given."""
    usual = {**USUAL, **OWN.get(kind, {})}
    return build(kind, {**{name: value for name, value in usual.items() if name in field_names(kind)}, **values})


def image_nets(how: Selecting, shape: Shape, classes: int, patch: int, fill: Tensor | None = None) -> nn.ModuleDict:
    """Fresh networks for images; the fill is kept with those that see it."""
    units = Canvas(patch=patch).units(shape)
    refuse_many(how.k, units, shape)
    if min(shape[1:]) < SMALLEST:
        raise UserError(f"images of {shape[1]} × {shape[2]} pixels are too small: each side needs {SMALLEST} or more")
    blank = torch.zeros(shape) if fill is None else fill

    def approximator() -> nn.Module:
        return Approximator(APPROXIMATORS[how.approximator](shape, classes), patch, blank)

    nets = {
        "selector": Selector(shape, patch, classes if how.query else 0, how.hidden, how.dropout),
        "approximator": approximator(),
        "judge": Judge(units, classes),
    }
    if how.opposes:
        nets["opponent"] = approximator()
    nets["reader"] = approximator()
    return nn.ModuleDict(nets)


def refuse_many(k: int, units: int, shape: Shape) -> None:
    if k >= units:
        raise UserError(f"k is {k}, but an image of {shape[1]} × {shape[2]} pixels has {units} patches: k must be less")


def _cut(order: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    return [order[start : start + size] for start in range(0, len(order), size)]
