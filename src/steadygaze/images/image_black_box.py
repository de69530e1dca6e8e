"""ImageBlackBox: predictions of any image classifier, and its network if available."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.types import Label, OnProgress, no_progress
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.text_checks import check_label_order
from steadygaze.estimator.model_folder import fingerprint
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import answers, check_probabilities, predicted
from steadygaze.explainers.learned.l2x import Rows
from steadygaze.images.image_inputs import Images
from steadygaze.images.patch_networks import Shape, cut_rows
from steadygaze.models.inference import inference

CHUNK = 512
"""Most images per query."""
PIXELS = 1 << 22
"""Most pixel values per query."""
ACCEPTED = (
    "an ImageClassifier, anything with predict_proba, a function images -> probabilities, or a torch network that "
    "makes logits of (N, C, H, W) pixels between 0 and 1"
)


@dataclass(frozen=True)
class ImageBlackBox:
    name: str
    classes: tuple[Label, ...]
    predict: Callable[[NDArray[Any]], Any] | None
    """Images in the user's format -> probabilities."""
    network: nn.Module | None = None
    """Pixels (N,C,H,W) -> logits; replaces `predict`."""
    mean: Tensor | None = None  # (C,H,W)
    """Mean training image, if known."""

    def predict_proba(self, images: Images) -> Tensor:
        """(N,C) probabilities, in double precision on the CPU"""
        batches = torch.split(images.pixels, together(images.shape))
        return torch.cat([self._predict_batch(images.of(batch)) for batch in batches])

    def _predict_batch(self, images: Images) -> Tensor:
        if self.network is not None:
            with inference(self.network):
                answer = self.logits(images.pixels.to(self.device)).double().softmax(-1)
            probabilities = check_probabilities(answer, len(images), len(self.classes))
        else:
            assert self.predict is not None
            probabilities = predicted(self.predict, images.as_given().copy(), len(images), len(self.classes))
        return torch.from_numpy(np.ascontiguousarray(probabilities))

    def logits(self, pixels: Tensor) -> Tensor:
        """The network's logits; it returns them, or an output that has them as `logits`.  (N,C,H,W) -> (N,C)"""
        assert self.network is not None
        output = self.network(pixels)
        logits = getattr(output, "logits", output)
        if not isinstance(logits, Tensor) or logits.ndim != 2:
            raise UserError(f"{self.name} must return logits of shape (N, classes); found {type(output).__name__}")
        return logits

    def answers(self, images: Images, keep: Path | None = None, on_progress: OnProgress = no_progress) -> Tensor:
        """Cached predictions; a nondeterministic black box raises an error.  (N,C)"""
        identity = {"images": digest_values(images.as_given()), "model": self.identity, "classes": list(self.classes)}
        cache = AnswerCache(keep, identity)

        def predict(rows: Rows) -> Tensor:
            return self.predict_proba(images.of(images.pixels[torch.from_numpy(rows)]))

        return torch.from_numpy(answers(predict, partial(cut_rows, size=CHUNK), len(images), cache, on_progress))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights; '' without a network."""
        return "" if self.network is None else fingerprint(self.network)

    @property
    def identity(self) -> str:
        """Key of cached answers: fingerprint of the weights, or the name."""
        return self.fingerprint or self.name

    @property
    def device(self) -> torch.device:
        first = None if self.network is None else next(self.network.parameters(), None)
        return torch.device("cpu") if first is None else first.device


class ImageClassifierBox:
    """Base of ImageClassifier: `network_` gives the same predictions and has the mean image."""

    network_: nn.Module


def together(shape: Shape) -> int:
    """Images of this shape per batch."""
    return max(1, min(CHUNK, PIXELS // prod(shape)))


def as_image_black_box(model: Any, classes: Sequence[Label] | None = None) -> ImageBlackBox:
    """Convert one of ACCEPTED.  `classes`: names in the order of the probabilities."""
    if isinstance(model, ImageBlackBox):
        return replace(model, classes=_classes(model.classes, classes, model.name))
    predict = None if isinstance(model, nn.Module) else getattr(model, "predict_proba", model)
    if isinstance(model, type) or not (isinstance(model, nn.Module) or callable(predict)):
        raise UserError(f"cannot explain {model!r:.80}; pass {ACCEPTED}")
    name = getattr(model, "__name__", type(model).__name__)
    names = _classes(getattr(model, "classes_", None), classes, name)
    if isinstance(model, ImageClassifierBox):
        return ImageBlackBox(name, names, predict, model.network_, model.network_.get_buffer("mean").cpu())
    return ImageBlackBox(name, names, predict, model if isinstance(model, nn.Module) else None)


def _classes(own: Any, class_names: Sequence[Label] | None, name: str) -> tuple[Label, ...]:
    names = own if class_names is None else class_names
    if names is None:
        raise UserError(f"{name} has no classes_: pass their names as classes=, in the order of the probabilities")
    if own is not None and len(own) != len(names):
        raise UserError(f"classes= names {len(names)} classes, but {name} has {len(own)}")
    if own is not None:
        check_label_order(own, names, name)
    return tuple(label.item() if hasattr(label, "item") else label for label in names)
