"""Explainers fitted to a black box's predictions for images, and measures of their selections.

A selector (L2X, VIBI, AIL) selects k patches.  CXPlain learns the effect of filling each patch; its members are
selectors without `conditioned`.  CXPlain's released code has a U-Net here, and the paper fills with zero.

The fill is saved with the networks: approximator and black box get the same pixels.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.maths import k_subset
from steadygaze.core.types import Label, OnProgress, no_progress
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.splits import hold_out
from steadygaze.explainers.explainer import GAP, PREDICTED, class_balanced
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.cxplain import CXPlain, member_bounds, members
from steadygaze.explainers.learned.fit_config import Method, method_name
from steadygaze.explainers.learned.fitted_explainer import fit_networks, selection_weights, selector_measures
from steadygaze.explainers.learned.l2x import Rows, SelectorConfig
from steadygaze.explainers.learned.removal_effects import RemovalEffects, RemovalQuery, removal_effects
from steadygaze.images.explain_images import patch_explanations
from steadygaze.images.image_black_box import ImageBlackBox
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, match_shape
from steadygaze.images.patch_explainers import PatchRequest, without_patch
from steadygaze.images.patch_networks import (
    ImageInputs,
    PatchConfig,
    Selector,
    Shape,
    check_k,
    cut_rows,
    fill_patches,
    image_nets,
)
from steadygaze.models.inference import inference
from steadygaze.training.progress import SilentWatcher, Watcher

READ = 512
"""Images per forward pass."""
TOGETHER = 8
"""Images per cache entry: the most that a failure of the black box loses."""


@dataclass(frozen=True)
class FittedImageMethod(ABC):
    config: Any
    canvas: PatchConfig
    shape: Shape
    classes: tuple[Label, ...]
    networks: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    @abstractmethod
    def fill(self) -> Tensor:
        """(C,H,W)"""

    @abstractmethod
    def explain(self, box: ImageBlackBox, images: Images) -> list[ImageExplanation]: ...

    @abstractmethod
    def measured(self, box: ImageBlackBox, images: Images) -> dict[str, Tensor]:
        """Measures of the selections, by name: (N,) each."""

    def check_classes(self, box: ImageBlackBox) -> None:
        """Refuse a black box with other classes."""
        if box.classes != self.classes:
            raise UserError(
                f"this explainer was fitted to a black box with the classes {list(self.classes)!s:.80} in this order; "
                f"{box.name} has {list(box.classes)!s:.80}"
            )

    def predict(self, box: ImageBlackBox, images: Images) -> Tensor:
        """Predictions of the black box.  (N,C)"""
        self.check_classes(box)
        return box.predict_proba(match_shape(images, self.shape, "this explainer"))

    def inputs(self, images: Images, probs: Tensor) -> ImageInputs:
        device, pixels = self.fill.device, match_shape(images, self.shape, "this explainer").pixels
        return ImageInputs(pixels.to(device), probs.to(device), self.canvas.units(self.shape))

    def agreement(
        self, box: ImageBlackBox, images: Images, probs: Tensor, scores: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        """The k patches with the highest scores, (N,D), and the measures of `post_hoc`."""
        mask = k_subset.top_k_subset(scores, torch.ones_like(scores, dtype=torch.bool), self.config.k)
        return mask, post_hoc(box, images, probs, mask, self.fill, self.canvas.patch)


class FittedImageSelector(FittedImageMethod):
    config: SelectorConfig

    @property
    def fill(self) -> Tensor:
        fill: Tensor = self.networks["approximator"].fill  # type: ignore[assignment]
        return fill

    def explain(self, box: ImageBlackBox, images: Images) -> list[ImageExplanation]:
        """k patches of each image, with the selection probability as weight; other patches have weight 0."""
        probs = self.predict(box, images)
        scores = self.scores(images, probs)
        weights = selection_weights(scores, torch.ones_like(scores, dtype=torch.bool), self.config.k)
        name, k, patch = method_name(self.config), self.config.k, self.canvas.patch
        return patch_explanations(images, probs, box.classes, weights, name, k, patch)

    def scores(self, images: Images, probs: Tensor) -> Tensor:
        """Scores of the selector.  (N,D) on the CPU"""
        inputs, parts = self.inputs(images, probs), []
        with inference(self.networks):
            for rows in inputs.once(READ):
                views = inputs.views(rows)
                parts.append(self.networks["selector"](views, views.probs if self.config.conditioned else None).cpu())
        return torch.cat(parts)

    def measured(self, box: ImageBlackBox, images: Images) -> dict[str, Tensor]:
        """Measures of the selections, by name: (N,) each.

        Agreement of the black box on the selected and on the unselected patches.  Fidelity of the approximator.  Loss
        of the mask probe in nats.  Accuracy of the independent reader.  The predicted class.
        """
        probs = self.predict(box, images)
        mask, agreement = self.agreement(box, images, probs, self.scores(images, probs))
        inputs, parts = self.inputs(images, probs), []
        for rows in inputs.once(READ):
            views, selected = inputs.views(rows), mask[rows].to(self.fill.device)
            parts.append(selector_measures(self.config, self.networks, views, selected, views.probs))
        measures = {name: torch.cat([part[name].double().cpu() for part in parts]) for name in parts[0]}
        if GAP in measures:
            measures[f"{GAP}/black-box"] = measures["fidelity"] - agreement["post-hoc-accuracy"]
        return class_balanced({**agreement, **measures, PREDICTED: probs.argmax(-1)})


class FittedImageCXPlain(FittedImageMethod):
    config: CXPlain

    @property
    def fill(self) -> Tensor:
        return self.networks.get_buffer("fill")

    def bounds(self, images: Images) -> Tensor:
        """Low quantile, median and high quantile of the members' weights.  (3,N,D)"""
        inputs = self.inputs(images, torch.zeros(len(images), 0))
        parts = [member_bounds(self.config, self.networks, inputs.views(rows)).cpu() for rows in inputs.once(READ)]
        return torch.cat(parts, 1)

    def explain(self, box: ImageBlackBox, images: Images) -> list[ImageExplanation]:
        """The k top-weighted patches by the members' median, with the members' quantiles."""
        probs, (low, middle, high) = self.predict(box, images), self.bounds(images)
        k, patch, bounds = self.config.k, self.canvas.patch, torch.stack([low, high], -1)
        return patch_explanations(images, probs, box.classes, middle, "cxplain", k, patch, bounds)

    def measured(self, box: ImageBlackBox, images: Images) -> dict[str, Tensor]:
        """Agreement of the black box on the k top-weighted patches and on the rest; predicted class.  (N,) each"""
        probs = self.predict(box, images)
        return {**self.agreement(box, images, probs, self.bounds(images)[1])[1], PREDICTED: probs.argmax(-1)}


@dataclass(frozen=True)
class ImageFit:
    config: Method
    canvas: PatchConfig
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watcher: Watcher = field(default_factory=SilentWatcher)
    on_progress: OnProgress = no_progress
    """Progress callback of the queries."""

    def fit(
        self, box: ImageBlackBox, images: Images, validation: Images, keep: Path | None = None
    ) -> FittedImageMethod:
        """Fit to the black box's predictions; `validation` chooses the epoch.

        `keep`: a folder that caches the predictions, so that a failed fit can be resumed.
        """
        shape = match_shape(validation, images.shape, "the training set", images.whole).shape
        units, patch = self.canvas.units(shape), self.canvas.patch
        check_k(self.config.k, units, shape)  # fail before the first query
        fill = self.canvas.blank(images.pixels, images.whole)

        inputs, requests = [], []
        for name, part in (("train", images), ("held-out", validation)):
            probs = box.answers(part, None if keep is None else keep / name, self.on_progress)
            inputs.append(ImageInputs(part.pixels.to(self.device), probs.float().to(self.device), units))
            requests.append((PatchRequest(box, part, probs, fill, patch, units), keep and keep / f"{name}-effects"))

        def effects(_: CXPlain, split: int) -> RemovalEffects:
            return image_effects(*requests[split], self.on_progress)

        make = partial(untrained_image_networks, self.config, shape, len(box.classes), self.canvas, fill)
        networks, history = fit_networks(self.config, make, inputs, effects, self.watcher, self.device, self.seed)
        fitted_as = FittedImageCXPlain if isinstance(self.config, CXPlain) else FittedImageSelector
        return fitted_as(self.config, self.canvas, shape, box.classes, networks, history)


def untrained_image_networks(
    config: Method, shape: Shape, classes: int, canvas: PatchConfig, fill: Tensor | None = None
) -> nn.ModuleDict:
    """Networks that save the fill."""
    if not isinstance(config, CXPlain):
        return image_nets(config, shape, classes, canvas, fill)
    nets = members(config, partial(Selector, shape, canvas.patch, 0, config.hidden, config.dropout))
    nets.register_buffer("fill", torch.zeros(shape) if fill is None else fill.clone())
    return nets


def image_effects(request: PatchRequest, folder: Path | None, on_progress: OnProgress = no_progress) -> RemovalEffects:
    """Effect of filling each patch on the prediction; `folder` caches the predictions."""
    identity = {"images": digest_values(request.images.as_given(), request.fill.numpy()), "patch": request.patch}
    cache = AnswerCache(folder, {**identity, "model": request.black_box.identity})

    def predict(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        index = torch.from_numpy(rows)
        part = request.images.of(request.images.pixels[index])
        yield from without_patch(replace(request, images=part, probs=request.probs[index]))

    removing = RemovalQuery(predict, partial(cut_rows, size=TOGETHER))
    return removal_effects(removing, request.probs, request.aim, cache, on_progress)


def post_hoc(
    box: ImageBlackBox, images: Images, probs: Tensor, selection: Tensor, fill: Tensor, patch: int
) -> dict[str, Tensor]:
    """Agreement of the black box on the selected patches alone, and on the others alone.  (N,D) -> (N,) each

    Chen et al. 2018 (arXiv:1802.07814), §4; Bai et al. 2021, A.3, with average values as fill.
    """
    predicted, blank, selection = probs.argmax(-1), fill.cpu(), selection.cpu().to(images.pixels.dtype)
    masks = {"post-hoc-accuracy": selection, "post-hoc-accuracy/unselected": 1 - selection}
    agreement = {}
    for name, mask in masks.items():
        probabilities = box.predict_proba(images.of(fill_patches(images.pixels, mask, blank, patch)))
        agreement[name] = (probabilities.argmax(-1) == predicted).double()
    return agreement


def hold_out_images(images: Images) -> tuple[Images, Images]:
    """Split off a tenth; the split does not depend on the seed of a run."""
    train, held_out = hold_out(len(images))
    return images.of(images.pixels[train]), images.of(images.pixels[held_out])
