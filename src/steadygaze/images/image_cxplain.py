"""CXPlain for images: how much each patch matters, learnt from what filling it costs.

explainers/learned/cxplain.py and effects.py say how.  The members are selectors that are not told what the black box
says;
the fill is kept with their weights.

Departs from the released code, which has a U-Net here, and from the paper, which fills with zero: the canvas says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.core.types import Label
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned.answer_cache import AnswerCache, digest
from steadygaze.explainers.learned.black_box_queries import Watch, silent
from steadygaze.explainers.learned.cxplain import CXPlain, Ensemble, member_bounds
from steadygaze.explainers.learned.cxplain import EffectTargets as Worth
from steadygaze.explainers.learned.removal_effects import RemovalQuery, removal_effects
from steadygaze.explainers.learned.selector import Rows
from steadygaze.images.explain_images import PatchWeights, check_k
from steadygaze.images.fitted_images import READ, post_hoc
from steadygaze.images.image_box import ImageBox
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, match_shape
from steadygaze.images.patch_explainers import PatchRequest, without_patch
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, Selector, Shape
from steadygaze.models import k_subset
from steadygaze.training.progress import SilentWatcher, Watcher

TOGETHER = 8
"""Images whose differences are kept at once: what a black box that fails costs, at most."""


@dataclass(frozen=True)
class FittedImageCXPlain:
    """A fitted CXPlain."""

    config: CXPlain
    canvas: PatchConfig
    shape: Shape
    classes: tuple[Label, ...]
    networks: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def fill(self) -> Tensor:
        """(C,H,W)"""
        return self.networks.get_buffer("fill")

    def worth(self, images: Images) -> Tensor:
        """Low quantile, median and high quantile of what the members give each patch.  (3,N,D)"""
        device, units = self.fill.device, self.canvas.units(self.shape)
        pixels = match_shape(images, self.shape, "this explainer").pixels.to(device)
        inputs = ImageInputs(pixels, torch.zeros(len(images), 0, device=device), units)
        return torch.cat(
            [member_bounds(self.config, self.networks, inputs.views(rows)).cpu() for rows in inputs.once(READ)], 1
        )

    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """The k patches that matter most, by the members' median; and between what most of the members are."""
        low, middle, high = self.worth(images)
        weighed = PatchWeights(images, box.predict_proba(images), box.classes, middle, torch.stack([low, high], -1))
        return weighed.explanations("cxplain", self.config.k, self.canvas.patch)

    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Whether the black box says the same of the k heaviest patches, and of the rest; and the class.  (N,) each"""
        middle = self.worth(images)[1]
        kept = k_subset.top_k_subset(middle, torch.ones_like(middle, dtype=torch.bool), self.config.k)
        probs = box.predict_proba(images)
        return {**post_hoc(box, images, probs, kept, self.fill, self.canvas.patch), PREDICTED: probs.argmax(-1)}


@dataclass(frozen=True)
class ImageCXPlainFit:
    how: CXPlain
    canvas: PatchConfig
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watcher: Watcher = field(default_factory=SilentWatcher)
    watch: Watch = silent
    """Told while the black box is asked."""

    def fit(self, box: ImageBox, images: Images, validation: Images, keep: Path | None = None) -> FittedImageCXPlain:
        """Ask the black box about every image without each of its patches, and fit the members to what that costs."""
        shape = match_shape(validation, images.shape, "the training set", images.whole).shape
        units = self.canvas.units(shape)
        check_k(self.how.k, units, shape)
        fill = self.canvas.blank(images.pixels, images.whole)
        make = partial(Selector, shape, self.canvas.patch, 0, self.how.hidden, self.how.dropout)
        train, held_out = (
            self._worth(
                PatchRequest(box, part, self._said(box, part, keep, name), fill, self.canvas.patch, units), keep, name
            )
            for name, part in (("train", images), ("held-out", validation))
        )
        ensemble = Ensemble(self.how, make, train, held_out, self.watcher, self.device, self.seed)
        nets = ensemble.execute()
        nets.register_buffer("fill", fill.to(self.device))
        return FittedImageCXPlain(self.how, self.canvas, shape, box.classes, nets, ensemble.history)

    def _said(self, box: ImageBox, images: Images, keep: Path | None, name: str) -> Tensor:
        return box.answers(images, None if keep is None else keep / name, self.watch)

    def _worth(self, asked: PatchRequest, keep: Path | None, name: str) -> Worth:
        identity = {"images": digest(asked.images.as_given(), asked.fill.numpy()), "patch": asked.patch}
        kept = AnswerCache(
            None if keep is None else keep / f"{name}-effects", {**identity, "model": asked.black_box.identity}
        )
        found = removal_effects(image_removal(asked), asked.probs, asked.aim, kept, self.watch)
        inputs = ImageInputs(asked.images.pixels.to(self.device), asked.probs.float().to(self.device), asked.units)
        return Worth(inputs, found)


def image_removal(asked: PatchRequest) -> RemovalQuery:
    """Patches filled, one after the other."""

    def say(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        some = torch.from_numpy(rows)
        part = asked.images.of(asked.images.pixels[some])
        yield from without_patch(replace(asked, images=part, probs=asked.probs[some]))

    return RemovalQuery(say, lambda rows: [rows[start : start + TOGETHER] for start in range(0, len(rows), TOGETHER)])
