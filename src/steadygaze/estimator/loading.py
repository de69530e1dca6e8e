"""Load a saved classifier of texts or images."""

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
        raise UserError(f"{where} is a fitted explainer; load it with load_explainer(folder, black_box)")
    if _is_image_classifier(where):
        return entry_point("steadygaze.images.image_classifier:ImageClassifier").load(where, device)
    return load_classifier(where, device)


def _is_image_classifier(folder: Path) -> bool:
    return (
        read_object_or_empty(folder / "config.json").get("kind") == "image-classifier"
    )  # model_folder.load reports damage


def load_classifier(folder: str | Path, device: str = "auto") -> TextClassifier:
    """A saved model, ready to predict and explain.

    Its parameters are those of its training, so that `clone(load(folder)).fit(texts, labels)` repeats it.  Word
    vectors, synonyms and a transformer's folder have a name only: a model folder contains no local paths.
    """
    check_device(device)
    stored = model_folder.load(Path(folder))
    config = stored.description
    values = settings_of_model(
        config.architecture, config.training, config.text, config.technique, config.technique_settings
    )
    loaded = TextClassifier(
        config.encoder,
        config.technique,
        seed=config.seed,
        epochs=values.pop("epochs", None),
        vectors=config.vectors,
        batch_size=values.pop("batch_size", None),
        settings=values or None,
        max_length=config.max_length,
        class_weight=config.class_weight if isinstance(config.class_weight, str | None) else dict(config.class_weight),
        device=device,
    )
    return loaded._take(stored)
