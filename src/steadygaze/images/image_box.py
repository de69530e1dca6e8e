"""Whoever's classifier of images it is: what it says of images, and its network where that can be looked into."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.adapters.huggingface import fingerprint
from steadygaze.adapters.model_adapter import check_label_order
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.explainers.learned.answer_cache import AnswerCache, digest
from steadygaze.explainers.learned.black_box_queries import (
    BlackBoxAnswers,
    Watch,
    answers,
    check_probabilities,
    predicted,
    silent,
)
from steadygaze.explainers.learned.selector import Rows
from steadygaze.images.image_inputs import Images
from steadygaze.images.patch_networks import Shape
from steadygaze.models.inference import inference

CHUNK = 512
"""Images asked about at once, at most."""
PIXELS = 1 << 22
"""Numbers that those images may hold together, unless a single one has more."""
ACCEPTED = (
    "an ImageClassifier, anything with predict_proba, a function images -> probabilities, or a torch network that "
    "makes logits of (N, C, H, W) pixels between 0 and 1"
)


@dataclass(frozen=True)
class ImageBox:
    name: str
    classes: tuple[Label, ...]
    predict: Callable[[NDArray[Any]], Any] | None
    """Images, as their user gives them, to probabilities."""
    network: nn.Module | None = None
    """Pixels (N,C,H,W) to logits; asked in place of `predict` where it is there."""
    mean: Tensor | None = None  # (C,H,W)
    """The average of the images it was trained on, where that is known."""

    def predict_proba(self, images: Images) -> Tensor:
        """(N,C) probabilities, in double precision on the CPU"""
        return torch.cat([self._said(images.of(some)) for some in torch.split(images.pixels, together(images.shape))])

    def _said(self, images: Images) -> Tensor:
        if self.network is not None:
            with inference(self.network):
                found = check_probabilities(
                    self.network(images.pixels.to(self.device)).double().softmax(-1), len(images), len(self.classes)
                )
        else:
            assert self.predict is not None
            found = predicted(self.predict, images.as_given().copy(), len(images), len(self.classes))
        return torch.from_numpy(np.ascontiguousarray(found))

    def answers(self, images: Images, keep: Path | None = None, watch: Watch = silent) -> Tensor:
        """The same, kept in a folder as it comes; a box that does not say the same twice is found out.  (N,C)"""
        known = {"images": digest(images.as_given()), "model": self.identity, "classes": list(self.classes)}
        kept = AnswerCache(keep, known)

        def say(rows: Rows) -> Tensor:
            return self.predict_proba(images.of(images.pixels[torch.from_numpy(rows)]))

        def cut(rows: Rows) -> list[Rows]:
            return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]

        return torch.from_numpy(answers(BlackBoxAnswers(say, cut), len(images), kept, watch))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of its weights; '' where they cannot be looked at."""
        return "" if self.network is None else fingerprint(self.network)

    @property
    def identity(self) -> str:
        """Whose answers are kept: its weights, or where nobody sees them its name."""
        return self.fingerprint or self.name

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        first = None if self.network is None else next(self.network.parameters(), None)
        return torch.device("cpu") if first is None else first.device


class ImageClassifierBox:
    """A classifier of this house: its network, which keeps the mean image too, says what `predict_proba` says."""

    network_: nn.Module


def together(shape: Shape) -> int:
    """How many images of a shape are held at once."""
    return max(1, min(CHUNK, PIXELS // prod(shape)))


def as_image_box(given: Any, classes: Sequence[Label] | None = None) -> ImageBox:
    """From whatever ACCEPTED lists.  `classes` names the classes in the order of the probabilities."""
    if isinstance(given, ImageBox):
        return replace(given, classes=_classes(given.classes, classes, given.name))
    predict = None if isinstance(given, nn.Module) else getattr(given, "predict_proba", given)
    if isinstance(given, type) or not (isinstance(given, nn.Module) or callable(predict)):
        raise UserError(f"cannot explain {given!r:.80}; {ACCEPTED} can be")
    name = getattr(given, "__name__", type(given).__name__)
    names = _classes(getattr(given, "classes_", None), classes, name)
    if isinstance(given, ImageClassifierBox):
        return ImageBox(name, names, predict, given.network_, given.network_.get_buffer("mean").cpu())
    return ImageBox(name, names, predict, given if isinstance(given, nn.Module) else None)


def _classes(own: Any, given: Sequence[Label] | None, name: str) -> tuple[Label, ...]:
    names = own if given is None else given
    if names is None:
        raise UserError(f"{name} does not say what its classes are: classes= names them, in the order it gives them")
    if own is not None and len(own) != len(names):
        raise UserError(f"classes= names {len(names)} classes, but {name} has {len(own)}")
    if own is not None:
        check_label_order(own, names, name)
    return tuple(label.item() if hasattr(label, "item") else label for label in names)
