"""Is it the same after retraining?  The same texts put to models that differ by their seed alone.

    jensen-shannon/seeds      how far their saliencies are apart, the mean over all pairs of models
    top-k-overlap/seeds       which part of the k heaviest words two of them share
    prediction-change/seeds   how far their predictions are apart
    label-flip/seeds             how often they predict another class
    …/others                  the same of models that were not trained alike: no answer to the question

An explanation that depends on the class is asked of every model for one class, the one that the first model predicts:
reasons for different classes differ, and are no sign of chance.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase, Rows, saliency_divergence, shared_top_k
from steadygaze.audit.finding import Finding, missing_findings
from steadygaze.audit.measures import stability_measures
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import finite_weights

ALONE = "only one model was given: name others trained alike, with other seeds"
OF_TEXT = {"prediction-change": stability_measures.prediction_change, "label-flip": stability_measures.label_flip}
OF_WORDS = ("jensen-shannon", "top-k-overlap")
SEEDS, OTHERS = "/seeds", "/others"


def seed_consistency(case: AuditCase) -> Iterator[Finding]:
    if not case.others:
        yield from missing_findings((f"{measure}{SEEDS}" for measure in (*OF_TEXT, *OF_WORDS)), ALONE)
        return
    models = (case, *case.others)
    many = {"models": len(models)}
    for measure, of in OF_TEXT.items():
        yield Finding(f"{measure}{SEEDS}", _pairs([model.probs for model in models], of), settings=many)
    for name in case.explainers:
        found = case.gather(f"{name} of all models", lambda r, b, n=name: _apart(case, n, r, b), case.rows(name))  # type: ignore[misc]
        for measure, values in found.items():
            known = many | ({"k": case.plan.k} if measure == "top-k-overlap" else {})
            yield Finding(f"{measure}{SEEDS}", values, name, known)


def seed_saliencies(case: AuditCase, name: str, rows: Rows, batch: Batch) -> list[Tensor]:
    """What all models say of these texts, the first one's own class in question.  (B,T) each"""
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device)

    def said(one: AuditCase) -> Tensor:
        asked, here = one.explainers[name], one.model.device
        target = label.to(here) if asked.class_specific else None
        return finite_weights(asked.explain(one.model, batch.to(here), target), batch.to(here)).to(batch.ids.device)

    return [case.gather_rows(case.saliency(name), rows, batch), *map(said, case.others)]


def not_comparable(found: Iterable[Finding], why: str) -> Iterator[Finding]:
    """Of models that were not trained alike: the numbers under another name, and why the question has no answer."""
    given = list(found)
    yield from (replace(one, measure=one.measure.replace(SEEDS, OTHERS), note=why) for one in given)
    yield from missing_findings(dict.fromkeys(one.measure for one in given), why)


def _apart(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    said, few = seed_saliencies(case, name, rows, batch), batch.mask.sum(-1) < 2
    far = _pairs(said, lambda p, q: saliency_divergence(p, q, batch.mask))
    shared = _pairs(said, lambda p, q: shared_top_k(p, q, batch.mask, case.plan.k))
    return {measure: one.masked_fill(few, torch.nan) for measure, one in zip(OF_WORDS, (far, shared), strict=True)}


def _pairs(said: list[Tensor], measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The mean over all pairs of models.  (N,)"""
    return torch.stack([measure(one, other) for one, other in combinations(said, 2)]).mean(0)
