"""ModelAdapter: any model with `predict`, `predict_proba`, `score` and `explain`; labels matched with its classes.

1. By name.  Numbers and strings are compared as strings: the label 1 matches the class "1".  A boolean label also
   matches the words: true matches the class "True", "true" or "TRUE".
2. By position, if no label is the name of a class and every label is a whole number: 0 is the first class.  Classes
   whose names are numbers or, for boolean labels, boolean words are not matched by position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.arguments import choice, integer, validated
from steadygaze.core.errors import MAX_NAMES, UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Label
from steadygaze.data.batches import Data, placed_data
from steadygaze.data.text_checks import BooleanLabel, check_labels
from steadygaze.data.text_tokenizer import Tokens as Tokens
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.estimator.inputs import is_single_text, read_texts
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.models import inference
from steadygaze.models.inference import Model

if TYPE_CHECKING:
    from steadygaze.estimator.text_classifier import TextClassifier
    from steadygaze.explainers.class_probability import Output


@dataclass(frozen=True)
class UnmatchedLabel:
    """The first label without a class."""

    label: Label


def positions(labels: Sequence[Label], classes: Sequence[Label]) -> list[int] | UnmatchedLabel:
    """The position of each label among the classes.

    >>> positions([1, 0], ["1", "0"])
    [0, 1]
    >>> positions([1, 0], ["hate", "normal"])
    [1, 0]
    >>> positions([1, 2], ["1", "one"])
    UnmatchedLabel(label=2)
    >>> positions([BooleanLabel(True), BooleanLabel(False)], ["True", "False"])
    [0, 1]
    """
    names = {str(name): position for position, name in enumerate(classes)}
    spellings = {spelling for label in labels for spelling in _spellings(label)}
    if not spellings & names.keys() and not any(_names_value(name, labels) for name in classes):
        names = {str(position): position for position in range(len(classes))}
    indices = [_position(label, names) for label in labels]
    matched = [position for position in indices if position is not None]
    return matched if len(matched) == len(labels) else UnmatchedLabel(labels[indices.index(None)])


def _position(label: Label, names: Mapping[str, int]) -> int | None:
    return next((names[spelling] for spelling in _spellings(label) if spelling in names), None)


def _spellings(label: Label) -> tuple[str, ...]:
    """Class names that a label matches, best first."""
    if not isinstance(label, BooleanLabel):
        return (str(label),)
    word = str(bool(label))
    return word, word.lower(), word.upper(), str(int(label))


def _names_value(name: Label, labels: Sequence[Label]) -> bool:
    """Whether the name of a class is a possible label, so that labels are not positions."""
    if not isinstance(name, str):
        return True
    boolean = any(isinstance(label, BooleanLabel) for label in labels)
    return name.removeprefix("-").isdecimal() or (boolean and name.casefold() in ("true", "false"))


STEADYGAZE_MODEL = "a steadygaze classifier"
"""Kind of a TextClassifier."""
KINDS = ("single texts", "pairs (text, question)")


@dataclass(frozen=True)
class ModelAdapter:
    """A model of any origin, as returned by `steadygaze.load`.

    model = sg.load("path/to/huggingface-model")
    model.predict(["A gorgeous, witty, seductive movie."])
    model.explain("A gorgeous, witty, seductive movie.", explainer="integrated-gradients")
    sg.audit(model, texts, labels)
    """

    name: str
    """Name in reports: a folder's name, never a path."""
    kind: str
    """Kind of the model, for reports."""
    model: Model
    tokens: Tokens
    classes: Sequence[Label]
    pair: bool | None
    """Whether it reads pairs; None: single texts and pairs, see `for_pairs`."""
    fingerprint: str
    """SHA-256 of the weights; '' for a black box."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Further facts for the report."""
    pairs: Tokens | None = None
    """Tokenizer of pairs, if it differs from that of single texts."""
    saved: SavedModel | None = None
    """The network of a TextClassifier; None for other models."""
    fitted: "TextClassifier | None" = None
    """The TextClassifier, if it is in memory."""

    @property
    def classifier(self) -> "TextClassifier | None":
        """The classifier, which can be retrained; None for other models."""
        if self.fitted is not None or self.saved is None:
            return self.fitted
        from steadygaze.estimator.text_classifier import from_saved  # imports scikit-learn

        return from_saved(self.saved, self.model.device.type)

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, in the order of the probabilities."""
        return np.asarray(self.classes)

    @validated(batch_size=integer(1))
    def predict_proba(self, X: Any, *, batch_size: int = inference.BATCH) -> NDArray[np.float64]:
        """(N,C), columns in the order of `classes_`.  X: texts or pairs, as for `TextClassifier`."""
        return self.predict_covered(X, batch_size)[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,)"""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(-1)]
        return labels

    def score(self, X: Any, y: Any) -> float:
        """Accuracy."""
        return float((self.predict_proba(X).argmax(-1) == np.asarray(self.label_codes(list(y)))).mean())

    @validated(granularity=choice("word", "piece"), output=choice("probability", "logit"), batch_size=integer(1))
    def explain(
        self,
        X: Any,
        explainer: Any = None,
        target: Label | None = None,
        granularity: str = "word",
        *,
        output: "Output" = "probability",
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = inference.BATCH,
    ) -> Any:
        """Explain predictions: an Explanation for one text, a list for a list.

        Parameters as for `steadygaze.explain`.
        """
        from steadygaze.estimator.explain_texts import explain_request, explain_texts

        single = is_single_text(X)
        texts, questions = read_texts([X] if single else X)
        subject = self.for_pairs(questions is not None)
        label = target if target is None else {str(name): name for name in self.classes}.get(str(target), target)
        request = explain_request(
            self.model,
            self.classes,
            explainer,
            label,
            granularity,
            output=output,
            model_name=self.name,
            settings=settings,
            seed=seed,
        )
        explanations = explain_texts(
            subject.model, subject.tokens, subject.classes, texts, questions, request, batch_size
        )
        return explanations[0] if single else explanations

    def predict_covered(self, X: Any, batch_size: int) -> tuple[NDArray[np.float64], Coverage]:
        """Probabilities (N,C), and the coverage of the texts by the vocabulary."""
        texts, questions = read_texts(X)
        subject = self.for_pairs(questions is not None)
        data = subject.data(subject.tokens.place(texts), questions)
        logits = inference.logits(subject.model, data, batch_size)
        return logits.double().softmax(-1).numpy(), coverage(subject.tokens, data.text)

    def for_pairs(self, pair: bool) -> "ModelAdapter":
        """This adapter, for single texts or for pairs."""
        if self.pair is None:
            return replace(self, pair=pair, tokens=self.pairs if pair and self.pairs is not None else self.tokens)
        if self.pair != pair:
            raise UserError(f"{self.name} reads {KINDS[self.pair]}, found {KINDS[pair]}")
        return self

    def label_names(self, classes: Sequence[Label] | None) -> "ModelAdapter":
        """This adapter with renamed classes; None: unchanged."""
        names = check_labels(self.classes if classes is None else classes, location="classes[{}]".format)
        if len(names) != len(self.classes):
            raise UserError(f"{self.name} has {len(self.classes)} classes, but classes= has {len(names)} names")
        if len(set(names)) < len(names):
            duplicate = next(name for name in names if names.count(name) > 1)
            raise UserError(f"{self.name} has two classes named {duplicate!r}; pass distinct names as classes=")
        check_label_order(self.classes, names, self.name)
        return replace(self, classes=names)

    def label_codes(self, labels: Sequence[Label]) -> list[int]:
        """The position of each label among the classes, see `positions`."""
        codes = positions(check_labels(labels, minimum_classes=1), self.classes)
        if isinstance(codes, UnmatchedLabel):
            raise self._unknown_label(codes.label)
        return codes

    def is_comparable(self, other: "ModelAdapter") -> bool:
        """Whether the two may differ only in their seed: same classes and same vocabulary."""
        black_boxes = not self.fingerprint and not other.fingerprint  # black boxes have no vocabulary
        same_vocabulary = black_boxes or other.tokens.vocabulary == self.tokens.vocabulary
        return same_vocabulary and list(other.classes) == list(self.classes)

    def data(self, placed: TokenizedTexts, questions: Sequence[str] | None) -> Data:
        """Encode texts for this model; all subwords of a word are one unit."""
        tokenized_questions = None if questions is None else self.tokens.place(questions, question=True)
        return placed_data(placed, tokenized_questions, whole_words=self.tokens.kind == "pieces")

    def _unknown_label(self, label: Label) -> UserError:
        class_names = ", ".join(map(repr, self.classes[:MAX_NAMES])) + (" …" if len(self.classes) > MAX_NAMES else "")
        return UserError(
            f"the data have the label {label!r}, which is not a class of {self.name}; its classes are {class_names}.  "
            "If your data have other names for the same classes, pass them in that order: --classes A,B (classes=)"
        )


def check_label_order(classes: Sequence[Label], names: Sequence[Label], model: str) -> None:
    """Refuse the model's own class names in another order: they would swap classes."""
    new, current = list(map(str, names)), list(map(str, classes))  # the command line gives 1 as "1"
    if new != current and set(new) == set(current):
        raise UserError(
            f"classes= has the classes of {model} in another order than its own, {', '.join(map(str, classes)):.200}: "
            f"remove it, or pass them in that order"
        )
