"""sg.load: a saved classifier, of texts or of images."""

from pathlib import Path
from typing import Any

from steadygaze.core import entry_point
from steadygaze.core.arguments import path, validated
from steadygaze.core.atomic_files import recover_folder
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.estimator import model_folder
from steadygaze.estimator.explainer_folder import is_fitted
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import settings_of_model
from steadygaze.training.device import check_device


@validated(folder=path)
def load(folder: str | Path, device: str = "auto") -> Any:
    """A saved TextClassifier or ImageClassifier, ready to predict and explain."""
    where = Path(folder)
    recover_folder(where)
    if is_fitted(where):
        raise UserError(f"{where} is a fitted explainer: load_explainer(folder, black_box) reads it")
    if _of_images(where):
        return entry_point("steadygaze.images.image_classifier:ImageClassifier").load(where, device)
    return load_classifier(where, device)


def _of_images(folder: Path) -> bool:
    return (
        read_object_or_empty(folder / "config.json").get("kind") == "image-classifier"
    )  # what is damaged, `estimator.load` reports


def load_classifier(folder: str | Path, device: str = "auto") -> TextClassifier:
    """A saved model, ready to predict and explain.

    Its parameters are those it was trained with, so that `clone(load(folder)).fit(texts, labels)` trains its like.
    Word vectors, a table of synonyms and a transformer's folder are known by name only: a model folder holds no path
    of another machine.
    """
    check_device(device)
    stored = model_folder.load(Path(folder))
    known = stored.description
    values = settings_of_model(
        known.architecture, known.training, known.reading, known.technique, known.technique_settings
    )
    loaded = TextClassifier(
        known.encoder,
        known.technique,
        seed=known.seed,
        epochs=values.pop("epochs", None),
        vectors=known.vectors,
        batch_size=values.pop("batch_size", None),
        settings=values or None,
        max_length=known.max_length,
        class_weight=known.class_weight if isinstance(known.class_weight, str | None) else dict(known.class_weight),
        device=device,
    )
    return loaded._take(stored)
