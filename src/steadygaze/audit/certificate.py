"""certify: per text, what no change of the attention weights of size R can do.  The equations are in `audit.bounds`.

certificates = certify(clf, texts, radius=0.01)
certificates[0].certified, certificates[0].radius, certificates.share_certified
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args

import torch
from torch import Tensor

from steadygaze import infer
from steadygaze.arguments import checked, choice, flag, instance, number, optional, whole
from steadygaze.audit.bounds import Bounds
from steadygaze.audit.bounds import certify_batch as certify_batch
from steadygaze.audit.certified import Certificate as Certificate
from steadygaze.audit.certified import Certificates as Certificates
from steadygaze.batch import by_length, collate
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.inputs import is_one
from steadygaze.maths.norms import Norm
from steadygaze.model import Classifier
from steadygaze.store import Stored
from steadygaze.types import Batch, Forward

OTHER_TOKENS = "the reference splits texts into other tokens: use a model with the same kind of encoder and max_length"


@checked(
    clf=instance(TextClassifier, "a TextClassifier"),
    radius=number(above=0),
    norm=choice(*get_args(Norm)),
    k=whole(1),
    simplex=flag,
    reference=optional(instance(TextClassifier, "a TextClassifier")),
    lower_bound=flag,
    batch_size=whole(1),
)
def certify(
    clf: TextClassifier,
    texts: Any,
    radius: float = 0.01,
    norm: Norm = "linf",
    k: int = 7,
    simplex: bool = False,
    reference: TextClassifier | None = None,
    *,
    lower_bound: bool = False,
    batch_size: int = infer.BATCH,
) -> Certificates:
    """Per text: whether any change of its attention weights of at most `radius` could change label or top words.

    norm        "linf": no weight changes by more; "l2": the changes' root of summed squares is no more
    simplex     only changes that keep the sum of the weights: fewer, so that more is certified
    reference   another fitted classifier of the same labels that splits texts into the same tokens, for β and γ
    lower_bound for a decoder that is not linear: what gradient ascent finds; nothing is certified then
    """
    read, questions = clf._read([texts] if is_one(texts) else texts)
    data, model = clf.stored_.data(read, questions), clf.stored_.model
    if not isinstance(model, Classifier):
        raise UserError("this model selects what it reads: it has no attention weights to certify changes of")
    other = None if reference is None else _same(clf, reference).data(read, questions)
    device, found = next(model.parameters()).device, dict[int, Certificate]()
    shared: dict[str, Any] = {"R": float(radius), "k": int(k), "norm": norm, "simplex": bool(simplex)}
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        theirs = None if reference is None or other is None else _forward(reference, collate(other, rows), batch.mask)
        bounds = certify_batch(model, batch, float(radius), norm, int(k), bool(simplex), theirs, lower_bound)
        for row, values in zip(rows.tolist(), _rows(bounds, clf), strict=True):
            asked = None if questions is None else questions[row]
            found[row] = Certificate(text=read[row], question=asked, **{**values, **shared})
    return Certificates(tuple(found[row] for row in range(len(read))))


def _rows(bounds: Bounds, clf: TextClassifier) -> Iterator[dict[str, Any]]:
    """One dictionary of plain numbers per text."""
    classes = clf.stored_.description.classes
    fields = [field.name for field in dataclasses.fields(Bounds) if getattr(bounds, field.name) is not None]
    unsaid = {field.name: None for field in dataclasses.fields(Bounds) if field.name not in fields}
    for values in zip(*(getattr(bounds, name).tolist() for name in fields), strict=True):
        row = dict(zip(fields, values, strict=True))
        label = classes[row.pop("predicted")]
        yield {"label": label, "exact": bounds.alpha is not None and len(classes) == 2, **row, **unsaid}


def _same(clf: TextClassifier, reference: TextClassifier) -> Stored:
    """Weights and predictions can be compared only where both models read the same tokens and know the same labels."""
    if not hasattr(reference, "stored_"):
        raise UserError("the reference is not a fitted TextClassifier: fit or load it first")
    ours, theirs = clf.stored_, reference.stored_
    if ours.description.classes != theirs.description.classes:
        found = f"{theirs.description.classes!r:.80} and {ours.description.classes!r:.80}"
        raise UserError(f"the reference and the model must have the same labels, found {found}")
    kinds = ours.tokenizer.kind, theirs.tokenizer.kind
    # Words are split alike whatever the vocabulary, which differs with the training texts; pieces are the vocabulary's.
    alike = kinds == ("words", "words") or ours.tokenizer.to_json() == theirs.tokenizer.to_json()
    if ours.description.pair != theirs.description.pair or not alike:
        raise UserError(OTHER_TOKENS)
    return theirs


def _forward(reference: TextClassifier, batch: Batch, mask: Tensor) -> Forward:
    """What the reference makes of the same texts."""
    if not torch.equal(batch.mask, mask.cpu()):
        raise UserError(OTHER_TOKENS)
    model = reference.stored_.model
    with infer.inference(model):
        forward: Forward = model(batch.to(next(model.parameters()).device))
    return forward
