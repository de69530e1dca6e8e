"""ImageExplainer: a fitted explainer of images with its black box."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.adapters.fit_explainer import FitRun, noted, read_held_out, require_enough
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build, field_names
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator import explainer_folder
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.fit_config import OF_TEXTS, Method, check_method, method_name, requested_method
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
from steadygaze.images.image_black_box import ImageBlackBox, as_image_black_box
from steadygaze.images.image_classifier import ImageClassifier
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import MAX_CHANNELS, Images, read_images
from steadygaze.images.patch_networks import USUAL, PatchConfig, Shape, check_k, image_settings
from steadygaze.models.inference import best_device
from steadygaze.results.row import Row


@dataclass(frozen=True)
class ImageExplainer(FittedImageExplainer):
    """A fitted explainer of images, as returned by `fit_explainer`.

    fitted = sg.fit_explainer(model, images, explainer="l2x", k=25)
    fitted.explain(images[:3])[0].to_png("why.png")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    black_box: ImageBlackBox
    learned: FittedImageMethod

    def explain(self, images: Any) -> list[ImageExplanation]:
        """The selected patches of each image."""
        return self.explain_of(self.black_box, read_images(images))

    def explain_of(self, box: ImageBlackBox, images: Images) -> list[ImageExplanation]:
        """Explain the predictions of a black box; another one than that of the fit is refused."""
        self.learned.check_classes(box)
        self.check_model(box)
        return self.learned.explain(box, images)

    def measure(self, images: Any) -> list[Row]:
        """Measures of the selections of these images."""
        return self.rows_of(read_images(images))

    def rows_of(self, images: Images) -> list[Row]:
        canvas, measures = self.learned.canvas, self.learned.measured(self.black_box, images)
        return self.to_rows(measures, digest_values(images.as_given()), patch=canvas.patch, fill=canvas.fill)

    def description(self) -> dict[str, Any]:
        return {"inputs": "images", "canvas": asdict(self.learned.canvas), "shape": list(self.learned.shape)}


def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Label] | None = None, device: str = "auto"
) -> ImageExplainer:
    """A fitted explainer of images from its folder, with the black box it was fitted to."""
    files = explainer_folder.load(Path(path), "images")
    config, box = files.method(), image_black_box(black_box, classes, device)
    files.check_model(box)
    canvas_values = {"reader": any(name.startswith("reader.") for name in files.weights), **files.value("canvas", dict)}
    try:
        shape, canvas = _shape(files.config.get("shape")), build(PatchConfig, canvas_values)
        check_k(config.k, canvas.units(shape), shape)
    except UserError as error:
        raise files.damaged(error) from None
    make = partial(untrained_image_networks, config, shape, len(box.classes), canvas)
    nets, history = files.networks(make).to(best_device(device)), files.value("history", list)
    fitted_as = FittedImageCXPlain if isinstance(config, CXPlain) else FittedImageSelector
    learned = fitted_as(config, canvas, shape, box.classes, nets, history)
    return ImageExplainer(method_name(config), box, learned, *files.measured())


def image_black_box(model: Any, classes: Sequence[Label] | None, device: str) -> ImageBlackBox:
    """An ImageBlackBox; a path is the folder of an ImageClassifier."""
    return as_image_black_box(ImageClassifier.load(model, device) if isinstance(model, str | Path) else model, classes)


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
    if issubclass(kind, SelectorConfig):
        return check_method(image_settings(kind, values), values), canvas
    return build(kind, {"k": USUAL["k"], **values}), canvas


def fit_images(
    run: FitRun,
    black_box: Any,
    classes: Sequence[Label] | None,
    device: str,
    order: tuple[Any, ...],
    data: tuple[Any, Any],
) -> ImageExplainer:
    """Fit an explainer of images; `fit_explainer` calls it by name."""
    config, canvas = image_fit_config(*order)
    box, images, validation = image_black_box(black_box, classes, device), read_images(data[0]), data[1]
    require_enough(len(images), "images")
    if validation is None:
        parts = hold_out_images(images)
    else:
        parts = images, read_held_out(read_images, validation, "images")
    learned = ImageFit(config, canvas, run.seed, run.device, run.watcher, run.on_progress).fit(box, *parts, run.keep)
    fitted = ImageExplainer(method_name(config), box, learned, facts=run.facts(parts[0].as_given()))
    return replace(fitted, rows=noted(fitted.rows_of(parts[1]), box.predict_proba(parts[1])))
