"""Images explained by what learns nothing beforehand, and weights made into explanations."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from steadygaze.errors import UserError, unknown
from steadygaze.explain.learned.images import Canvas, refuse_many
from steadygaze.images.box import as_image_box
from steadygaze.images.explainers import IMAGE_EXPLAINERS, Asked, ImageExplainer
from steadygaze.images.explanation import ImageExplanation
from steadygaze.images.pixels import Images, read_images
from steadygaze.types import Label

SELECTED = 25
"""Patches that are selected unless another number is said."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What an explainer said of some images."""

    images: Images
    probs: Tensor  # (N,C)
    classes: tuple[Label, ...]
    weights: Tensor  # (N,D)

    def explanations(self, explainer: str, k: int, patch: int) -> list[ImageExplanation]:
        """One for each image."""
        _, height, width = self.images.shape
        weights = self.weights.double().cpu().view(-1, height // patch, width // patch).numpy()
        given, found = self.images.as_given(), []
        for image, weight, probs in zip(given, weights, self.probs.tolist(), strict=True):
            label = self.classes[probs.index(max(probs))]
            chances = dict(zip(self.classes, probs, strict=True))
            found.append(ImageExplanation(image, weight, patch, k, label, chances, explainer))
        return found


def explain_images(
    black_box: Any,
    X: Any,
    explainer: str | ImageExplainer = "gradient",
    k: int = SELECTED,
    canvas: Canvas | None = None,
) -> list[ImageExplanation]:
    """Why the black box says what it says of each image: the k patches that weigh most.

    A fill of "mean" is the average of these images.
    """
    box, images, canvas = as_image_box(black_box), read_images(X), canvas or Canvas()
    name, way = chosen(explainer)
    units = canvas.units(images.shape)
    check_k(k, units, images)
    fill = canvas.blank(images.pixels, images.whole) if way.fills else torch.zeros(images.shape)
    asked = Asked(box, images, box.said(images), fill, canvas.patch, units)
    weighed = Weighed(images, asked.probs, box.classes, way.weigh(asked))
    return weighed.explanations(name, k, canvas.patch)


def chosen(given: str | ImageExplainer) -> tuple[str, ImageExplainer]:
    """An explainer of images, and what explanations call it."""
    if isinstance(given, ImageExplainer):
        return next(
            (name for name, kind in IMAGE_EXPLAINERS.items() if type(given) is kind), type(given).__name__
        ), given
    if given not in IMAGE_EXPLAINERS:
        raise unknown("explainer of images", given, IMAGE_EXPLAINERS)
    return given, IMAGE_EXPLAINERS[given]()


def check_k(k: int, units: int, images: Images) -> None:
    if k < 1:
        raise UserError(f"k is {k!r}; it must be 1 or more")
    refuse_many(k, units, images.shape)
