"""Selectors fitted to a black box's predictions for images, and measures of their selections.

The fill is saved with the networks: approximator and black box get the same pixels.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.maths import masked
from steadygaze.core.types import Label
from steadygaze.data.splits import hold_out
from steadygaze.explainers.explainer import GAP, PREDICTED, class_balanced
from steadygaze.explainers.learned.black_box_queries import Watch, silent
from steadygaze.explainers.learned.fit_config import method_name
from steadygaze.explainers.learned.independent_reader import read, uniform_subsets
from steadygaze.explainers.learned.selector import InputBatch, SelectorConfig
from steadygaze.explainers.learned.selector_training import SelectorFit
from steadygaze.images.explain_images import PatchWeights, check_k
from steadygaze.images.image_box import ImageBox
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, match_shape
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, Shape, fill_patches, image_nets
from steadygaze.models import k_subset
from steadygaze.models.inference import inference
from steadygaze.training.progress import SilentWatcher, Watcher

READ = 512
"""Images per forward pass."""


@dataclass(frozen=True)
class FittedImageSelector:
    config: SelectorConfig
    canvas: PatchConfig
    shape: Shape
    classes: tuple[Label, ...]
    networks: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return method_name(self.config)

    @property
    def fill(self) -> Tensor:
        """(C,H,W)"""
        fill: Tensor = self.networks["approximator"].fill  # type: ignore[assignment]
        return fill

    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """k patches of each image, with the selection probability as weight; other patches have weight 0."""
        probs = box.predict_proba(self._checked(box, images))
        scores = self.scores(images, probs)
        able = torch.ones_like(scores, dtype=torch.bool)
        floor = torch.finfo(torch.float64).tiny  # every selected patch has a weight above 0
        shares = masked.softmax(scores.double(), able).clamp_min(floor)
        weights = shares * k_subset.top_k_subset(scores, able, self.config.k)
        return PatchWeights(images, probs, box.classes, weights).explanations(
            self.name, self.config.k, self.canvas.patch
        )

    def scores(self, images: Images, probs: Tensor) -> Tensor:
        """Scores of the selector.  (N,D) on the CPU"""
        inputs, parts = self._inputs(images, probs), []
        with inference(self.networks):
            for rows in inputs.once(READ):
                views = inputs.views(rows)
                parts.append(self.networks["selector"](views, views.probs if self.config.query else None).cpu())
        return torch.cat(parts)

    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Measures of the selections, by name: (N,) each.

        They are agreement of the black box on the selected and the unselected patches, fidelity of the approximator,
        loss of the mask probe in nats, accuracy of the independent reader, and the predicted class.
        """
        probs = box.predict_proba(self._checked(box, images))
        scores = self.scores(images, probs)
        mask = k_subset.top_k_subset(scores, torch.ones_like(scores, dtype=torch.bool), self.config.k)
        agreement = post_hoc(box, images, probs, mask, self.fill, self.canvas.patch)
        inputs, parts = self._inputs(images, probs), []
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
            log_probability = self.networks["judge"](mask).gather(-1, predicted.unsqueeze(-1)).squeeze(-1)
        measures = {"fidelity": logits.argmax(-1) == predicted, "probe-loss": -log_probability}
        if "reader" in self.networks:
            draw = uniform_subsets(self.config.k)
            measures |= read(self.networks["reader"], views, mask, draw, logits).measures(views.probs)
        return {name: values.double().cpu() for name, values in measures.items()}

    def _inputs(self, images: Images, probs: Tensor) -> ImageInputs:
        device = self.fill.device
        return ImageInputs(images.pixels.to(device), probs.to(device), self.canvas.units(self.shape))

    def _checked(self, box: ImageBox, images: Images) -> Images:
        if box.classes != self.classes:
            raise UserError(
                f"this explainer was fitted to a black box with the classes {list(self.classes)!s:.80} in this order; "
                f"{box.name} has {list(box.classes)!s:.80}"
            )
        return match_shape(images, self.shape, "this explainer")


@dataclass(frozen=True)
class ImageSelectorFit:
    how: SelectorConfig
    canvas: PatchConfig
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watcher: Watcher = field(default_factory=SilentWatcher)
    watch: Watch = silent
    """Progress callback of the queries."""

    def fit(self, box: ImageBox, images: Images, validation: Images, keep: Path | None = None) -> FittedImageSelector:
        """Fit a selector to the black box's predictions; `validation` chooses the epoch.

        `keep`: a folder that caches the predictions, so that a failed fit can be resumed.
        """
        shape = match_shape(validation, images.shape, "the training set", images.whole).shape
        check_k(self.how.k, self.canvas.units(shape), shape)  # fail before the first query
        fill = self.canvas.blank(images.pixels, images.whole)
        make = partial(image_nets, self.how, shape, len(box.classes), self.canvas.patch, fill)
        splits = self._inputs(box, images, keep, "train"), self._inputs(box, validation, keep, "held-out")
        fit = SelectorFit(self.how, make, *splits, self.watcher, self.device, self.seed)
        return FittedImageSelector(self.how, self.canvas, shape, box.classes, fit.execute(), fit.history)

    def _inputs(self, box: ImageBox, images: Images, keep: Path | None, name: str) -> ImageInputs:
        probs = box.answers(images, None if keep is None else keep / name, self.watch)
        return ImageInputs(
            images.pixels.to(self.device), probs.float().to(self.device), self.canvas.units(images.shape)
        )


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
