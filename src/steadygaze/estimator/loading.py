"""Load a saved classifier of texts or images."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from steadygaze.core.arguments import path, validated
from steadygaze.core.atomic_files import recover_folder
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.estimator.explainer_folder import is_fitted
from steadygaze.estimator.text_classifier import load_classifier


@validated(folder=path)
def load(folder: str | Path, device: str = "auto") -> Any:
    """A saved TextClassifier or ImageClassifier, ready to predict and explain."""
    where = Path(folder)
    recover_folder(where)
    if is_fitted(where):
        raise UserError(f"{where} is a fitted explainer; load it with load_explainer(folder, black_box)")
    if _is_image_classifier(where):
        return resolve_name("steadygaze.images.image_classifier:ImageClassifier").load(where, device)
    return load_classifier(where, device)


def _is_image_classifier(folder: Path) -> bool:
    return (
        read_object_or_empty(folder / "config.json").get("kind") == "image-classifier"
    )  # model_folder.load reports damage
