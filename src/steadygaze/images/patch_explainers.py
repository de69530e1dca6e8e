"""Explainers of images that learn nothing beforehand.  One number for each patch.

gradient        Σ |∂p_c/∂x| over the colours and pixels of the patch        Simonyan et al. 2014 (arXiv:1312.6034)
leave-one-out   p_c(x) − p_c(x with the fill in the patch's place)
lime            the straight line of explainers/lime.py, through images of which some patches are filled
random          drawn from the image's own chance: what an explanation must be better than

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
from steadygaze.images.image_box import ImageBox, together
from steadygaze.images.image_inputs import Images
from steadygaze.images.patch_networks import fill_patches
from steadygaze.models.inference import with_gradients

ENTRIES = 1 << 22
"""Samples × patches that LIME holds at once, in doubles."""


@dataclass(frozen=True)
class PatchRequest:
    """Some images, and what is asked about them."""

    black_box: ImageBox
    images: Images
    probs: Tensor  # (N,C)
    fill: Tensor  # (C,H,W)
    patch: int
    units: int

    @property
    def aim(self) -> Tensor:
        """(N,)"""
        return self.probs.argmax(-1)

    def predict_proba(self, rows: Tensor, kept: Tensor) -> Tensor:
        """Of K images, named by their rows, of which these patches are left.  (K,), (K,D) -> (K,C)"""
        many, pixels = together(self.images.shape), self.images.pixels
        found = []
        for of, left in zip(torch.split(rows, many), torch.split(kept, many), strict=True):
            shown = fill_patches(pixels[of], left, self.fill, self.patch)  # K whole images need not be held at once
            found.append(self.black_box.predict_proba(self.images.of(shown)))
        return torch.cat(found)


class PatchExplainer(ABC):
    fills: ClassVar[bool] = False
    """Whether it shows the black box images of which patches are filled."""

    @abstractmethod
    def weigh(self, asked: PatchRequest) -> Tensor:
        """(N,D)"""


@settings
class Gradient(PatchExplainer):
    """Gradient: how far the prediction moves with each pixel; needs a torch network."""

    def weigh(self, asked: PatchRequest) -> Tensor:
        network, aim = asked.black_box.network, asked.aim
        if network is None:
            raise UserError(
                f"gradient needs a torch network to look into, and {asked.black_box.name} gives probabilities alone: "
                f"leave-one-out, lime and random do without"
            )
        found, many = [], together(asked.images.shape)
        with with_gradients(network):
            for pixels, of in zip(torch.split(asked.images.pixels, many), torch.split(aim, many), strict=True):
                x = pixels.to(asked.black_box.device).requires_grad_()
                chance = network(x).double().softmax(-1).cpu().gather(-1, of.unsqueeze(-1))
                (slope,) = torch.autograd.grad(chance.sum(), x)  # not .backward(): .grad is the user's
                found.append(slope.double().abs().sum(1, keepdim=True).cpu())
        return (avg_pool2d(torch.cat(found), asked.patch) * asked.patch**2).flatten(1)


@settings
class LeaveOneOut(PatchExplainer):
    """Leave one out: what the prediction loses when a patch is filled."""

    fills: ClassVar[bool] = True

    def weigh(self, asked: PatchRequest) -> Tensor:
        whole = asked.probs.gather(-1, asked.aim.unsqueeze(-1))
        found = [probs.gather(-1, asked.aim[of].unsqueeze(-1)) for of, probs in without_patch(asked)]
        return whole - torch.cat(found).view(len(whole), asked.units)


@settings
class Lime(PatchExplainer):
    """LIME: what a straight line makes of predictions with patches filled (Ribeiro et al. 2016)."""

    fills: ClassVar[bool] = True

    samples: Annotated[int, Field(ge=64, le=100_000)] = 1000
    """How often the image is seen with patches filled."""
    width: Annotated[float, Field(gt=0)] = 0.25
    """How fast an image counts less as it loses patches, in cosine distance."""
    ridge: Annotated[float, Field(gt=0)] = 1.0
    """How strongly weights are drawn to 0, against `samples` readings."""
    seed: int = 0
    """What is drawn is drawn from it and the image."""

    def weigh(self, asked: PatchRequest) -> Tensor:
        many = max(1, ENTRIES // (self.samples * asked.units))
        groups = torch.split(torch.arange(len(asked.images)), many)
        return torch.cat([self._line(asked, rows) for rows in groups])

    def _line(self, asked: PatchRequest, rows: Tensor) -> Tensor:
        """(B,) -> (B,D)"""
        units, chance = asked.units, RandomKey(self.seed).child(1)
        number = torch.arange(self.samples)
        keys = chance.scramble(image_key(asked.images.pixels[rows]).unsqueeze(-1) + number).flatten()
        drawn = chance.uniform(keys, 1 + units, dtype=torch.float64)
        size = (drawn[:, :1] * (units + 1)).floor()
        z = (drawn[:, 1:].argsort(-1).argsort(-1) < size).double()  # the patches of the lowest numbers
        whose = rows.repeat_interleave(self.samples)
        chances = asked.predict_proba(whose, z).gather(-1, asked.aim[whose].unsqueeze(-1)).view(len(rows), -1)
        left = (size / units).view(len(rows), -1)
        weight = (-((1 - left.sqrt()) ** 2) / (2 * self.width**2)).exp()
        return regression(z.view(len(rows), self.samples, units), chances, weight, self.ridge)


@settings
class Random(PatchExplainer):
    """Random numbers between 0 and 1: what an explanation must be better than."""

    seed: int = 0
    """What is drawn is drawn from it and the image."""

    def weigh(self, asked: PatchRequest) -> Tensor:
        key = image_key(asked.images.pixels)
        return RandomKey(self.seed).child(3).uniform(key, asked.units, dtype=torch.float64)


def without_patch(asked: PatchRequest) -> Iterator[tuple[Tensor, Tensor]]:
    """Each image without each of its patches, first image first: whose it is (K,), and what the box says (K,C)."""
    for pairs in torch.split(torch.arange(len(asked.images) * asked.units), together(asked.images.shape)):
        of, gone = pairs // asked.units, pairs % asked.units
        kept = torch.ones(len(pairs), asked.units).scatter(1, gone.unsqueeze(1), 0.0)
        yield of, asked.predict_proba(of, kept)


def image_key(pixels: Tensor) -> Tensor:
    """A number that belongs to the image, whatever batch it stands in.  (B,C,H,W) -> (B,)"""
    bits = pixels.detach().cpu().float().contiguous().flatten(1).view(torch.int32).long()
    places = torch.arange(1, bits.shape[1] + 1)
    return RandomKey(1).scramble(bits * 1_000_003 + places).sum(-1)  # wraps around, as it may


IMAGE_EXPLAINERS: dict[str, type[PatchExplainer]] = {
    "gradient": Gradient,
    "leave-one-out": LeaveOneOut,
    "lime": Lime,
    "random": Random,
}
