"""Explain images with a patch explainer or a fitted explainer."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.arguments import validated
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label
from steadygaze.estimator.explainer_folder import SavedExplainer
from steadygaze.images.image_black_box import ImageBlackBox, as_image_black_box
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, read_images
from steadygaze.images.patch_explainers import IMAGE_EXPLAINERS, PatchExplainer, PatchRequest
from steadygaze.images.patch_networks import PatchConfig, check_k

SELECTED = 25
"""Default number of selected patches."""


def patch_explanations(
    images: Images,
    probs: Tensor,
    classes: tuple[Label, ...],
    weights: Tensor,
    explainer: str,
    k: int,
    patch: int,
    bounds: Tensor | None = None,
) -> list[ImageExplanation]:
    """One explanation for each image.  (N,C), (N,D); `bounds`: low and high (N,D,2)"""
    _, height, width = images.shape
    grid = height // patch, width // patch
    arrays, patch_bounds = images.as_given(), [None] * len(images)
    if bounds is not None:
        patch_bounds = list(bounds.double().cpu().view(-1, *grid, 2).numpy())
    explanations = []
    rows = zip(arrays, weights.double().cpu().view(-1, *grid).numpy(), probs.tolist(), patch_bounds, strict=True)
    for image, weight, own_probs, bound in rows:
        label, probabilities = classes[own_probs.index(max(own_probs))], dict(zip(classes, own_probs, strict=True))
        explanations.append(ImageExplanation(image, weight, patch, k, label, probabilities, explainer, bound))
    return explanations


class FittedImageExplainer(SavedExplainer):
    black_box: ImageBlackBox

    @abstractmethod
    def explain_of(self, box: ImageBlackBox, images: Images) -> list[ImageExplanation]:
        """Explain the predictions of a black box with the same weights."""


@validated()
def explain_images(
    black_box: Any,
    X: Any,
    explainer: str | PatchExplainer | FittedImageExplainer = "gradient",
    k: int | None = None,
    canvas: PatchConfig | None = None,
    classes: Sequence[Label] | None = None,
) -> list[ImageExplanation]:
    """Explain images by the top-weighted patches of each; commands, audits and image files are not supported.

    Parameters
    ----------
    black_box : ImageClassifier, torch network, object with `predict_proba`, or function
        The classifier.  A network maps pixels (N, C, H, W) between 0 and 1 to logits, or to an output with `logits`,
        as image classifiers of transformers do.
    X : array or list of arrays
        Images of shape (N, H, W) or (N, H, W, C), whole numbers (uint8) or floats from 0 to 1.
    explainer : str, PatchExplainer or fitted explainer, default="gradient"
        gradient, leave-one-out, lime or random, or the result of `sg.fit_explainer`, which has its own k and canvas.
    k : int, default=None
        Number of patches; None: 25.
    canvas : PatchConfig, default=None
        Size of the patches and fill; None: single pixels, and the mean training image if it is known, else gray.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.

    Returns
    -------
    list of ImageExplanation
        One per image.

    Examples
    --------
    >>> import numpy as np
    >>> import steadygaze as sg
    >>> def bright(images): return [[0.1, 0.9] if image[0, 0] > 0.5 else [0.8, 0.2] for image in images]
    >>> images = np.zeros((1, 4, 4)); images[0, 0, 0] = 1.0
    >>> (explanation,) = sg.explain_images(bright, images, "leave-one-out", k=1, classes=["dark", "bright"])
    >>> explanation.label
    'bright'
    """
    box, images = as_image_black_box(black_box, classes), read_images(X)
    if isinstance(explainer, FittedImageExplainer):
        if k is not None or canvas is not None:
            raise UserError("a fitted explainer has the k, patch and fill of its fit: remove these arguments")
        return explainer.explain_of(box, images)
    name, method = resolve_image_explainer(explainer)
    canvas = canvas or PatchConfig(fill="gray" if box.mean is None else "mean")
    units = canvas.units(images.shape)
    k = check_k(SELECTED if k is None else k, units, images.shape)
    fill = _fill(canvas, box, images) if method.fills else torch.zeros(images.shape)
    request = PatchRequest(box, images, box.predict_proba(images), fill, canvas.patch, units)
    return patch_explanations(images, request.probs, box.classes, method.weigh(request), name, k, canvas.patch)


def resolve_image_explainer(explainer: Any) -> tuple[str, PatchExplainer]:
    if isinstance(explainer, PatchExplainer):
        kind = type(explainer)
        return next((name for name, own in IMAGE_EXPLAINERS.items() if kind is own), kind.__name__), explainer
    if not isinstance(explainer, str) or explainer not in IMAGE_EXPLAINERS:
        raise unknown("explainer of images", explainer, IMAGE_EXPLAINERS)
    return explainer, IMAGE_EXPLAINERS[explainer]()


def _fill(canvas: PatchConfig, box: ImageBlackBox, images: Images) -> Tensor:
    """The fill, independent of the other images.  (C,H,W)"""
    if canvas.fill != "mean":
        return canvas.blank(images.pixels[:1], images.whole)
    if box.mean is None:
        raise UserError(
            f"the mean image of {box.name} is not known, because it is not an ImageClassifier: choose the fill zero or "
            f"gray"
        )
    return box.mean
