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
from steadygaze.core.maths import distributions
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.splits import hold_out
from steadygaze.explainers.explainer import GAP, PREDICTED, class_balanced
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import Watch, silent
from steadygaze.explainers.learned.cxplain import CXPlain, EffectTargets, Ensemble, member_bounds, members
from steadygaze.explainers.learned.fit_config import Method, method_name
from steadygaze.explainers.learned.independent_reader import read, uniform_subsets
from steadygaze.explainers.learned.l2x import InputBatch, Rows, SelectorConfig
from steadygaze.explainers.learned.removal_effects import RemovalEffects, RemovalQuery, removal_effects
from steadygaze.explainers.learned.selector_training import SelectorFit
from steadygaze.images.explain_images import PatchWeights
from steadygaze.images.image_box import ImageBox
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, match_shape
from steadygaze.images.patch_explainers import PatchRequest, without_patch
from steadygaze.images.patch_networks import (
    ImageInputs,
    PatchConfig,
    Selector,
    Shape,
    check_k,
    fill_patches,
    image_nets,
)
from steadygaze.models import k_subset
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
    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]: ...

    @abstractmethod
    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Measures of the selections, by name: (N,) each."""

    def predict(self, box: ImageBox, images: Images) -> Tensor:
        """Predictions of the black box; one with other classes is refused.  (N,C)"""
        if box.classes != self.classes:
            raise UserError(
                f"this explainer was fitted to a black box with the classes {list(self.classes)!s:.80} in this order; "
                f"{box.name} has {list(box.classes)!s:.80}"
            )
        return box.predict_proba(match_shape(images, self.shape, "this explainer"))

    def inputs(self, images: Images, probs: Tensor) -> ImageInputs:
        device, pixels = self.fill.device, match_shape(images, self.shape, "this explainer").pixels
        return ImageInputs(pixels.to(device), probs.to(device), self.canvas.units(self.shape))

    def agreement(self, box: ImageBox, images: Images, probs: Tensor, scores: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """The k patches with the highest scores, (N,D), and the measures of `post_hoc`."""
        mask = k_subset.top_k_subset(scores, torch.ones_like(scores, dtype=torch.bool), self.config.k)
        return mask, post_hoc(box, images, probs, mask, self.fill, self.canvas.patch)


class FittedImageSelector(FittedImageMethod):
    config: SelectorConfig

    @property
    def fill(self) -> Tensor:
        fill: Tensor = self.networks["approximator"].fill  # type: ignore[assignment]
        return fill

    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """k patches of each image, with the selection probability as weight; other patches have weight 0."""
        probs = self.predict(box, images)
        scores = self.scores(images, probs)
        selectable = torch.ones_like(scores, dtype=torch.bool)
        floor = torch.finfo(torch.float64).tiny  # every selected patch has a weight above 0
        shares = distributions.softmax(scores.double(), selectable).clamp_min(floor)
        weights = shares * k_subset.top_k_subset(scores, selectable, self.config.k)
        patch_weights = PatchWeights(images, probs, box.classes, weights)
        return patch_weights.explanations(method_name(self.config), self.config.k, self.canvas.patch)

    def scores(self, images: Images, probs: Tensor) -> Tensor:
        """Scores of the selector.  (N,D) on the CPU"""
        inputs, parts = self.inputs(images, probs), []
        with inference(self.networks):
            for rows in inputs.once(READ):
                views = inputs.views(rows)
                parts.append(self.networks["selector"](views, views.probs if self.config.conditioned else None).cpu())
        return torch.cat(parts)

    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Measures of the selections, by name: (N,) each.

        They are agreement of the black box on the selected and the unselected patches, fidelity of the approximator,
        loss of the mask probe in nats, accuracy of the independent reader, and the predicted class.
        """
        probs = self.predict(box, images)
        mask, agreement = self.agreement(box, images, probs, self.scores(images, probs))
        inputs, parts = self.inputs(images, probs), []
        for rows in inputs.once(READ):
            parts.append(self._network_measures(inputs.views(rows), mask[rows].to(self.fill.device)))
        measures = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        if GAP in measures:
            measures[f"{GAP}/black-box"] = measures["fidelity"] - agreement["post-hoc-accuracy"]
        return class_balanced({**agreement, **measures, PREDICTED: probs.argmax(-1)})

    def _network_measures(self, views: InputBatch, mask: Tensor) -> dict[str, Tensor]:
        """Measures of the approximator, the mask probe and the independent reader.  (B,) each, on the CPU"""
        predicted = views.probs.argmax(-1)
        with inference(self.networks):
            logits = self.networks["approximator"](views, mask)
            log_probability = self.networks["probe"](mask).gather(-1, predicted.unsqueeze(-1)).squeeze(-1)
        measures = {"fidelity": logits.argmax(-1) == predicted, "probe-loss": -log_probability}
        if "reader" in self.networks:
            draw = uniform_subsets(self.config.k)
            measures |= read(self.networks["reader"], views, mask, draw, logits).measures(views.probs)
        return {name: values.double().cpu() for name, values in measures.items()}


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

    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """The k top-weighted patches by the members' median, with the members' quantiles."""
        probs, (low, middle, high) = self.predict(box, images), self.bounds(images)
        patch_weights = PatchWeights(images, probs, box.classes, middle, torch.stack([low, high], -1))
        return patch_weights.explanations("cxplain", self.config.k, self.canvas.patch)

    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Agreement of the black box on the k top-weighted patches and on the rest; predicted class.  (N,) each"""
        probs = self.predict(box, images)
        return {**self.agreement(box, images, probs, self.bounds(images)[1])[1], PREDICTED: probs.argmax(-1)}


@dataclass(frozen=True)
class ImageFit:
    """Fits a method to a black box."""

    config: Method
    canvas: PatchConfig
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watcher: Watcher = field(default_factory=SilentWatcher)
    watch: Watch = silent
    """Progress callback of the queries."""

    def fit(self, box: ImageBox, images: Images, validation: Images, keep: Path | None = None) -> FittedImageMethod:
        """Fit to the black box's predictions; `validation` chooses the epoch.

        `keep`: a folder that caches the predictions, so that a failed fit can be resumed.
        """
        shape = match_shape(validation, images.shape, "the training set", images.whole).shape
        units, patch = self.canvas.units(shape), self.canvas.patch
        check_k(self.config.k, units, shape)  # fail before the first query
        fill = self.canvas.blank(images.pixels, images.whole)

        def query(name: str, part: Images) -> tuple[ImageInputs, PatchRequest]:
            probs = box.answers(part, None if keep is None else keep / name, self.watch)
            inputs = ImageInputs(part.pixels.to(self.device), probs.float().to(self.device), units)
            return inputs, PatchRequest(box, part, probs, fill, patch, units)

        (train, train_request), (held_out, held_out_request) = query("train", images), query("held-out", validation)
        run = self.watcher, self.device, self.seed
        if not isinstance(self.config, CXPlain):
            make = partial(image_nets, self.config, shape, len(box.classes), patch, fill)
            selector = SelectorFit(self.config, make, train, held_out, *run)
            nets = selector.execute()
            return FittedImageSelector(self.config, self.canvas, shape, box.classes, nets, selector.history)
        train_targets, targets = (
            EffectTargets(
                inputs, image_effects(request, None if keep is None else keep / f"{name}-effects", self.watch)
            )
            for name, inputs, request in (("train", train, train_request), ("held-out", held_out, held_out_request))
        )
        ensemble = Ensemble(self.config, partial(image_member, self.config, shape, patch), train_targets, targets, *run)
        nets = ensemble.execute()
        nets.register_buffer("fill", fill.to(self.device))
        return FittedImageCXPlain(self.config, self.canvas, shape, box.classes, nets, ensemble.history)


def image_member(how: CXPlain, shape: Shape, patch: int) -> Selector:
    """An untrained member of CXPlain for images."""
    return Selector(shape, patch, 0, how.hidden, how.dropout)


def untrained_image_networks(how: Method, shape: Shape, classes: int, patch: int) -> nn.ModuleDict:
    if not isinstance(how, CXPlain):
        return image_nets(how, shape, classes, patch)
    nets = members(how, partial(image_member, how, shape, patch))
    nets.register_buffer("fill", torch.zeros(shape))
    return nets


def image_effects(request: PatchRequest, folder: Path | None, watch: Watch = silent) -> RemovalEffects:
    """Effect of filling each patch on the prediction; `folder` caches the predictions."""
    identity = {"images": digest_values(request.images.as_given(), request.fill.numpy()), "patch": request.patch}
    cache = AnswerCache(folder, {**identity, "model": request.black_box.identity})

    def predict(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        index = torch.from_numpy(rows)
        part = request.images.of(request.images.pixels[index])
        yield from without_patch(replace(request, images=part, probs=request.probs[index]))

    def batches(rows: Rows) -> list[Rows]:
        return [rows[start : start + TOGETHER] for start in range(0, len(rows), TOGETHER)]

    return removal_effects(RemovalQuery(predict, batches), request.probs, request.aim, cache, watch)


def post_hoc(box: ImageBox, images: Images, probs: Tensor, kept: Tensor, fill: Tensor, patch: int) -> dict[str, Tensor]:
    """Agreement of the black box on the kept patches alone, and on the others alone.  (N,D) -> (N,) each

    Chen et al. 2018 (arXiv:1802.07814), §4; Bai et al. 2021, A.3, with average values as fill.
    """
    predicted, blank, kept = probs.argmax(-1), fill.cpu(), kept.cpu().to(images.pixels.dtype)
    masks = {"post-hoc-accuracy": kept, "post-hoc-accuracy/unselected": 1 - kept}
    return {
        name: (
            box.predict_proba(images.of(fill_patches(images.pixels, mask, blank, patch))).argmax(-1) == predicted
        ).double()
        for name, mask in masks.items()
    }


def hold_out_images(images: Images) -> tuple[Images, Images]:
    """Split off a tenth; the split does not depend on the seed of a run."""
    train, held_out = hold_out(len(images))
    return images.of(images.pixels[train]), images.of(images.pixels[held_out])
