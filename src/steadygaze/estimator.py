"""TextClassifier: the scikit-learn face of everything.

clf = TextClassifier(encoder="bilstm", technique="vanilla", seed=0)
clf.fit(texts, labels)
clf.predict(texts); clf.predict_proba(texts); clf.score(texts, labels)
clf.explain("A gorgeous, witty, seductive movie.")
clf.save("model/"); clf = steadygaze.load("model/")
"""

import sys
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from steadygaze import fitting, infer, store
from steadygaze.batch import Data
from steadygaze.corpus.check import check_labels
from steadygaze.errors import UserError, unknown
from steadygaze.explain import EXPLAINERS
from steadygaze.explain.explainer import Explainer
from steadygaze.explain.texts import Request, explain_texts
from steadygaze.inputs import is_one, read_split, read_texts
from steadygaze.objective.technique import Technique
from steadygaze.order import order
from steadygaze.train.device import best
from steadygaze.train.progress import Bar, Silent
from steadygaze.types import Label

Granularity = Literal["word", "piece"]


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier that shows its reasons.

    Parameters
    ----------
    encoder : rnn, gru, lstm, bilstm, cnn, average, or transformer:<hub id, folder or minilm>.
    technique : how it is trained, by name or as a Technique; `steadygaze list techniques` shows them all.
    seed : whatever is drawn is drawn from it.  `random_state` is an alias.
    epochs, batch_size : None: 8 and 32.
    vectors : a file of word vectors in GloVe's format (.txt, .gz), or "glove-50d"; None: learnt from scratch.
    settings : anything else, by name: {"hidden": 64, "attention": "sparsemax", "learning_rate": 1e-4}.
    max_length : longest text read, in tokens; None: 512, or what a transformer can read.
    class_weight : None, "balanced", or {label: weight}.
    device : auto, cpu, cuda or mps.
    verbose : True: a progress bar; None: a bar if standard error is a terminal.
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

    def fit(
        self,
        X: Any,
        y: Any,
        validation: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Train.  `validation` chooses the epoch; without it a tenth of the texts is set aside for that.

        With `checkpoint` (a folder) a run that was interrupted is taken up by calling fit again with resume=True.
        """
        ordered = order(self.get_params(deep=False))
        train = read_split(X, y, sample_weight)
        held_out = None if validation is None else read_split(*validation, minimum_classes=1)
        shown = sys.stderr.isatty() if self.verbose is None else self.verbose
        folder = None if checkpoint is None else Path(checkpoint)
        return self._take(fitting.fit(ordered, train, held_out, Bar() if shown else Silent(), folder, resume))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(N,C), columns in the order of `classes_`."""
        texts, questions = self._read(X)
        tokenizer = self.stored_.tokenizer
        asked = None if questions is None else tokenizer.encode(questions, question=True)
        logits = infer.logits(self.stored_.model, Data(tokenizer.encode(texts), asked))
        probabilities: NDArray[np.float64] = logits.double().softmax(-1).numpy()
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,)"""
        chosen: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(-1)]
        return chosen

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy.  A label that was not there in training is refused: it could never be right."""
        check_is_fitted(self, "stored_")
        labels = check_labels(y, minimum_classes=1)
        for label in labels:
            self._known(label)
        return float(super().score(X, np.asarray(labels), sample_weight))

    def explain(
        self,
        X: Any,
        explainer: str | Explainer = "attention",
        target: Label | None = None,
        granularity: Granularity = "word",
    ) -> Any:
        """Which words the prediction rests on: an Explanation for one text, a list for a list.

        One text is a string, one pair a tuple (text, question).  granularity="piece" shows a transformer's own pieces.
        """
        alone = is_one(X)
        texts, questions = self._read([X] if alone else X)
        if granularity not in ("word", "piece"):
            raise unknown("granularity", granularity, ("word", "piece"))
        if isinstance(explainer, str) and explainer not in EXPLAINERS:
            raise unknown("explainer", explainer, EXPLAINERS)
        name = explainer if isinstance(explainer, str) else type(explainer).__name__
        way = EXPLAINERS[explainer]() if isinstance(explainer, str) else explainer
        request = Request(way, name, None if target is None else self._known(target), granularity)
        classes = self.stored_.description.classes
        explained = explain_texts(self.stored_.model, self.stored_.tokenizer, classes, texts, questions, request)
        return explained[0] if alone else explained

    def save(self, folder: str | Path) -> None:
        """A folder that `steadygaze.load` reads: JSON and safetensors, no pickle; whole or not at all."""
        check_is_fitted(self, "stored_")
        store.save(Path(folder), self.stored_)

    def _read(self, X: Any) -> tuple[list[str], list[str] | None]:
        """Texts of the kind this model was trained on."""
        check_is_fitted(self, "stored_")
        texts, questions = read_texts(X)
        if self.stored_.description.pair != (questions is not None):
            kinds = ("single texts", "pairs (text, question)")
            found, wanted = kinds[questions is not None], kinds[self.stored_.description.pair]
            raise UserError(f"this model was trained on {wanted}, found {found}")
        return texts, questions

    def _known(self, label: Label) -> Label:
        classes = self.stored_.description.classes
        if label not in classes:
            raise unknown("label", label, map(str, classes))
        return label

    def _take(self, stored: store.Stored) -> Self:
        self.stored_ = stored
        self.classes_ = np.asarray(stored.description.classes)
        self.history_ = stored.description.history
        stored.model.to(best(self.device))
        return self


def load(folder: str | Path, device: str = "auto") -> TextClassifier:
    """A saved model, ready to predict and explain."""
    stored = store.load(Path(folder))
    known = stored.description
    loaded = TextClassifier(known.encoder, known.technique, seed=known.seed, max_length=known.max_length, device=device)
    loaded.settings = {**known.technique_settings, **known.training}
    return loaded._take(stored)
