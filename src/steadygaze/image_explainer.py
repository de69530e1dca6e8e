"""ImageExplainer: a fitted explainer of images together with the black box that it explains."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze import __version__
from steadygaze.config import build
from steadygaze.errors import UserError
from steadygaze.explain.learned import folder
from steadygaze.explain.learned.cxplain import CXPlain, members
from steadygaze.explain.learned.image_nets import Selector, Shape
from steadygaze.explain.learned.images import Canvas, image_nets, refuse_many
from steadygaze.explain.learned.kept import digest
from steadygaze.explain.learned.order import Method, name_of, said_of
from steadygaze.explain.readings import PREDICTED
from steadygaze.images.box import ImageBox, as_image_box
from steadygaze.images.classifier import ImageClassifier
from steadygaze.images.cxplain import LearnedWorth
from steadygaze.images.explain import Fitted
from steadygaze.images.explanation import ImageExplanation
from steadygaze.images.folder import LARGEST
from steadygaze.images.learned import LearnedImages
from steadygaze.images.pixels import MOST_COLOURS, Images, read_images
from steadygaze.record import Row
from steadygaze.report.selection_rows import selection_rows
from steadygaze.report.warned import warned
from steadygaze.train.device import best
from steadygaze.types import Label


@dataclass(frozen=True)
class ImageExplainer(Fitted):
    """What `explain_fit` gives for images.

    fitted = sg.explain_fit(model, images, explainer="l2x", k=25)
    fitted.explain(images[:3])[0].to_png("why.png")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    name: str
    """Which explainer it is: l2x, vibi, ail or cxplain."""
    box: ImageBox
    learned: LearnedImages | LearnedWorth
    rows: tuple[Row, ...] = ()
    """How well it did on images it was not fitted to."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is known of how it was fitted: the seed, and a digest of the images."""

    @property
    def warnings(self) -> list[str]:
        """What must be known before it is believed: whether its selections leak the label."""
        return warned(self.rows)

    def explain(self, images: Any) -> list[ImageExplanation]:
        """The selected patches of each image."""
        return self.explain_of(self.box, read_images(images))

    def explain_of(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """Explain what a black box predicts; refused unless it is the one that this was fitted to."""
        if box.fingerprint != self.box.fingerprint:
            raise UserError(
                f"{self.name} was fitted to another model than {box.name}, or to other weights of it: "
                "what it selects says nothing of this one; explain_fit fits one to it"
            )
        return self.learned.explain(box, images)

    def measure(self, images: Any) -> list[Row]:
        """Of these images: does the black box say the same of what is selected, and of the rest?"""
        read = read_images(images)
        return self.to_rows(self.learned.measured(self.box, read), digest(read.as_given()))

    def to_rows(self, found: dict[str, Tensor], data: str) -> list[Row]:
        """One number per image, by name, as rows; `data`: a digest of the images."""
        canvas = self.learned.canvas
        own: dict[str, str | int] = {
            "black-box": self.box.name,
            "patch": canvas.patch,
            "fill": canvas.fill,
            "data": data[:12],
            "steadygaze": __version__,
        }
        settings = {**said_of(self.learned.how, self.facts), **own}
        values = {name: numbers.tolist() for name, numbers in found.items()}
        return selection_rows(values, values.pop(PREDICTED), self.box.classes, settings)

    def save(self, path: str | Path) -> None:
        """As a folder; the black box itself is not in it."""
        learned = self.learned
        config = {
            "steadygaze_explainer": __version__,
            "inputs": "images",
            "explainer": self.name,
            "settings": asdict(learned.how),
            "canvas": asdict(learned.canvas),
            "shape": list(learned.shape),
            "classes": list(self.box.classes),
            "black_box": {"name": self.box.name, "fingerprint": self.box.fingerprint},
            "rows": [row.to_dict() for row in self.rows],
            "history": learned.history,
            "facts": self.facts,
        }
        folder.save(Path(path), folder.Written(config, weights=learned.nets.state_dict()))


def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Label] | None = None, device: str = "auto"
) -> ImageExplainer:
    """A fitted explainer of images from its folder, with the black box it was fitted to."""
    where = Path(path)
    written = folder.load(where, "images")
    how, box = folder.settings_of(written, where), image_box(black_box, classes, device)
    folder.refuse_other(written, box.classes, box.fingerprint, where)
    given = folder.part(written, "canvas", dict, where)
    try:
        shape, canvas = _shape(written.config.get("shape")), build(Canvas, given)
        refuse_many(how.k, canvas.units(shape), shape)
    except UserError as error:
        raise UserError(f"{where / folder.CONFIG} is damaged: {error}") from None
    nets = folder.filled(partial(_fresh, how, shape, len(box.classes), canvas.patch), written, where).to(best(device))
    history = folder.part(written, "history", list, where)
    learned: LearnedImages | LearnedWorth
    if isinstance(how, CXPlain):
        learned = LearnedWorth(how, canvas, shape, box.classes, nets, history)
    else:
        learned = LearnedImages(how, canvas, shape, box.classes, nets, history)
    rows = tuple(map(Row.from_dict, folder.part(written, "rows", list, where)))
    folder.refuse_contradiction(written, rows, where)
    return ImageExplainer(name_of(how), box, learned, rows, folder.part(written, "facts", dict, where))


def image_box(given: Any, classes: Sequence[Label] | None, device: str) -> ImageBox:
    """From whatever can be explained; a folder is that of an ImageClassifier."""
    return as_image_box(ImageClassifier.load(given, device) if isinstance(given, str | Path) else given, classes)


def are_images(given: Any) -> bool:
    """Numbers in rows and columns, or a list of such; texts are anything else."""
    if isinstance(given, np.ndarray | Tensor):
        numbers = isinstance(given, Tensor) or given.dtype.kind in "biuf"
        return given.ndim > 1 if numbers else given.ndim == 1 and are_images(given.tolist())
    return isinstance(given, list | tuple) and len(given) > 0 and isinstance(given[0], np.ndarray | Tensor)


def _fresh(how: Method, shape: Shape, classes: int, patch: int) -> nn.ModuleDict:
    """Networks that nothing has been taught."""
    if not isinstance(how, CXPlain):
        return image_nets(how, shape, classes, patch)
    nets = members(how, partial(Selector, shape, patch, 0, how.hidden, how.dropout))
    nets.register_buffer("fill", torch.zeros(shape))
    return nets


def _shape(given: Any) -> Shape:
    whole = isinstance(given, list) and len(given) == 3 and all(type(side) is int and side > 0 for side in given)
    if not whole or given[0] > MOST_COLOURS or max(given) > LARGEST:
        raise UserError(f"colours, height and width of an image are three whole numbers; found {given!r:.80}")
    return given[0], given[1], given[2]
