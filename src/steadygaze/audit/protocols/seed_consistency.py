"""Seed consistency: agreement of models that differ by their seed only, as means over all pairs of models.

    jensen-shannon/seeds      divergence of their saliencies
    top-k-overlap/seeds       share of the top-k words in common
    prediction-change/seeds   difference of their predictions
    label-flip/seeds          how often they predict different classes
    …/others                  the same for models with different settings: not evidence about seeds

Class-specific explainers explain the class that the first model predicts, for every model.
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
from steadygaze.results.row import MeasureKey

ALONE = "only one model was passed: pass models trained with other seeds"
OF_TEXT = {"prediction-change": stability_measures.prediction_change, "label-flip": stability_measures.label_flip}
OF_WORDS = ("jensen-shannon", "top-k-overlap")
SEEDS, OTHERS = "seeds", "others"


def seed_consistency(case: AuditCase) -> Iterator[Finding]:
    if not case.others:
        yield from missing_findings((str(MeasureKey(measure, SEEDS)) for measure in (*OF_TEXT, *OF_WORDS)), ALONE)
        return
    models = (case, *case.others)
    count = {"models": len(models)}
    for measure, function in OF_TEXT.items():
        values = _pair_mean([model.probs for model in models], function)
        yield Finding(str(MeasureKey(measure, SEEDS)), values, settings=count)
    for name in case.explainers:
        scores = case.gather(f"{name} of all models", lambda r, b, n=name: _scores(case, n, r, b), case.rows(name))  # type: ignore[misc]
        for measure, values in scores.items():
            settings = count | ({"k": case.config.k} if measure == "top-k-overlap" else {})
            yield Finding(str(MeasureKey(measure, SEEDS)), values, name, settings)


def seed_saliencies(case: AuditCase, name: str, rows: Rows, batch: Batch) -> list[Tensor]:
    """The saliencies of all models, for the class that the first predicts.  (B,T) each"""
    label = case.probs[torch.from_numpy(rows)].argmax(-1).to(batch.ids.device)

    def saliency(other: AuditCase) -> Tensor:
        explainer, device = other.explainers[name], other.model.device
        target = label.to(device) if explainer.class_specific else None
        weights = finite_weights(explainer.explain(other.model, batch.to(device), target), batch.to(device))
        return weights.to(batch.ids.device)

    return [case.gather_rows(case.saliency(name), rows, batch), *map(saliency, case.others)]


def not_comparable(comparisons: Iterable[Finding], why: str) -> Iterator[Finding]:
    """For models with different settings: the findings under another name, and the reason for the missing ones."""
    findings = list(comparisons)
    for finding in findings:
        yield replace(finding, measure=str(MeasureKey(finding.key.measure, OTHERS)), note=why)
    yield from missing_findings(dict.fromkeys(finding.measure for finding in findings), why)


def _scores(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    saliencies, too_short = seed_saliencies(case, name, rows, batch), batch.mask.sum(-1) < 2
    divergence = _pair_mean(saliencies, lambda p, q: saliency_divergence(p, q, batch.mask))
    shared = _pair_mean(saliencies, lambda p, q: shared_top_k(p, q, batch.mask, case.config.k))
    scores = zip(OF_WORDS, (divergence, shared), strict=True)
    return {measure: values.masked_fill(too_short, torch.nan) for measure, values in scores}


def _pair_mean(outputs: list[Tensor], measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The mean over all pairs of models.  (N,)"""
    return torch.stack([measure(p, q) for p, q in combinations(outputs, 2)]).mean(0)
