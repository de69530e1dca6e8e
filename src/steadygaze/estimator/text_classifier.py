"""TextClassifier itself: what scikit-learn calls, and `explain`."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from steadygaze.core.arguments import choice, flag, integer, optional, path, validated
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.estimator import fit, model_folder
from steadygaze.estimator.explain_texts import ExplainRequest, explain_texts
from steadygaze.estimator.inputs import (
    Split,
    is_single_text,
    read_labels,
    read_split,
    read_texts,
    read_validation,
    read_weights,
)
from steadygaze.estimator.train_config import train_config
from steadygaze.explainers.resolve import default_explainer, require_capabilities, resolve_explainer
from steadygaze.models import inference
from steadygaze.techniques.technique import Technique
from steadygaze.training.device import best_device
from steadygaze.training.progress import ProgressBar, SilentWatcher

Granularity = Literal["word", "piece"]


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier that shows its reasons.

    Parameters
    ----------
    encoder : str, default="bilstm"
        rnn, gru, bigru, lstm, bilstm, cnn, average, or transformer:<hub id, folder or minilm>.
    technique : str or Technique, default="vanilla"
        How it is trained; `steadygaze list techniques` shows them all.
    seed : int, default=0
        Whatever is drawn is drawn from it.
    epochs : int, default=None
        Times the texts are read at most; None: 8, and with few texts as often as makes 300 steps.
    vectors : str or Path, default=None
        A file of word vectors in GloVe's format (.txt, .gz), or "glove-50d"; None: learnt from scratch.
    settings : dict, default=None
        Anything else, by name: {"hidden": 64, "attention": "sparsemax", "learning_rate": 1e-4}.
    batch_size : int, default=None
        Texts in a step; None: 32.
    max_length : int, default=None
        Longest text read, in tokens; None: 512, or what a transformer can read.
    class_weight : "balanced" or dict of label to weight, default=None
        How much the texts of each class count in training.
    device : str, default="auto"
        auto, cpu, cuda or mps.
    random_state : int or RandomState, default=None
        An alias of seed, and the stronger where both are given.
    verbose : bool, default=None
        Whether there is a progress bar; None: if standard error is a terminal.

    Attributes
    ----------
    classes_ : array of shape (C,)
        The labels, sorted.
    history_ : list of dict
        One record per epoch: its loss terms, validation macro-F1 and accuracy.
    stored_ : Stored
        Network, vocabulary and description: what `save` writes.
    """

    def __init__(
        self,
        encoder: str = "bilstm",
        technique: str | Technique = "vanilla",
        *,
        seed: int = 0,
        epochs: int | None = None,
        vectors: str | Path | None = None,
        settings: dict[str, Any] | None = None,
        batch_size: int | None = None,
        max_length: int | None = None,
        class_weight: str | dict[Label, float] | None = None,
        device: str = "auto",
        random_state: int | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.encoder = encoder
        self.technique = technique
        self.seed = seed
        self.epochs = epochs
        self.vectors = vectors
        self.settings = settings
        self.batch_size = batch_size
        self.max_length = max_length
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @validated(checkpoint=optional(path), resume=flag, teacher_cache=optional(path))
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        reference: "TextClassifier | Sequence[TextClassifier] | None" = None,
        teacher_cache: str | Path | None = None,
    ) -> Self:
        """Train.

        X : texts: a list, NumPy array, pandas Series, column `text` of a Hugging Face dataset.
            Pairs: a list of (text, question), or an array or DataFrame of two columns.
        y : one label for each text, all strings or all whole numbers.
        sample_weight : how much each text counts, from 0 up; one of weight 0 is left out altogether.
        validation : (texts, labels) that choose the epoch; None: a tenth of the texts is set aside for that.
        checkpoint, resume : a folder; a run that was interrupted is taken up by calling fit again with resume=True.
        reference : a fitted TextClassifier, or as many as the technique has teachers, instead of training them first.
        teacher_cache : a folder in which references and teachers are kept for the next fit that needs the same.
        """
        ordered = train_config(self.get_params(deep=False))
        train = read_split(X, y, sample_weight)
        held_out = None if validation is None else read_validation(validation)
        if resume and checkpoint is None:
            raise UserError("resume=True takes up an interrupted run: name its folder with checkpoint=")
        shown = sys.stderr.isatty() if self.verbose is None else self.verbose
        keeping = fit.CheckpointConfig(_path(checkpoint), resume, _path(teacher_cache))
        given = references(reference)
        return self._take(
            fit.fit(ordered, train, held_out, ProgressBar() if shown else SilentWatcher(), keeping, given)
        )

    @validated(batch_size=integer(1))
    def predict_proba(self, X: Any, *, batch_size: int = inference.BATCH) -> NDArray[np.float64]:
        """(N,C), columns in the order of `classes_`."""
        probabilities, read = predict_labels(self, X, batch_size)
        for sentence in read.warnings():
            warnings.warn(sentence, stacklevel=3)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,)"""
        best_of_each = self.predict_proba(X).argmax(-1)
        chosen: NDArray[Any] = self.classes_[best_of_each]
        return chosen

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy.  A label that was not there in training is refused: it could never be right."""
        check_is_fitted(self, "stored_")
        labels = [self._known(label) for label in read_labels(y, minimum_classes=1)]
        given = Split(*self._read(X), labels, read_weights(sample_weight))
        return float(super().score(X, np.asarray(labels), given.weights))

    @validated(granularity=choice("word", "piece"), batch_size=integer(1))
    def explain(
        self,
        X: Any,
        explainer: Any = None,
        target: Label | None = None,
        granularity: Granularity = "word",
        *,
        batch_size: int = inference.BATCH,
    ) -> Any:
        """How much each word weighs: an Explanation for one text, a list for a list.

        One text is a string, one pair a tuple (text, question).  granularity="piece" shows a transformer's own pieces.
        `target` asks why a class other than the predicted one; attention is the same for all, and refuses it.
        `explainer` None is the attention; of a model that selects what it reads, its rationale: what it selected.
        Else it is a name (`steadygaze list explainers`), an Explainer with settings of its own, what `fit_explainer`
        gave for this model, or any method of Captum that explains inputs, as a class or an object: it is asked about
        the word vectors, whatever function an object was made from.

            clf.explain(text, explainer=Lime(samples=5000))                  # from steadygaze.explainers.lime
            clf.explain(text, explainer=captum.attr.GradientShap)
            clf.explain(text, explainer=Captum(captum.attr.GradientShap, {"n_samples": 50}))
        """
        alone = is_single_text(X)
        texts, questions = self._read([X] if alone else X)
        name, way = resolve_explainer(
            default_explainer(self.stored_.model) if explainer is None else explainer, self.stored_.model
        )
        require_capabilities(name, way, self.stored_.model, "this model")
        aim = None if target is None else self._known(target)
        if aim is not None and not way.class_specific:
            raise UserError(f"{name} is the same whatever class is asked about: leave out the target {aim!r}")
        request = ExplainRequest(way, name, aim, granularity)
        classes = self.stored_.description.classes
        explained = explain_texts(
            self.stored_.model, self.stored_.tokenizer, classes, texts, questions, request, batch_size
        )
        return explained[0] if alone else explained

    @validated(folder=path)
    def save(self, folder: str | Path) -> None:
        """A folder that `steadygaze.load` reads: JSON and safetensors, no pickle; whole or not at all."""
        check_is_fitted(self, "stored_")
        model_folder.save(Path(folder), self.stored_)

    def _read(self, X: Any) -> tuple[list[str], list[str] | None]:
        """Texts of the kind this model was trained on."""
        check_is_fitted(self, "stored_")
        texts, questions = read_texts(X)
        if self.stored_.description.pair != (questions is not None):
            kinds = ("single texts", "pairs (text, question)")
            found, wanted = kinds[questions is not None], kinds[self.stored_.description.pair]
            raise UserError(f"this model was trained on {wanted}, found {found}")
        return texts, questions

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # a pair is two columns of text, never a matrix of numbers
        return tags

    def _known(self, label: Any) -> Label:
        classes = self.stored_.description.classes
        label = label.item() if isinstance(label, np.generic) else label  # JSON does not know NumPy's
        if not isinstance(label, str | int) or label not in classes:
            raise unknown("label", label, classes)
        return label

    def _take(self, stored: model_folder.SavedModel) -> Self:
        self.stored_ = stored
        self.classes_ = np.asarray(stored.description.classes)
        self.history_ = stored.description.history
        stored.model.to(best_device(self.device))
        return self


def predict_labels(clf: TextClassifier, X: Any, batch_size: int) -> tuple[NDArray[np.float64], Coverage]:
    """Probabilities (N,C), and how much of the texts the model reads."""
    texts, questions = clf._read(X)
    data = clf.stored_.data(texts, questions)
    logits = inference.logits(clf.stored_.model, data, batch_size)
    return logits.double().softmax(-1).numpy(), coverage(clf.stored_.tokenizer, data.text)


def references(given: "TextClassifier | Sequence[TextClassifier] | None") -> list[model_folder.SavedModel]:
    """What was learnt by each of them."""
    several: list[Any] = list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
    for one in several:
        if not isinstance(one, TextClassifier) or not hasattr(one, "stored_"):
            raise UserError(f"reference must be a fitted TextClassifier, or a list of them, found {one!r:.80}")
    return [one.stored_ for one in several]


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)
