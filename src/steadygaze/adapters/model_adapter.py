"""ModelAdapter: any model with `predict`, `predict_proba`, `score` and `explain`.

SingleOutput: one output of a multi-label or regression model as a model of two classes, for explainers and audits.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.output_labels import label_matrix, numbers
from steadygaze.adapters.prompt_tokenizer import SegmentTokenizer
from steadygaze.core.arguments import integer, validated
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Batch, Label, Sentences, Task
from steadygaze.data.batches import Data, placed_data
from steadygaze.data.text_checks import (
    UnmatchedLabel,
    check_label_order,
    check_labels,
    listed_names,
    positions,
    unmatched_label,
)
from steadygaze.data.text_tokenizer import Tokens as Tokens
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.estimator.explain_request import ExplainRequest, Granularity, documented
from steadygaze.estimator.explain_texts import explain_inputs, explain_texts, resolve_request
from steadygaze.estimator.inputs import (
    check_label_count,
    join_questions,
    labels_or_none,
    list_labels,
    predict_nonempty,
    read_inputs,
    warn_of_empty,
)
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.explainers.class_probability import Output
from steadygaze.explainers.resolve_explainer import resolve_explainer
from steadygaze.models import inference
from steadygaze.models.inference import Model, selects
from steadygaze.results.explanation import Explanations
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.query_noise import QueryNoise

if TYPE_CHECKING:
    from steadygaze.estimator.text_classifier import TextClassifier

STEADYGAZE_MODEL = "a steadygaze classifier"
"""Kind of a TextClassifier."""
REPEATED_TEXTS = 8
"""Texts of a black box that are asked again."""
TRIAL = "This is a text of a few words."
KINDS = ("single texts", "pairs (text, question)")
PASS_KIND = (
    "leave out the questions; a command takes one --text",
    "pass a question with each text; a command takes both columns, such as --text premise --text hypothesis",
)


@dataclass(frozen=True, repr=False)
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
    """The network, or the black box."""
    tokens: Tokens
    """Tokenizer of single texts."""
    classes: Sequence[Label]
    """The classes in the order of the probabilities, or the names of the outputs."""
    pair: bool | None
    """True if it reads pairs; None: single texts and pairs, see `for_pairs`."""
    fingerprint: str
    """SHA-256 of the weights; '' for a black box."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Further facts for the report."""
    pairs: Tokens | None = None
    """Tokenizer of pairs, if it differs from that of single texts."""
    segments: SegmentTokenizer | None = None
    """Tokenizer of filled prompts, whose units are the segments of a prompt."""
    saved: SavedModel | None = None
    """The network of a TextClassifier; None for other models."""
    fitted: "TextClassifier | None" = None
    """The TextClassifier, if it is in memory."""
    task: Task = "classification"
    """Unless it is classification, `classes` are the names of the outputs."""
    health: Health = HEALTHY
    """Known-bad states; `sg.load` warns of them."""

    def __repr__(self) -> str:
        names = listed_names("outputs" if self.outputs else "classes", self.classes)
        return f"ModelAdapter({self.name!r}, {self.kind}, {names})"

    @property
    def outputs(self) -> tuple[Label, ...]:
        """The outputs of a multi-label or regression model, for `target=`; empty for other models."""
        return () if self.task == "classification" else tuple(self.classes)

    def training_overlap(self, inputs: Sequence[Any]) -> int | None:
        """Count the training texts of the model among these texts.

        Parameters
        ----------
        inputs : list of str or of (text, question)
            Texts or pairs.

        Returns
        -------
        int or None
            None: unknown.
        """
        return None if self.saved is None else self.saved.training_overlap(inputs)

    def output_position(self, target: Label | None) -> tuple[Label, int]:
        """Find an output of a multi-label or regression model.

        Parameters
        ----------
        target : str or int, default=None
            Name of the output; None: the only one.

        Returns
        -------
        (str or int, int)
            Name and position.
        """
        names = list(map(str, self.classes))
        if target is None and len(names) == 1:
            return self.classes[0], 0
        if target is None or str(target) not in names:
            problem = "choose one" if target is None else f"{target!r:.40} is not one of them; choose another"
            raise UserError(
                f"{self.name} has the outputs {', '.join(names):.200}: {problem} with target={names[0]!r} "
                f"(--target {names[0]})"
            )
        return self.classes[names.index(str(target))], names.index(str(target))

    def for_output(self, target: Label | None = None, threshold: float = 0.0, scale: float = 1.0) -> "ModelAdapter":
        """One output of a multi-label or regression model, as a model of two classes.

        Parameters
        ----------
        target : str or int, default=None
            Name of the output; None: the only one.
        threshold : float, default=0.0
            Value of a regression model that divides the two classes.
        scale : float, default=1.0
            Difference of values that counts as one logit.

        Returns
        -------
        ModelAdapter
            The second class is the output.  A classifier is returned unchanged.
        """
        if self.task == "classification":
            return self
        name, index = self.output_position(target)
        classes, facts = (f"not {name}", str(name)), {"output": str(name)}
        if self.task == "regression":
            classes = f"at most {threshold:.4g}", f"above {threshold:.4g}"
            facts |= {"threshold": f"{threshold:.6g}", "scale": f"{scale:.6g}"}
        model = SingleOutput(self.model, index, threshold, scale).eval()
        return replace(self, task="classification", model=model, classes=classes, facts={**self.facts, **facts})

    def check_classes(self) -> None:
        """Refuse a multi-label or regression model."""
        if self.outputs:
            raise UserError(
                f"{self.name} has no classes but the outputs {', '.join(map(str, self.outputs)):.200}: pass one, as in "
                f"model.for_output({self.outputs[0]!r})"
            )

    @property
    def is_classifier(self) -> bool:
        """True if `classifier` is not None."""
        return self.fitted is not None or self.saved is not None

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
        """Predict probabilities.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `TextClassifier`.
        batch_size : int, default=128
            Texts per batch.

        Returns
        -------
        array of shape (N,C)
            Columns in the order of `classes_`.  Rows of a multi-label model do not sum to 1.  The row of an empty text
            is NaN, and a warning names it.
        """
        if self.task == "regression":
            raise UserError(f"{self.name} is a regression model without probabilities: use predict")
        return self._predict(X, batch_size, stacklevel=4)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels or values.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `TextClassifier`.

        Returns
        -------
        array
            (N,) classes; (N,K) booleans of a multi-label model; (N,) numbers of a regression model, (N,K) for K > 1.
            An empty text has no label but None, in an array of objects, or the number NaN; a warning names it.
        """
        values = self._predict(X, inference.BATCH, stacklevel=3)
        if self.task == "regression":
            return values[:, 0] if len(self.classes) == 1 else values
        labels: NDArray[Any] = values > 0.5 if self.task == "multi-label" else self.classes_[values.argmax(-1)]
        return labels_or_none(labels, np.isnan(values[:, 0]))

    def _predict(self, X: Any, batch_size: int, stacklevel: int) -> NDArray[np.float64]:
        values, coverage = self.predict_covered(X, batch_size)
        warn_of_empty(np.isnan(values[:, 0]), stacklevel)
        for warning in coverage.warnings():
            warnings.warn(warning, stacklevel=stacklevel)
        return values

    def score(self, X: Any, y: Any) -> float:
        """Measure the correctness of the predictions.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `TextClassifier`.
        y : list
            Labels; lists of labels for a multi-label model; numbers for a regression model.

        Returns
        -------
        float
            Accuracy; R² of a regression model; share of texts with exactly the right labels of a multi-label model.
        """
        predicted, labels = self.predict(join_questions(*read_inputs(X))), list_labels(y, self.outputs)
        check_label_count(len(predicted), len(labels))
        if self.task == "classification":
            return float((predicted == self.classes_[self.label_codes(labels)]).mean())
        if self.task == "multi-label":
            return float((predicted == label_matrix(labels, self.outputs)).all(1).mean())
        from sklearn.metrics import r2_score

        true = np.array(numbers(labels) if predicted.ndim == 1 else [numbers(row) for row in labels])
        return float(r2_score(true, predicted))

    @documented
    @validated()
    def explain(
        self,
        X: Any,
        explainer: Any = None,
        target: Label | None = None,
        granularity: Granularity = "word",
        *,
        output: Output | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = inference.BATCH,
    ) -> Any:
        """Explain predictions: an Explanation for one text, a list of them for a list."""
        request = ExplainRequest(
            X, explainer, target, granularity, output=output, settings=settings, seed=seed, batch_size=batch_size
        )
        return explain_inputs(X, self.tokens, self.explain_function(request))

    def explain_function(self, request: ExplainRequest) -> Callable[[list[Any]], Explanations]:
        """Check a request before there are texts.

        Parameters
        ----------
        request : ExplainRequest
            The options of `explain`; its texts are not read.

        Returns
        -------
        function
            Explains a list of texts or pairs, none of them empty.
        """
        adapter, explainer, target = self, request.explainer, request.target
        resolvable = request
        if target is not None:
            label = {str(name): name for name in self.classes}.get(str(target), target)
            resolvable = replace(request, target=label)
        if self.task != "classification":
            adapter = self.for_output(target)
            method = resolve_explainer(explainer, None if explainer is not None else self.model)[1]
            resolvable = replace(request, target=adapter.classes[1] if method.class_specific else None)
            if self.task == "regression" and method.class_specific:
                resolvable = replace(resolvable, output="logit")
        options = adapter.model, adapter.classes
        resolved = resolve_request(
            resolvable, *options, pair=bool(self.pair), model_name=self.name, segments=self.segments is not None
        )
        health, noise = getattr(explainer, "health", self.health), HEALTHY
        is_checked = not self.model.is_black_box

        def explain(inputs: list[Any]) -> Explanations:
            nonlocal is_checked, noise
            texts, questions, sentences = read_inputs(inputs)
            if not is_checked:  # the first texts are asked twice
                words = sum(len(text.split()) for text in texts) / len(texts)
                self.plan_queries(resolved.explainer.passes(words), texts)
                noise, is_checked = self.query_noise(inputs, target).health, True
                noise.warn(stacklevel=6)
            own = adapter.for_pairs(questions is not None)
            model = own.model, own.tokens, own.classes
            if self.segments is not None and request.granularity == "segment":
                model, texts = (own.model, self.segments, own.classes), self.segments.fill(texts)
            explanations = explain_texts(*model, texts, questions, resolved, sentences, health + noise)
            if self.task != "regression":
                return explanations
            name, index = self.output_position(target)
            inputs = join_questions(texts, questions)
            values = self.predict_covered(inputs, request.batch_size)[0][:, index].tolist()
            results = []
            for item, value in zip(explanations, values, strict=True):
                unit = "relative" if item.unit == "logit" else item.unit
                results.append(replace(item, label=name, probabilities={}, target=None, value=value, unit=unit))
            return Explanations(results)

        return explain

    def query_noise(self, inputs: Sequence[Any], target: Label | None = None) -> QueryNoise:
        """Ask a black box again for its first texts: twice, and a third time if the answers differ.

        Parameters
        ----------
        inputs : list of str or of (text, question)
            Texts or pairs, none of them empty.
        target : str or int, default=None
            Output of a multi-label or regression model.

        Returns
        -------
        QueryNoise
            That of a regression model is about the side of the median, in standard deviations of the values.
        """
        texts, adapter = list(dict.fromkeys(inputs))[:REPEATED_TEXTS], self
        if self.task == "multi-label":
            adapter = self.for_output(target)
        elif self.task == "regression":
            values = self.predict_covered(texts, REPEATED_TEXTS)[0][:, self.output_position(target)[1]]
            adapter = self.for_output(target, float(np.median(values)), float(values.std()) or 1.0)
        draws: list[NDArray[np.float64]] = []
        while len(draws) < 2 or (len(draws) == 2 and QueryNoise.of(draws).is_noisy):
            with self.model.redrawn(len(draws)):
                draws.append(adapter.predict_covered(texts, REPEATED_TEXTS)[0])
        return QueryNoise.of(draws, getattr(self.hosted, "unanswered", 0.0))

    def with_noise(self, inputs: Sequence[Any]) -> "ModelAdapter":
        """The adapter with the noise of a black box among its known-bad states.

        Parameters
        ----------
        inputs : list of str or of (text, question)
            Texts or pairs, none of them empty.

        Returns
        -------
        ModelAdapter
            A model of another kind is returned unchanged.
        """
        if not self.model.is_black_box or not len(inputs):
            return self
        return replace(self, health=self.health + self.query_noise(inputs).health)

    @property
    def hosted(self) -> Any:
        """The `HostedModel` behind the adapter; None for other models."""
        predict = getattr(self.model, "predict", None)
        return predict if hasattr(predict, "plan") else None

    def plan_queries(self, passes: float, inputs: Sequence[Any]) -> None:
        """Announce the requests to a hosted model, and refuse more than its budget; other models need no plan.

        Parameters
        ----------
        passes : float
            Forward passes of a text.
        inputs : list of str
            The texts.
        """
        if self.hosted is not None and len(inputs):
            characters = sum(map(len, inputs)) / len(inputs)
            self.hosted.plan(passes * len(inputs), len(inputs), characters)

    def predict_covered(self, X: Any, batch_size: int) -> tuple[NDArray[np.float64], Coverage]:
        """Predict probabilities or values, and measure the coverage of the texts by the vocabulary.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `TextClassifier`.
        batch_size : int
            Texts per batch.

        Returns
        -------
        (array of shape (N,C), Coverage)
            Probabilities or values, NaN for an empty text, and the coverage of the others.
        """
        covered = Coverage()

        def predict(inputs: list[Any]) -> NDArray[np.float64]:
            nonlocal covered
            texts, questions, sentences = read_inputs(inputs)
            adapter = self.for_pairs(questions is not None)
            data = adapter.data(adapter.tokens.place(texts), questions, sentences)
            covered = coverage(adapter.tokens, data.text)
            logits = inference.logits(adapter.model, data, batch_size).double()
            if self.task == "classification":
                logits = logits.softmax(-1)
            elif self.task == "multi-label":
                logits = logits.sigmoid()
            return logits.numpy()

        return predict_nonempty(X, len(self.classes), predict), covered

    def for_pairs(self, pair: bool) -> "ModelAdapter":
        """This adapter, for single texts or for pairs.

        Parameters
        ----------
        pair : bool
            Whether the inputs are pairs.  A model that cannot read them is refused.

        Returns
        -------
        ModelAdapter
            An adapter of the same model.
        """
        if self.pair is None:
            return replace(self, pair=pair, tokens=self.pairs if pair and self.pairs is not None else self.tokens)
        if self.pair != pair:
            raise UserError(f"{self.name} reads {KINDS[self.pair]}, found {KINDS[pair]}: {PASS_KIND[self.pair]}")
        return self

    def label_codes(self, labels: Sequence[Label]) -> list[int]:
        """Find the positions of labels among the classes.

        Parameters
        ----------
        labels : list of str or int
            Labels of the data.

        Returns
        -------
        list of int
            One position per label, see `positions`.
        """
        codes = positions(check_labels(labels, minimum_classes=1), self.classes)
        if isinstance(codes, UnmatchedLabel):
            raise unmatched_label(codes.label, labels, self.classes, self.name)
        return codes

    def data(self, placed: TokenizedTexts, questions: Sequence[str] | None, sentences: Sentences | None = None) -> Data:
        """Encode texts for this model; all subwords of a word are one unit.

        Parameters
        ----------
        placed : TokenizedTexts
            The tokenized texts.
        questions : list of str or None
            Questions of pairs; None: single texts.
        sentences : list of spans, default=None
            Given sentences, for a model that selects them.

        Returns
        -------
        Data
            The encoded texts.
        """
        tokenized_questions = None if questions is None else self.tokens.place(questions, question=True)
        units = sentences if selects(self.model) else None
        return placed_data(placed, tokenized_questions, whole_words=self.tokens.kind == "pieces", sentences=units)


def with_class_names(adapter: ModelAdapter, classes: Sequence[Label] | None) -> ModelAdapter:
    """The adapter with renamed classes, in the order of the probabilities; None: with checked names."""
    own = adapter.classes
    names = check_labels(
        own if classes is None else classes, minimum_classes=1, location="classes[{}]".format, strip=classes is not None
    )
    if len(names) != len(own):
        raise UserError(
            f"{adapter.name} has {len(own)} classes, but classes= has {len(names)} names: "
            f"pass one name for each of {', '.join(map(str, own)):.200}"
        )
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise UserError(f"{adapter.name} has two classes named {duplicate!r}; pass distinct names as classes=")
    if adapter.task == "classification" and len(names) == 1:
        raise UserError(
            f"{adapter.name} has only the class {names[0]!r}; a classifier needs at least 2: name them all in classes="
        )
    check_label_order(own, names, adapter.name)
    renamed = [f"{old} is {new}" for old, new in zip(own, names, strict=True) if str(old) != str(new)]
    facts = {**adapter.facts, "renamed classes": ", ".join(renamed)} if renamed else adapter.facts
    health = adapter.health.renamed(dict(zip(own, names, strict=True)))
    return replace(adapter, classes=names, facts=facts, health=health)


def is_comparable(adapter: ModelAdapter, other: ModelAdapter) -> bool:
    """True if two models may differ only in their seed: the same classes, vocabulary and synonym groups."""
    black_boxes = not adapter.fingerprint and not other.fingerprint  # black boxes have no vocabulary
    same_vocabulary = black_boxes or other.tokens.vocabulary == adapter.tokens.vocabulary
    same_groups = getattr(adapter.tokens, "synonym_groups", None) == getattr(other.tokens, "synonym_groups", None)
    return same_vocabulary and same_groups and list(other.classes) == list(adapter.classes)


class SingleOutput(Model):
    """The output at `index` of a model, as two classes.

    multi-label   logits (0, z_k)           p(label k) = sigmoid(z_k)
    regression    logits (0, v)             to explain: the logit of the second class is the value
                  logits (0, (v − t) / s)   to audit: is the value above t?  t: threshold, s: scale
    """

    def __init__(self, model: Model, index: int, threshold: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.capabilities = model.capabilities
        self.padding = model.padding
        self.is_black_box = model.is_black_box
        self._index, self._threshold, self._scale = index, threshold, scale

    @property
    def vectors(self) -> Tensor:
        return self.model.vectors

    def embed(self, batch: Batch) -> Tensor:
        return self.model.embed(batch)

    def embed_question(self, batch: Batch) -> Tensor | None:
        return self.model.embed_question(batch)

    def clear_cache(self) -> None:
        self.model.clear_cache()

    def redrawn(self, draw: int) -> AbstractContextManager[None]:
        return self.model.redrawn(draw)

    def forward(self, batch: Batch, *vectors: Tensor | None) -> Any:
        output = self.model(batch, *vectors)
        return replace(output, logits=self._two_classes(output.logits))

    def logits(self, batch: Batch, *vectors: Tensor | None) -> Tensor:
        return self._two_classes(self.model.logits(batch, *vectors))

    def _two_classes(self, logits: Tensor) -> Tensor:
        """(B,K) -> (B,2)"""
        value = (logits[:, self._index] - self._threshold) / self._scale
        return torch.stack([torch.zeros_like(value), value], 1)
