"""ImageExplainer: a fitted explainer of images with its black box."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from steadygaze.adapters.fit_explainer import FitRun, noted, read_held_out, require_enough
from steadygaze.core import __version__
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, field_names
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator import explainer_folder
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.fit_config import (
    OF_TEXTS,
    Method,
    check_method,
    method_name,
    requested_method,
    row_settings,
)
from steadygaze.explainers.learned.l2x import SelectorConfig
from steadygaze.images.classifier_training import LARGEST
from steadygaze.images.explain_images import FittedImageExplainer
from steadygaze.images.fitted_images import (
    FittedImageCXPlain,
    FittedImageMethod,
    FittedImageSelector,
    ImageFit,
    hold_out_images,
    untrained_image_networks,
)
from steadygaze.images.image_box import ImageBox, as_image_box
from steadygaze.images.image_classifier import ImageClassifier
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import MAX_CHANNELS, Images, read_images
from steadygaze.images.patch_networks import (
    USUAL,
    PatchConfig,
    Shape,
    check_k,
    image_settings,
)
from steadygaze.models.inference import best_device
from steadygaze.results.leakage_warnings import leakage_warnings, selection_rows
from steadygaze.results.row import Row


@dataclass(frozen=True)
class ImageExplainer(FittedImageExplainer):
    """A fitted explainer of images, as returned by `fit_explainer`.

    fitted = sg.fit_explainer(model, images, explainer="l2x", k=25)
    fitted.explain(images[:3])[0].to_png("why.png")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    name: str
    """Method: l2x, vibi, ail or cxplain."""
    black_box: ImageBox
    learned: FittedImageMethod
    rows: tuple[Row, ...] = ()
    """Measures on held-out images."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Seed and digest of the images of the fit."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about label leakage through the selections."""
        return leakage_warnings(self.rows)

    def explain(self, images: Any) -> list[ImageExplanation]:
        """The selected patches of each image."""
        return self.explain_of(self.black_box, read_images(images))

    def explain_of(self, box: ImageBox, images: Images) -> list[ImageExplanation]:
        """Explain the predictions of a black box; another one than that of the fit is refused."""
        if box.fingerprint != self.black_box.fingerprint:
            raise UserError(
                f"{self.name} was fitted to another model than {box.name}, or to other weights of it: "
                "it cannot explain this one; call fit_explainer for this model"
            )
        return self.learned.explain(box, images)

    def measure(self, images: Any) -> list[Row]:
        """Measures of the selections of these images."""
        inputs = read_images(images)
        return self.to_rows(self.learned.measured(self.black_box, inputs), digest_values(inputs.as_given()))

    def to_rows(self, found: dict[str, Tensor], data: str) -> list[Row]:
        """Rows from one number per image, by measure; `data`: a digest of the images."""
        canvas = self.learned.canvas
        own: dict[str, str | int] = {
            "black-box": self.black_box.name,
            "patch": canvas.patch,
            "fill": canvas.fill,
            "data": data[:12],
            "steadygaze": __version__,
        }
        settings = {**row_settings(self.learned.config, self.facts), **own}
        values = {name: numbers.tolist() for name, numbers in found.items()}
        return selection_rows(values, values.pop(PREDICTED), self.black_box.classes, settings)

    def save(self, path: str | Path) -> None:
        """Write a folder, without the black box."""
        learned = self.learned
        config = {
            "steadygaze_explainer": __version__,
            "inputs": "images",
            "explainer": self.name,
            "settings": asdict(learned.config),
            "canvas": asdict(learned.canvas),
            "shape": list(learned.shape),
            "classes": list(self.black_box.classes),
            "black_box": {"name": self.black_box.name, "fingerprint": self.black_box.fingerprint},
            "rows": [row.to_dict() for row in self.rows],
            "history": learned.history,
            "facts": self.facts,
        }
        explainer_folder.save(
            Path(path), explainer_folder.ExplainerFiles(config, weights=learned.networks.state_dict())
        )


def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Label] | None = None, device: str = "auto"
) -> ImageExplainer:
    """A fitted explainer of images from its folder, with the black box it was fitted to."""
    where = Path(path)
    written = explainer_folder.load(where, "images")
    how, box = explainer_folder.settings_of(written, where), image_box(black_box, classes, device)
    explainer_folder.check_same_black_box(written, box.classes, box.fingerprint, where)
    canvas_values = explainer_folder.config_value(written, "canvas", dict, where)
    try:
        shape, canvas = _shape(written.config.get("shape")), build(PatchConfig, canvas_values)
        check_k(how.k, canvas.units(shape), shape)
    except UserError as error:
        raise UserError(f"{where / explainer_folder.CONFIG} is damaged: {error}") from None
    nets = explainer_folder.load_networks(
        partial(untrained_image_networks, how, shape, len(box.classes), canvas.patch), written, where
    ).to(best_device(device))
    history = explainer_folder.config_value(written, "history", list, where)
    fitted_as = FittedImageCXPlain if isinstance(how, CXPlain) else FittedImageSelector
    learned = fitted_as(how, canvas, shape, box.classes, nets, history)
    rows = tuple(map(Row.from_dict, explainer_folder.config_value(written, "rows", list, where)))
    explainer_folder.check_consistent_rows(written, rows, where)
    return ImageExplainer(
        method_name(how), box, learned, rows, explainer_folder.config_value(written, "facts", dict, where)
    )


def image_box(given: Any, classes: Sequence[Label] | None, device: str) -> ImageBox:
    """An ImageBox; a path is the folder of an ImageClassifier."""
    return as_image_box(ImageClassifier.load(given, device) if isinstance(given, str | Path) else given, classes)


def _shape(shape: Any) -> Shape:
    valid = isinstance(shape, list) and len(shape) == 3 and all(type(side) is int and side > 0 for side in shape)
    if not valid or shape[0] > MAX_CHANNELS or max(shape) > LARGEST:
        raise UserError(f"channels, height and width of an image must be three whole numbers; found {shape!r:.80}")
    return shape[0], shape[1], shape[2]


def image_fit_config(
    explainer: str, k: int | None, mitigation: str | None, conditioned: bool | None, settings: Mapping[str, Any] | None
) -> tuple[Method, PatchConfig]:
    """The method for images; None keeps the papers' defaults for images."""
    kind, values = requested_method(explainer, {"k": k, "mitigation": mitigation, "conditioned": conditioned}, settings)
    if wrong := sorted(values.keys() & set(OF_TEXTS)):
        raise UserError(f"setting {wrong[0]!r} is for texts; it has no effect for images")
    own = [name for name in field_names(kind) if name not in OF_TEXTS]
    for key in values.keys() - {*own, *field_names(PatchConfig)}:
        raise unknown("setting", key, [*own, *field_names(PatchConfig)])
    canvas = build(PatchConfig, {key: values.pop(key) for key in field_names(PatchConfig) if key in values})
    return check_method(_build_method(kind, values), values), canvas


def _build_method(kind: type[SelectorConfig] | type[CXPlain], values: dict[str, Any]) -> Method:
    if issubclass(kind, SelectorConfig):
        return image_settings(kind, values)
    return build(kind, {"k": USUAL["k"], **values})


def image_splits(inputs: Any, validation: Any) -> tuple[Images, Images]:
    """Training and validation images."""
    images = read_images(inputs)
    require_enough(len(images), "images")
    return hold_out_images(images) if validation is None else (images, read_held_out(read_images, validation, "images"))


def fit_images(
    run: FitRun,
    black_box: Any,
    classes: Sequence[Label] | None,
    device: str,
    order: tuple[Any, ...],
    data: tuple[Any, Any],
) -> ImageExplainer:
    """Fit an explainer of images; `fit_explainer` calls it by name."""
    how, canvas = image_fit_config(*order)
    box, parts = image_box(black_box, classes, device), image_splits(*data)
    options = run.seed, run.device, run.watcher, run.watch
    facts = run.facts(parts[0].as_given())
    fitted = ImageExplainer(
        method_name(how), box, ImageFit(how, canvas, *options).fit(box, *parts, run.keep), facts=facts
    )
    rows = fitted.to_rows(fitted.learned.measured(box, parts[1]), digest_values(parts[1].as_given()))
    return replace(fitted, rows=noted(rows, box.predict_proba(parts[1])))
