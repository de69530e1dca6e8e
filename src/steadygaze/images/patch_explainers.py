"""Explainers of images that need no fit: one weight for each patch.

gradient        Σ |∂p_c/∂x| over the channels and pixels of the patch       Simonyan et al. 2014 (arXiv:1312.6034)
leave-one-out   p_c(x) − p_c(x with the patch replaced by the fill)
lime            the linear model of explainers/lime.py, on images with filled patches
random          random weights, drawn per image: the baseline of explanations

c  the predicted class
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.explainers.lime import regression
from steadygaze.images.image_black_box import ImageBlackBox, together
from steadygaze.images.image_inputs import Images
from steadygaze.images.patch_networks import fill_patches
from steadygaze.models.inference import with_gradients

ENTRIES = 1 << 22
"""Samples × patches of LIME in memory, in double precision."""


@dataclass(frozen=True)
class PatchRequest:
    """Images, their predictions and the fill."""

    black_box: ImageBlackBox
    images: Images
    probs: Tensor  # (N,C)
    fill: Tensor  # (C,H,W)
    patch: int
    units: int

    @property
    def aim(self) -> Tensor:
        """(N,)"""
        return self.probs.argmax(-1)

    def predict_proba(self, rows: Tensor, masks: Tensor) -> Tensor:
        """Predictions for K images, given by row, with these patches only.  (K,), (K,D) -> (K,C)"""
        many, pixels = together(self.images.shape), self.images.pixels
        parts = []
        for index, mask in zip(torch.split(rows, many), torch.split(masks, many), strict=True):
            batch = fill_patches(pixels[index], mask, self.fill, self.patch)  # in chunks, to save memory
            parts.append(self.black_box.predict_proba(self.images.of(batch)))
        return torch.cat(parts)


class PatchExplainer(ABC):
    fills: ClassVar[bool] = False
    """True if it queries the black box for images with filled patches."""

    @abstractmethod
    def weigh(self, request: PatchRequest) -> Tensor:
        """(N,D)"""


@settings
class Gradient(PatchExplainer):
    """Gradient with respect to each pixel; needs a torch network."""

    def weigh(self, request: PatchRequest) -> Tensor:
        network, aim = request.black_box.network, request.aim
        if network is None:
            raise UserError(
                f"gradient needs a torch network, and {request.black_box.name} returns probabilities only: "
                f"use leave-one-out, lime or random"
            )
        parts, many = [], together(request.images.shape)
        with with_gradients(network):
            for rows in torch.split(torch.arange(len(aim)), many):
                x = request.images.pixels[rows].to(request.black_box.device).requires_grad_()
                probabilities = request.black_box.logits(x).double().softmax(-1).cpu()
                total = probabilities.gather(-1, aim[rows].unsqueeze(-1)).sum()
                (gradient,) = torch.autograd.grad(total, x)  # not .backward(), which would change the user's .grad
                parts.append(gradient.double().abs().sum(1, keepdim=True).cpu())
        return (avg_pool2d(torch.cat(parts), request.patch) * request.patch**2).flatten(1)


@settings
class LeaveOneOut(PatchExplainer):
    """Leave one out: drop of the class probability when a patch is filled."""

    fills: ClassVar[bool] = True

    def weigh(self, request: PatchRequest) -> Tensor:
        whole = request.probs.gather(-1, request.aim.unsqueeze(-1))
        parts = [probs.gather(-1, request.aim[index].unsqueeze(-1)) for index, probs in without_patch(request)]
        return whole - torch.cat(parts).view(len(whole), request.units)


@settings
class Lime(PatchExplainer):
    """LIME: a linear model of predictions with filled patches (Ribeiro et al. 2016)."""

    fills: ClassVar[bool] = True

    samples: Annotated[int, Field(ge=64, le=100_000)] = 1000
    """Forward passes with filled patches per image."""
    width: Annotated[float, Field(gt=0)] = 0.25
    """Width of the proximity kernel, in cosine distance."""
    ridge: Annotated[float, Field(gt=0)] = 1.0
    """Ridge penalty, relative to `samples` subsets."""
    seed: int = 0
    """Random seed."""

    def weigh(self, request: PatchRequest) -> Tensor:
        many = max(1, ENTRIES // (self.samples * request.units))
        groups = torch.split(torch.arange(len(request.images)), many)
        return torch.cat([self._fit(request, rows) for rows in groups])

    def _fit(self, request: PatchRequest, rows: Tensor) -> Tensor:
        """(B,) -> (B,D)"""
        units, key = request.units, RandomKey(self.seed).child(1)
        number = torch.arange(self.samples)
        keys = key.scramble(image_key(request.images.pixels[rows]).unsqueeze(-1) + number).flatten()
        noise = key.uniform(keys, 1 + units, dtype=torch.float64)
        size = (noise[:, :1] * (units + 1)).floor()
        z = (noise[:, 1:].argsort(-1).argsort(-1) < size).double()  # the patches of the lowest numbers
        owners = rows.repeat_interleave(self.samples)
        probabilities = request.predict_proba(owners, z).gather(-1, request.aim[owners].unsqueeze(-1))
        kept_share = (size / units).view(len(rows), -1)
        weight = (-((1 - kept_share.sqrt()) ** 2) / (2 * self.width**2)).exp()
        z = z.view(len(rows), self.samples, units)
        return regression(z, probabilities.view(len(rows), -1), weight, self.ridge)


@settings
class Random(PatchExplainer):
    """Random weights between 0 and 1: the baseline of explanations."""

    seed: int = 0
    """Random seed."""

    def weigh(self, request: PatchRequest) -> Tensor:
        key = image_key(request.images.pixels)
        return RandomKey(self.seed).child(3).uniform(key, request.units, dtype=torch.float64)


def without_patch(request: PatchRequest) -> Iterator[tuple[Tensor, Tensor]]:
    """Fill each patch of each image, in order: index of the image (K,), and probabilities (K,C)."""
    for pairs in torch.split(torch.arange(len(request.images) * request.units), together(request.images.shape)):
        index, removed = pairs // request.units, pairs % request.units
        masks = torch.ones(len(pairs), request.units).scatter(1, removed.unsqueeze(1), 0.0)
        yield index, request.predict_proba(index, masks)


def image_key(pixels: Tensor) -> Tensor:
    """Random key of an image, independent of its batch.  (B,C,H,W) -> (B,)"""
    bits = pixels.detach().cpu().float().contiguous().flatten(1).view(torch.int32).long()
    positions = torch.arange(1, bits.shape[1] + 1)
    return RandomKey(1).scramble(bits * 1_000_003 + positions).sum(-1)  # overflow is harmless


IMAGE_EXPLAINERS: dict[str, type[PatchExplainer]] = {
    "gradient": Gradient,
    "leave-one-out": LeaveOneOut,
    "lime": Lime,
    "random": Random,
}
