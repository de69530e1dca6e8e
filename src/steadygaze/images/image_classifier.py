"""ImageClassifier: a small image classifier with scikit-learn's interface.

clf = ImageClassifier(seed=0).fit(images, labels)
clf.predict(images); clf.predict_proba(images); clf.score(images, labels)
clf.explain(images, explainer="gradient", k=25)
clf.save("model/"); clf = ImageClassifier.load("model/")

The network is that of Bai et al. 2021 (arXiv:2006.05656), Table 7; Adadelta, 12 epochs, batches of 128.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from steadygaze.core.arguments import path, validated
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import build
from steadygaze.estimator.inputs import read_labels, read_weights
from steadygaze.images.classifier_training import ImageModelConfig, ImageTrainConfig, read_folder, train, write_folder
from steadygaze.images.explain_images import explain_images
from steadygaze.images.image_black_box import ImageClassifierBox, as_image_black_box
from steadygaze.images.image_explanation import ImageExplanation
from steadygaze.images.image_inputs import Images, match_shape, read_images
from steadygaze.images.patch_networks import PatchConfig
from steadygaze.models.inference import best_device


class ImageClassifier(ImageClassifierBox, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of small images.

    Parameters
    ----------
    seed : int, default=0
        Random seed.
    epochs : int, default=12
        Number of epochs.
    batch_size : int, default=128
        Images per step.
    learning_rate : float, default=1.0
        Learning rate of Adadelta.
    device : str, default="auto"
        auto, cpu, cuda or mps.

    Attributes
    ----------
    classes_ : array of shape (C,)
        The labels, sorted.
    history_ : list of dict
        One record per epoch: loss and training accuracy.
    network_ : torch network
        Pixels (N,C,H,W) between 0 and 1 to logits; its buffer `mean` is the mean training image.

    Examples
    --------
    >>> import numpy as np
    >>> from steadygaze import ImageClassifier
    >>> images = np.zeros((20, 8, 8))
    >>> images[::2, :4] = 1.0  # the upper half of every second image is white
    >>> clf = ImageClassifier(epochs=3).fit(images, ["white", "black"] * 10)
    >>> clf.predict(images[:2]).tolist()
    ['white', 'black']
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        epochs: int = 12,
        batch_size: int = 128,
        learning_rate: float = 1.0,
        device: str = "auto",
    ) -> None:
        self.seed = seed
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Parameters
        ----------
        X : array or list of arrays
            Images: an array of (N,H,W) or (N,H,W,C), uint8 or floats from 0 to 1; or a list of images of one size.
        y : list of str or int
            One label for each image, all strings or all whole numbers.

        Returns
        -------
        ImageClassifier
            This classifier, fitted.
        """
        values = {name: getattr(self, name) for name in ("seed", "epochs", "batch_size", "learning_rate")}
        config = build(ImageTrainConfig, values)
        images, labels = read_images(X), read_labels(y, minimum_classes=2)
        if len(images) != len(labels):
            raise UserError(f"found {len(images)} images and {len(labels)} labels; pass one label for each image")
        classes, codes = np.unique(np.asarray(labels), return_inverse=True)
        network, history = train(config, images, torch.from_numpy(codes), best_device(self.device))
        description = ImageModelConfig(classes=classes.tolist(), shape=images.shape, learning=config, history=history)
        return self._take(description, network)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities.

        Parameters
        ----------
        X : array or list of arrays
            Images, as for `fit`.

        Returns
        -------
        array of shape (N,C)
            Columns in the order of `classes_`.
        """
        images = self._read(X)
        probabilities: NDArray[np.float64] = as_image_black_box(self).predict_proba(images).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array or list of arrays
            Images, as for `fit`.

        Returns
        -------
        array of shape (N,)
            Labels.
        """
        indices = self.predict_proba(X).argmax(-1)
        labels: NDArray[Any] = self.classes_[indices]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array or list of arrays
            Images, as for `fit`.
        y : list of str or int
            Labels; a label that is unknown from training is an error.
        sample_weight : array, default=None
            Weight of each image.

        Returns
        -------
        float
            Share of correct predictions.
        """
        images, labels = self._read(X), read_labels(y, minimum_classes=1)
        if len(images) != len(labels):
            raise UserError(f"found {len(images)} images and {len(labels)} labels; pass one label for each image")
        classes = self.classes_.tolist()
        for label in set(labels) - set(classes):
            raise unknown("label", label, classes)
        weights = read_weights(sample_weight)
        if weights is not None and weights.shape != (len(images),):
            raise UserError(f"found {len(images)} images and weights of shape {weights.shape}; pass one for each image")
        if weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0):
            raise UserError("sample weights must be finite numbers of at least 0")
        return float(super().score(X, np.asarray(labels), weights))

    def explain(
        self,
        X: Any,
        explainer: Any = "gradient",
        k: int | None = None,
        *,
        patch: int | None = None,
        fill: str | None = None,
    ) -> list[ImageExplanation]:
        """Explain predictions by the k top-weighted patches of each image.

        Parameters
        ----------
        X : array or list of arrays
            Images, as for `fit`.
        explainer : str or fitted explainer, default="gradient"
            gradient, leave-one-out, lime, random, or a result of `fit_explainer` for this classifier, which has its own
            k, patch and fill.
        k : int, default=None
            Number of selected patches; None: 25.
        patch : int, default=None
            Side of a patch in pixels; None: 1.
        fill : str, default=None
            zero, mean or gray; None: mean, the mean training image.

        Returns
        -------
        list of ImageExplanation
            One for each image.
        """
        self._read(X)
        options = {name: value for name, value in {"patch": patch, "fill": fill}.items() if value is not None}
        return explain_images(self, X, explainer, k, build(PatchConfig, options) if options else None)

    @validated(folder=path)
    def save(self, folder: str | Path) -> None:
        """Write a folder for `ImageClassifier.load`: JSON and safetensors, no pickle; written atomically.

        Parameters
        ----------
        folder : str or Path
            The folder.
        """
        check_is_fitted(self, "network_")
        write_folder(Path(folder), self.description_, self.network_)

    @classmethod
    @validated(folder=path)
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Load a saved classifier with its training parameters.

        Parameters
        ----------
        folder : str or Path
            A folder of `save`.
        device : str, default="auto"
            auto, cpu, cuda or mps.

        Returns
        -------
        ImageClassifier
            The fitted classifier.
        """
        target_device = best_device(device)
        description, network = read_folder(Path(folder))
        return cls(**asdict(description.learning), device=device)._take(description, network.to(target_device))

    def _read(self, X: Any) -> Images:
        check_is_fitted(self, "network_")
        return match_shape(read_images(X), self.description_.shape, "this classifier")

    def _take(self, description: ImageModelConfig, network: torch.nn.Module) -> Self:
        self.description_, self.network_ = description, network
        self.classes_ = np.asarray(description.classes)
        self.history_ = description.history
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        return tags
