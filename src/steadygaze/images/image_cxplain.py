"""CXPlain for images: learned effects of filling each patch (explainers/learned/cxplain.py).

The members are selectors without `query`; the fill is saved with their weights.  The released code has a U-Net here,
and the paper fills with zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.core.digests import digest_values
from steadygaze.core.types import Label
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned.answer_cache import AnswerCache
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
"""Images per cache entry: the most that a failure of the black box loses."""


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
        """Low quantile, median and high quantile of the members' weights.  (3,N,D)"""
        device, units = self.fill.device, self.canvas.units(self.shape)
        pixels = match_shape(images, self.shape, "this explainer").pixels.to(device)
        inputs = ImageInputs(pixels, torch.zeros(len(images), 0, device=device), units)
        return torch.cat(
            [member_bounds(self.config, self.networks, inputs.views(rows)).cpu() for rows in inputs.once(READ)], 1
        )

    def explain(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """The k top-weighted patches by the members' median, with the members' quantiles."""
        low, middle, high = self.worth(images)
        patch_weights = PatchWeights(
            images, box.predict_proba(images), box.classes, middle, torch.stack([low, high], -1)
        )
        return patch_weights.explanations("cxplain", self.config.k, self.canvas.patch)

    def measured(self, box: ImageBox, images: Images) -> dict[str, Tensor]:
        """Agreement of the black box on the k top-weighted patches and on the rest; predicted class.  (N,) each"""
        middle = self.worth(images)[1]
        mask = k_subset.top_k_subset(middle, torch.ones_like(middle, dtype=torch.bool), self.config.k)
        probs = box.predict_proba(images)
        return {**post_hoc(box, images, probs, mask, self.fill, self.canvas.patch), PREDICTED: probs.argmax(-1)}


@dataclass(frozen=True)
class ImageCXPlainFit:
    how: CXPlain
    canvas: PatchConfig
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    watcher: Watcher = field(default_factory=SilentWatcher)
    watch: Watch = silent
    """Progress callback of the queries."""

    def fit(self, box: ImageBox, images: Images, validation: Images, keep: Path | None = None) -> FittedImageCXPlain:
        """Query the black box for every image without each patch, and fit the members to the effects."""
        shape = match_shape(validation, images.shape, "the training set", images.whole).shape
        units = self.canvas.units(shape)
        check_k(self.how.k, units, shape)
        fill = self.canvas.blank(images.pixels, images.whole)
        make = partial(Selector, shape, self.canvas.patch, 0, self.how.hidden, self.how.dropout)
        train, held_out = (
            self._effects(
                PatchRequest(box, part, self._answers(box, part, keep, name), fill, self.canvas.patch, units),
                keep,
                name,
            )
            for name, part in (("train", images), ("held-out", validation))
        )
        ensemble = Ensemble(self.how, make, train, held_out, self.watcher, self.device, self.seed)
        nets = ensemble.execute()
        nets.register_buffer("fill", fill.to(self.device))
        return FittedImageCXPlain(self.how, self.canvas, shape, box.classes, nets, ensemble.history)

    def _answers(self, box: ImageBox, images: Images, keep: Path | None, name: str) -> Tensor:
        return box.answers(images, None if keep is None else keep / name, self.watch)

    def _effects(self, request: PatchRequest, keep: Path | None, name: str) -> Worth:
        identity = {"images": digest_values(request.images.as_given(), request.fill.numpy()), "patch": request.patch}
        cache = AnswerCache(
            None if keep is None else keep / f"{name}-effects", {**identity, "model": request.black_box.identity}
        )
        effects = removal_effects(image_removal(request), request.probs, request.aim, cache, self.watch)
        inputs = ImageInputs(
            request.images.pixels.to(self.device), request.probs.float().to(self.device), request.units
        )
        return Worth(inputs, effects)


def image_removal(request: PatchRequest) -> RemovalQuery:
    """Fill the patches one at a time."""

    def say(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        index = torch.from_numpy(rows)
        part = request.images.of(request.images.pixels[index])
        yield from without_patch(replace(request, images=part, probs=request.probs[index]))

    return RemovalQuery(say, lambda rows: [rows[start : start + TOGETHER] for start in range(0, len(rows), TOGETHER)])
