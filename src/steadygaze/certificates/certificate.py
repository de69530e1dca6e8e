"""The certificate of attention: per text, bounds on the effect of any change of the attention weights of size R.

certificates = sg.certify(clf, texts, radius=0.01)
certificates[0].certified, certificates[0].radius, certificates.share_certified

The equations are in `certificate_bounds`.
"""

import dataclasses
import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import torch
from torch import Tensor

from steadygaze.adapters.as_adapter import ModelAdapter, as_adapter
from steadygaze.certificates.certificate_bounds import Bounds
from steadygaze.certificates.certificate_bounds import certify_batch as certify_batch
from steadygaze.core.errors import UserError, one_line, printable
from steadygaze.core.maths.distributions import Norm
from steadygaze.core.rounding import percent
from steadygaze.core.types import Batch, Forward, Label, OnProgress, no_progress
from steadygaze.data.batches import by_length, collate
from steadygaze.estimator.inputs import is_single_text
from steadygaze.estimator.model_folder import SavedModel
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.models.classifier import has_extension_points
from steadygaze.results.explanation import LABEL
from steadygaze.results.formatting import short_number
from steadygaze.results.health import ProblemKind
from steadygaze.results.text_results import LEAST, TextResults

SCOPE = "changes of the attention weights themselves, not of words, embeddings or seeds"


@dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds for one text and every change δ of its attention weights with ‖δ‖ ≤ R."""

    text: str
    label: Label
    """The predicted label."""
    certified: bool
    """True if no change up to R can change the label."""
    radius: float | None
    """No smaller change changes the label; infinite if no change does.  None: the decoder is not linear."""
    alpha: float | None
    """Upper bound of KL(prediction ‖ changed prediction); exact for two classes."""
    alpha_low: float
    """Some change reaches this."""
    tvd: float | None
    """Upper bound of the total variation between the two predictions."""
    top_k_holds: bool
    """True if no change up to R can change the set of top-k tokens."""
    R: float
    k: int
    norm: Norm
    simplex: bool
    """True if only changes that keep the sum of the weights are considered."""
    exact: bool
    """True if alpha and tvd are exact, not only upper bounds."""
    beta: float | None = None
    """Overlap of the top-k tokens with those of the reference."""
    gamma: float | None = None
    """KL(the reference's prediction ‖ this one)."""
    gamma_tvd: float | None = None
    question: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON; an infinite radius is "inf"."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}

    def line(self) -> str:
        """Certified radius, label and text, separated by tabs."""
        radius = "not certified" if self.radius is None else short_number(self.radius)
        return f"{radius}\t{one_line(self.label, LABEL)}\t{printable(' '.join(self.text.split()))}"

    def __str__(self) -> str:
        label_change = "cannot change" if self.certified else "may change"
        top_change = "cannot" if self.top_k_holds else "may"
        label = f"{self.label!r} {label_change} within {_ball(self)}"
        return f"{label}; the top {self.k} words {top_change} change (about {SCOPE})"


@dataclass(frozen=True, repr=False)
class Certificates(TextResults[Certificate]):
    """One Certificate per text, in the order of the texts."""

    warns_of_label: bool = True
    """True if `warnings` has a label that all texts get; False: the health of the model has it."""

    scope = SCOPE

    @property
    def share_certified(self) -> float:
        """Share of the texts with a certified label."""
        return fmean(row.certified for row in self.rows)

    @property
    def only_label(self) -> Label | None:
        """The predicted label, if several texts all have the same; else None."""
        labels = {row.label for row in self.rows}
        return labels.pop() if len(labels) == 1 and len(self) > 1 else None

    def least_certain(self, count: int = LEAST) -> list[Certificate]:
        """The texts with the smallest certified radius.

        Parameters
        ----------
        count : int, default=5
            Number of texts.

        Returns
        -------
        list of Certificate
            In ascending order; empty if the decoder is not linear.
        """
        rows = [row for row in self.rows if row.radius is not None and row.radius < math.inf]
        return heapq.nsmallest(count, rows, key=lambda row: row.radius or 0.0)

    def summary(self) -> dict[str, Any]:
        """Counts, shares and means over all texts.

        Returns
        -------
        dict
            Name -> number; None: not defined.
        """
        return {
            "texts": len(self),
            "only_label": self.only_label,
            "certified": sum(row.certified for row in self.rows),
            "share_certified": self._over("certified", fmean),
            "median_radius": self._over("radius", median),
            "mean_alpha": self._over("alpha", fmean),
            "mean_alpha_low": self._over("alpha_low", fmean),
            "mean_tvd": self._over("tvd", fmean),
            "share_top_k_holds": self._over("top_k_holds", fmean),
            "mean_beta": self._over("beta", fmean),
            "mean_gamma": self._over("gamma", fmean),
            "mean_gamma_tvd": self._over("gamma_tvd", fmean),
        }

    def to_dict(self) -> dict[str, Any]:
        """The certificates as values for JSON; an infinite radius is "inf".

        Returns
        -------
        dict
            The scope, the summary and every row.
        """
        summary = {name: _plain(value) for name, value in self.summary().items()}
        return {**super().to_dict(), "summary": summary}

    def _row_values(self) -> list[dict[str, Any]]:
        return [row.to_dict() for row in self.rows]

    def lines(self) -> list[tuple[str, str]]:
        """The summary for a terminal.

        Returns
        -------
        list of (str, str)
            Description and value.
        """
        summary = self.summary()
        if not self.rows:
            return [("texts", "0")]
        first = self.rows[0]
        kind = "exact" if first.exact else "upper bound"
        descriptions = {
            "median_radius": "median certified radius of the label",
            "mean_alpha": f"mean α, KL of the predictions ({kind})",
            "mean_alpha_low": "mean lower bound of α",
            "mean_tvd": f"mean total variation ({kind})",
            "share_top_k_holds": f"share whose top {first.k} words cannot change",
            "mean_beta": f"mean β, top {first.k} words shared with the reference",
            "mean_gamma": "mean γ, KL to the reference's prediction",
            "mean_gamma_tvd": "mean γ as total variation",
        }
        ball = f"within {_ball(first)}"
        certified_share = f"{summary['certified']:,} of {len(self):,} ({percent(summary['share_certified'], 1)})"
        if first.radius is None:
            certified_share = "none: the decoder is not linear in the attention weights"
        if first.exact:
            del descriptions["mean_alpha_low"]  # the same number again
        lines = [(text, f"{summary[name]:.4g}") for name, text in descriptions.items() if summary[name] is not None]
        return [("texts whose label cannot change " + ball, certified_share), *lines]

    def warnings(self) -> list[str]:
        """Warnings that limit the meaning of the numbers.

        Returns
        -------
        list of str
            One sentence each.
        """
        if self.only_label is None or not self.warns_of_label:
            return []
        label = repr(self.only_label)[:80]
        return [f"Every text gets the same label, {label}: the certificate is uninformative."]

    def _least(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        rows = [(f"{row.radius:.4f}", row.label, row.text) for row in self.least_certain()]
        return ("radius", "label", "least certain texts"), rows

    def _over(self, name: str, statistic: Callable[[list[float]], float]) -> float | None:
        values = [value for row in self.rows if (value := getattr(row, name)) is not None]
        return statistic(values) if values else None


def _plain(value: Any) -> Any:
    return "inf" if value == math.inf else value


def _ball(certificate: Certificate) -> str:
    sum_note = ", their sum kept" if certificate.simplex else ""
    return f"{certificate.R:g} ({'ℓ∞' if certificate.norm == 'linf' else 'ℓ2'}{sum_note})"


OTHER_TOKENS = "the reference splits texts into other tokens: use a model with the same kind of encoder and max_length"


def certify_attention(
    clf: Any,
    texts: Any,
    radius: float,
    norm: Norm,
    k: int,
    simplex: bool,
    reference: TextClassifier | None,
    lower_bound: bool,
    batch_size: int,
    device: str = "auto",
    on_progress: OnProgress = no_progress,
) -> Certificates:
    """One Certificate per text or pair; see `certify`."""
    clf = _classifier(clf, device)
    read, questions, _ = clf._read([texts] if is_single_text(texts) else texts)
    data, network = clf.stored_.data(read, questions), clf.stored_.model
    if not has_extension_points(network):
        raise UserError("certify needs attention weights, and this model selects words instead; use audit")
    reference_data = None if reference is None else _same(clf, reference).data(read, questions)
    certificates = dict[int, Certificate]()
    settings: dict[str, Any] = {"R": float(radius), "k": int(k), "norm": norm, "simplex": bool(simplex)}
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(network.device)
        close_to = None
        if reference is not None and reference_data is not None:
            close_to = _forward(reference, collate(reference_data, rows), batch.mask)
        bounds = certify_batch(network, batch, float(radius), norm, int(k), bool(simplex), close_to, lower_bound)
        for row, values in zip(rows.tolist(), _rows(bounds, clf), strict=True):
            question = None if questions is None else questions[row]
            certificates[row] = Certificate(text=read[row], question=question, **{**values, **settings})
        on_progress("certifying", len(certificates), len(read))
    warns_of_label = all(problem.kind is not ProblemKind.CONSTANT_LABEL for problem in clf.health)
    return Certificates(tuple(certificates[row] for row in range(len(read))), warns_of_label, health=clf.health)


def _rows(bounds: Bounds, clf: TextClassifier) -> Iterator[dict[str, Any]]:
    """One dictionary of plain numbers per text."""
    classes = clf.stored_.description.classes
    fields = [field.name for field in dataclasses.fields(Bounds) if getattr(bounds, field.name) is not None]
    unsaid = {field.name: None for field in dataclasses.fields(Bounds) if field.name not in fields}
    for values in zip(*(getattr(bounds, name).tolist() for name in fields), strict=True):
        row = dict(zip(fields, values, strict=True))
        label = classes[row.pop("predicted")]
        yield {"label": label, "exact": bounds.alpha is not None and len(classes) == 2, **row, **unsaid}


def _classifier(model: Any, device: str) -> TextClassifier:
    supported = isinstance(model, str | Path | ModelAdapter | TextClassifier)
    adapter = as_adapter(model, device=device) if supported else None
    if adapter is None or adapter.classifier is None:
        name = getattr(model, "__name__", type(model).__name__) if adapter is None else adapter.name
        raise UserError(
            f"{name} cannot be certified without substitutions= (--substitutions): a certificate of attention weights "
            "needs the attention layer of a TextClassifier"
        )
    return adapter.classifier


def _same(clf: TextClassifier, reference: TextClassifier) -> SavedModel:
    """The saved reference; raise an error if its tokens or its labels differ."""
    if not hasattr(reference, "stored_"):
        raise UserError("the reference is not a fitted TextClassifier: fit or load it first")
    saved, saved_reference = clf.stored_, reference.stored_
    if saved.description.classes != saved_reference.description.classes:
        labels = f"{saved_reference.description.classes!r:.80} and {saved.description.classes!r:.80}"
        raise UserError(f"the reference and the model must have the same labels, found {labels}")
    kinds = saved.tokenizer.kind, saved_reference.tokenizer.kind
    # Word tokenizers split texts alike with any vocabulary; subword tokenizers must be the same.
    same_tokens = kinds == ("words", "words") or (
        saved.tokenizer.to_json() == saved_reference.tokenizer.to_json()
        and saved.tokenizer.synonym_groups == saved_reference.tokenizer.synonym_groups
    )
    if saved.description.pair != saved_reference.description.pair or not same_tokens:
        raise UserError(OTHER_TOKENS)
    return saved_reference


def _forward(reference: TextClassifier, batch: Batch, mask: Tensor) -> Forward:
    """The output of the reference for the same texts."""
    if not torch.equal(batch.mask, mask.cpu()):
        raise UserError(OTHER_TOKENS)
    model = reference.stored_.model
    with inference.inference(model):
        forward: Forward = model(batch.to(next(model.parameters()).device))
    return forward
