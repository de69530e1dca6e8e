"""sg.load: a saved classifier, of texts or of images."""

from pathlib import Path

from steadygaze import estimator
from steadygaze.arguments import checked, path
from steadygaze.atomic import recover
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.explain.learned.folder import is_fitted
from steadygaze.foreign_files import peek
from steadygaze.images.classifier import ImageClassifier


@checked(folder=path)
def load(folder: str | Path, device: str = "auto") -> TextClassifier | ImageClassifier:
    """A saved model, ready to predict and explain."""
    where = Path(folder)
    recover(where)
    if is_fitted(where):
        raise UserError(f"{where} is a fitted explainer: load_explainer(folder, black_box) reads it")
    return ImageClassifier.load(where, device) if _of_images(where) else estimator.load(where, device)


def _of_images(folder: Path) -> bool:
    return peek(folder / "config.json").get("kind") == "image-classifier"  # what is damaged, `estimator.load` reports
